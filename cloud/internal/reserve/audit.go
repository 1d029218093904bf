package reserve

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// audit appends an audit entry for an administrator's action on a reservation, in the transaction of the action. An entry
// without an action is skipped, because changes by customers and the provider are not audited.
func (s *Service) audit(ctx context.Context, tx pgx.Tx, entry audit.Entry, r booking.Reservation) error {
	if entry.Action == "" {
		return nil
	}
	entry.BranchID, entry.Target = &r.Branch, strconv.FormatInt(int64(r.ID), 10)
	return postgres.AppendAudit(ctx, tx, entry)
}
