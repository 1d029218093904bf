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

// Refund is a refund as lists show it.
type Refund = postgres.RefundRow

// PaidReservation is a payment as the export shows it.
type PaidReservation = postgres.PaidReservation

// Totals are the sums of a span of time.
type Totals = money.Totals

// refundsShown bounds the list of finished refunds.
const refundsShown = 500

// Money is what the money screen shows of a branch.
type Money struct {
	Sums          []postgres.PaidSum
	Paid          []booking.Reservation // the newest
	Refunds       []postgres.RefundRow  // not finished
	Refunded      []postgres.RefundRow  // finished within the span
	Totals        money.Totals          // of the span, by the time of the movement
	Discrepancies []money.Discrepancy
}

// Money returns the sums and the newest payments of a span of time, the unfinished refunds, and the discrepancies with the
// provider's books. Those of orders that belong to no branch are included with unknown.
func (s *Service) Money(ctx context.Context, branch booking.Branch, span booking.Interval, limit int, unknown bool) (m Money, err error) {
	if m.Totals, err = postgres.MoneyTotals(ctx, s.DB.Pool, branch.ID, span); err != nil {
		return m, err
	}
	if m.Refunded, err = postgres.RefundsDuring(ctx, s.DB.Pool, branch.ID, span, refundsShown); err != nil {
		return m, err
	}
	if m.Sums, err = postgres.PaidSums(ctx, s.DB.Pool, branch.ID, span, branch.Zone.String()); err != nil {
		return m, err
	}
	if m.Paid, err = s.Payments(ctx, branch.ID, span, PaidPlace{}, limit); err != nil {
		return m, err
	}
	if m.Refunds, err = postgres.OpenRefunds(ctx, s.DB.Pool, branch.ID); err != nil {
		return m, err
	}
	m.Discrepancies, err = postgres.DiscrepanciesOf(ctx, s.DB.Pool, branch.ID, unknown)
	return m, err
}

// PaidPlace is the position of a payment in a list; see the one of package postgres.
type PaidPlace = postgres.PaidPlace

// PlaceOf returns the position of a payment.
func PlaceOf(r booking.Reservation) PaidPlace { return postgres.PlaceOf(r) }

// Payments returns payments of a span of time, newest first, after a position (the zero value: from the newest).
func (s *Service) Payments(ctx context.Context, branch booking.BranchID, span booking.Interval, after PaidPlace, limit int) ([]booking.Reservation, error) {
	return postgres.PaidPage(ctx, s.DB.Pool, branch, span, after, limit)
}

// ExportPayments calls do for each payment of a span of time, oldest first, and audits the export.
func (s *Service) ExportPayments(ctx context.Context, branch booking.Branch, span booking.Interval, by string, do func(PaidReservation) error) error {
	if err := s.Exported(ctx, branch.Code, "payments", map[string]string{"yearMonth": span.Start.In(branch.Zone).Format("2006-01")}, by); err != nil {
		return err
	}
	return postgres.EachPaid(ctx, s.DB.Pool, branch.ID, span, do)
}

// ResolveDiscrepancy closes a discrepancy with an explanation. It returns ErrNoDiscrepancy.
func (s *Service) ResolveDiscrepancy(ctx context.Context, id int64, resolution, by string) error {
	entry := audit.Entry{Actor: by, Action: "difference.resolve", Target: strconv.FormatInt(id, 10)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return postgres.ResolveDiscrepancy(ctx, tx, id, resolution, by, now)
	})
}

// Exported records that a list with names left the console as a file.
func (s *Service) Exported(ctx context.Context, branch, list string, detail map[string]string, by string) error {
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: by, Branch: branch, Action: "export." + list, Detail: detail})
}
