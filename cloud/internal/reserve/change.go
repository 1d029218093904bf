package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// change is a transaction on one reservation, whose row is locked. It is valid until the transaction ends.
type change struct {
	*Service
	ctx context.Context
	tx  pgx.Tx
	now time.Time
	rule.Snapshot
	due bool // see question
}

// r returns the reservation as the transaction read it.
func (c *change) r() booking.Reservation { return c.Reservation }

// locked runs do in a transaction that locks the row of a reservation. It returns ErrNotFound if there is no such row.
func (s *Service) locked(ctx context.Context, id booking.ReservationID, do func(*change) error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if errors.Is(err, booking.ErrNoReservation) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		return do(s.change(ctx, tx, r, now))
	})
}

func (s *Service) change(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) *change {
	return &change{Service: s, ctx: ctx, tx: tx, now: now, Snapshot: rule.Snapshot{Reservation: r}}
}

// load completes the snapshot of a reservation with its order, payment and open refund.
func load(ctx context.Context, q postgres.Querier, r booking.Reservation) (rule.Snapshot, error) {
	snapshot := rule.Snapshot{Reservation: r}
	var err error
	if snapshot.Payment, err = postgres.PaymentOf(ctx, q, r.ID); err != nil {
		return snapshot, err
	}
	if snapshot.Order, err = postgres.OrderOf(ctx, q, r.OrderID); err != nil {
		return snapshot, err
	}
	if snapshot.Refund, err = currentRefund(ctx, q, r.ID); err != nil {
		return snapshot, err
	}
	return snapshot, relate(ctx, q, &snapshot)
}

// relate completes a snapshot with what other reservations mean for it.
func relate(ctx context.Context, q postgres.Querier, s *rule.Snapshot) (err error) {
	r := s.Reservation
	if s.Anchor, err = anchor(ctx, q, r); err != nil {
		return err
	}
	if r.Extends != 0 && s.Anchor.Stay().End.Before(r.Start) {
		if s.Doubted, err = postgres.Doubted(ctx, q, r); err != nil {
			return err
		}
	}
	if r.Replaces == 0 && r.State != booking.Canceling && r.State != booking.WaitingForDeposit {
		return nil // only a reservation that may be confirmed again, or another exchange, depends on it
	}
	s.Exchanged, err = postgres.Exchanged(ctx, q, r)
	return err
}

// anchor returns the reservation that r extends or replaces; the zero value if there is none.
func anchor(ctx context.Context, q postgres.Querier, r booking.Reservation) (booking.Reservation, error) {
	id := max(r.Extends, r.Replaces)
	if id == 0 {
		return booking.Reservation{}, nil
	}
	return postgres.Reservation(ctx, q, id)
}

func currentRefund(ctx context.Context, q postgres.Querier, id booking.ReservationID) (*money.Refund, error) {
	f, err := postgres.CurrentRefund(ctx, q, id)
	if errors.Is(err, postgres.ErrNoRefund) {
		return nil, nil
	}
	return &f, err
}

// reachable returns the branch of the reservation, or account.ErrBranchForbidden if the administrator may not act there.
func (c *change) reachable(by account.Principal) (booking.Branch, error) {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return branch, err
	}
	if !by.Reaches(branch.Code) {
		return branch, account.ErrBranchForbidden
	}
	return branch, nil
}

// audited writes an audit entry for an administrator's action in its transaction.
func (c *change) audited(by account.Principal, action string, detail any) error {
	return c.Service.audit(c.ctx, c.tx, audit.Entry{Actor: by.Actor(), Action: action, Detail: detail}, c.r())
}

// ledger appends an entry about the payment as the provider reports it.
func (c *change) ledger(kind string, p toss.Payment) error {
	return c.entry(kind, p.TotalAmount, p.Status, map[string]any{"method": p.Method, "balance": p.BalanceAmount})
}

func (c *change) entry(kind string, won int, code string, detail map[string]any) error {
	return postgres.AppendLedger(c.ctx, c.tx, money.LedgerEntry{
		Reservation: c.r().ID, OrderID: c.r().OrderID, Kind: kind, Amount: won, Code: code, Detail: detail,
	})
}

// settleAt schedules a look-up of the payment at the provider, not before at.
func (c *change) settleAt(at time.Time) error {
	if err := postgres.ScheduleCheck(c.ctx, c.tx, c.r().ID, at); err != nil {
		return err
	}
	return c.Queue.Settle(c.ctx, c.tx, c.r().ID, at)
}

// report records a discrepancy of this reservation for an administrator's review.
func (c *change) report(kind, detail string) error {
	return c.Service.report(c.ctx, c.tx, c.r().OrderID, kind, detail)
}

// report records a discrepancy for an administrator's review, and logs it the first time.
func (s *Service) report(ctx context.Context, q postgres.Querier, orderID, kind, detail string) error {
	return s.reportDiscrepancy(ctx, q, money.Discrepancy{OrderID: orderID, Kind: kind, Detail: detail})
}

func (s *Service) reportDiscrepancy(ctx context.Context, q postgres.Querier, d money.Discrepancy) error {
	fresh, err := postgres.ReportDiscrepancy(ctx, q, d)
	switch {
	case !fresh:
	case d.Kind == lateDepositKind: // the service refunds it; a refund that fails is reported by itself
		s.Log.InfoContext(ctx, "money arrived after the end of the reservation", "order_id", d.OrderID, "detail", d.Detail)
	default:
		s.Log.ErrorContext(ctx, "money needs an administrator", "order_id", d.OrderID, "kind", d.Kind, "detail", d.Detail)
	}
	return err
}
