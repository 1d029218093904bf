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

// ErrChanged says that the database changed after the plan was shown, so that what would be done is not what was shown.
var ErrChanged = errors.New("the database changed in the meantime; look at the changes again")

// maxAudited bounds the lines of a plan that the audit log keeps.
const maxAudited = 200

// Apply makes the changes of a plan that was made of the same file, all or none of them. by is who does it,
// for the audit log. It returns ErrChanged if the plan is not what would be done now.
func Apply(ctx context.Context, db *postgres.DB, keys *seal.Keyring, name string, file File, shown Plan, by string) error {
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockBranches(ctx, tx); err != nil {
			return err
		}
		if err := lockLeftOut(ctx, tx, file); err != nil {
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

// lockLeftOut locks the rooms the file leaves out: a hold that is being taken waits for us, or we for it.
func lockLeftOut(ctx context.Context, tx pgx.Tx, file File) error {
	p := &planner{file: file}
	codes := make([]string, len(file.Branches))
	for i, b := range file.Branches {
		codes[i] = b.Code
	}
	var err error
	if p.branches, err = postgres.BranchStates(ctx, tx, codes); err != nil {
		return err
	}
	return postgres.LockRooms(ctx, tx, p.leftOut()...)
}
