package branchfile

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ErrChanged is returned if the database changed after the plan was shown, so that applying it would differ from it.
var ErrChanged = errors.New("the database has changed since the plan was shown; review the changes again")

// maxAudited limits the lines of a plan that the audit log stores.
const maxAudited = 200

// Apply carries out a plan in one transaction. by is the actor in the audit log. It returns ErrChanged if the plan computed
// now differs from the plan that was shown.
func Apply(ctx context.Context, db *postgres.DB, keys *seal.Keyring, name string, file File, shown Plan, by string) error {
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockBranches(ctx, tx); err != nil {
			return err
		}
		if err := lockDisabled(ctx, tx, file); err != nil {
			return err
		}
		plan, err := MakePlan(ctx, tx, keys, name, file, now)
		if err != nil {
			return err
		}
		if plan.String() != shown.String() {
			return ErrChanged
		}
		if len(plan.Changes) == 0 {
			return nil
		}
		var (
			batch postgres.BranchBatch
			lines []string
		)
		for _, c := range plan.Changes {
			if err := c.do(&batch); err != nil {
				return err
			}
			if len(lines) < maxAudited {
				lines = append(lines, c.Sign+" "+c.Text)
			}
		}
		if err := batch.Run(ctx, tx); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Action: "branch.apply", Target: name,
			Detail: map[string]any{"changes": len(plan.Changes), "lines": lines},
		})
	})
}

// lockDisabled locks the rooms that the file disables or omits, so that no hold is taken while they are being disabled.
func lockDisabled(ctx context.Context, tx pgx.Tx, file File) error {
	p := &planner{file: file}
	codes := make([]string, len(file.Branches))
	for i, b := range file.Branches {
		codes[i] = b.Code
	}
	var err error
	if p.branches, err = postgres.BranchStates(ctx, tx, codes); err != nil {
		return err
	}
	return postgres.LockRooms(ctx, tx, p.disabled()...)
}
