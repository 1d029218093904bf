package gallery

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Bounds of the arrival steps of a branch.
const (
	MaxSteps    = 8
	MaxStepText = 200 // characters
)

// Errors of the changes of arrival steps.
var (
	ErrStepsFull = errors.New("gallery: the branch has the maximum number of arrival steps")
	ErrNoStep    = errors.New("gallery: the branch has no such arrival step")
)

// Arrival returns how guests get from the street to a room of the branch.
func (s *Service) Arrival(ctx context.Context, branch booking.BranchID) ([]booking.ArrivalStep, error) {
	return postgres.ArrivalSteps(ctx, s.DB.Pool, branch)
}

// AddStep adds a step after those of the branch, without a photo if upload is empty. It returns ErrPhoto or ErrStepsFull.
func (s *Service) AddStep(ctx context.Context, branch booking.Branch, text booking.Bilingual, upload []byte, by string) (id int64, err error) {
	var files []File
	if len(upload) > 0 {
		if files, err = encodeAll(ctx, upload, widths...); err != nil {
			return 0, err
		}
	}
	err = s.changeSteps(ctx, branch, "branch.arrival-add", by, func(ctx context.Context, tx pgx.Tx, steps []int64) (int64, error) {
		if len(steps) >= MaxSteps {
			return 0, ErrStepsFull
		}
		if id, err = postgres.AddArrivalStep(ctx, tx, branch.ID, len(steps)+1, text); err != nil {
			return 0, err
		}
		for _, f := range files {
			if err := postgres.AddArrivalFile(ctx, tx, id, postgres.StoredPhoto(f)); err != nil {
				return 0, err
			}
		}
		return id, nil
	})
	return id, err
}

// ChangeStep replaces the text of a step and moves it to a position; one beyond the last is the last. It returns ErrNoStep.
func (s *Service) ChangeStep(ctx context.Context, branch booking.Branch, step int64, text booking.Bilingual, position int, by string) error {
	return s.changeSteps(ctx, branch, "branch.arrival-change", by, func(ctx context.Context, tx pgx.Tx, steps []int64) (int64, error) {
		others, err := without(steps, step)
		if err != nil {
			return 0, err
		}
		if err := postgres.PutArrivalText(ctx, tx, step, text); err != nil {
			return 0, err
		}
		return step, postgres.PutArrivalOrder(ctx, tx, branch.ID, slices.Insert(others, min(position-1, len(others)), step))
	})
}

// RemoveStep deletes a step with its photo. It returns ErrNoStep.
func (s *Service) RemoveStep(ctx context.Context, branch booking.Branch, step int64, by string) error {
	return s.changeSteps(ctx, branch, "branch.arrival-remove", by, func(ctx context.Context, tx pgx.Tx, steps []int64) (int64, error) {
		others, err := without(steps, step)
		if err != nil {
			return 0, err
		}
		return step, postgres.PutArrivalOrder(ctx, tx, branch.ID, others)
	})
}

func without(steps []int64, step int64) ([]int64, error) {
	at := slices.Index(steps, step)
	if at < 0 {
		return nil, ErrNoStep
	}
	return slices.Delete(steps, at, at+1), nil
}

// changeSteps runs one change of the steps of a branch at a time and records it. The change receives the ids of the steps in
// their order and returns that of the changed one.
func (s *Service) changeSteps(ctx context.Context, branch booking.Branch, action, by string,
	change func(context.Context, pgx.Tx, []int64) (int64, error),
) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		steps, err := postgres.LockArrival(ctx, tx, branch.ID)
		if err != nil {
			return err
		}
		step, err := change(ctx, tx, steps)
		if err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: branch.Code, Action: action, Target: branch.Code, Detail: map[string]any{"step": step}})
	})
}
