// Package franchise takes inquiries of people who want to run a branch: they are stored, and the head
// quarters is told by mail.
package franchise

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// perAddress limits inquiries (decisions.md 12).
var perAddress = limit.Rule{Name: "franchise-inquiry", Max: 5, Window: time.Hour}

// Inquiry is what somebody wrote into the form.
type Inquiry = postgres.FranchiseInquiry

// Service takes inquiries. Every field is required.
type Service struct {
	DB      *postgres.DB
	Limits  *limit.Limiter
	Queue   *queue.Queue
	HQEmail string // who is told
}

// Inquire stores an inquiry and has the head quarters told. client is the address it came from. It returns a
// [limit.ExceededError] for too many from there.
func (s *Service) Inquire(ctx context.Context, i Inquiry, client string) error {
	if err := s.Limits.Take(ctx, perAddress, client); err != nil {
		return err
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.InsertFranchiseInquiry(ctx, tx, i); err != nil {
			return err
		}
		return s.Queue.Message(ctx, tx, queue.Message{
			Template: "franchise-inquiry",
			Email:    s.HQEmail,
			Variables: map[string]string{
				"name": i.Name, "mobileNum": i.Mobile, "email": i.Email, "region": i.Region, "message": i.Message,
			},
		})
	})
	if err != nil {
		return fmt.Errorf("franchise inquiry: %w", err)
	}
	return nil
}
