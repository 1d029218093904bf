package backoffice

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Money is what the money screen shows of a branch.
type Money struct {
	Paid          []booking.Reservation
	Refunds       []postgres.RefundRow // not finished
	Discrepancies []money.Discrepancy
}

// Money returns the payments of a span of time, the open refunds, and the discrepancies with the provider's books. Those
// of orders that belong to no branch are included with unknown.
func (s *Service) Money(ctx context.Context, branch booking.BranchID, span booking.Interval, unknown bool) (m Money, err error) {
	if m.Paid, err = postgres.PaidDuring(ctx, s.DB.Pool, branch, span); err != nil {
		return m, err
	}
	if m.Refunds, err = postgres.OpenRefunds(ctx, s.DB.Pool, branch); err != nil {
		return m, err
	}
	m.Discrepancies, err = postgres.DiscrepanciesOf(ctx, s.DB.Pool, branch, unknown)
	return m, err
}

// ResolveDiscrepancy closes a discrepancy with an explanation. It returns ErrNoDiscrepancy.
func (s *Service) ResolveDiscrepancy(ctx context.Context, id int64, resolution, by string) error {
	entry := audit.Entry{Actor: by, Action: "difference.resolve", Target: strconv.FormatInt(id, 10)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return postgres.ResolveDiscrepancy(ctx, tx, id, resolution, now)
	})
}

// Exported records that a list with names left the console as a file.
func (s *Service) Exported(ctx context.Context, branch, list string, detail map[string]string, by string) error {
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: by, Branch: branch, Action: "export." + list, Detail: detail})
}
