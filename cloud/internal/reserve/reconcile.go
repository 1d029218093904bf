package reserve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

const (
	// reconcileSpan covers the longest time after which the provider still sends a callback, 3 days and 19 hours.
	reconcileSpan = 7 * 24 * time.Hour
	// stuckAfter is how long the provider may leave an outcome open before a person is told.
	stuckAfter = 15 * time.Minute
)

// The kinds of difference that a comparison finds, and closes again when they are gone.
const (
	orphan  = "orphan"  // the provider holds money for an order unknown here
	missing = "missing" // we believe in money the provider knows nothing of
	balance = "balance" // both know the order and disagree about the money
	stuck   = "stuck"   // the provider leaves an outcome open

	refundKind        = "refund"         // a refund waits for an administrator
	declinedKind      = "refund-refused" // the provider declined a refund: the reservation is confirmed again
	refundOverdueKind = "refund-overdue" // the bank has not finished a refund in time
	lateDepositKind   = "late-deposit"   // money for a reservation that is over
	providerKey       = "provider-key"   // the provider rejects our secret key

	settled = "settled" // the resolution of what settled itself
)

// Report is the result of comparing the provider's books with ours.
type Report struct {
	Compared    int                 // orders
	Differences []money.Discrepancy // those with a Resolution were settled at once
}

// Reconcile compares the provider's books of the last days with ours, in both directions. The provider's list only
// says which orders to look at: each that differs is looked up and settled first, and what differs then is listed for
// the head quarters. Orders whose money is on its way are left to the sweep.
func (s *Service) Reconcile(ctx context.Context) (Report, error) {
	now := s.now()
	theirs := map[string]moved{}
	for _, keys := range []toss.KeySet{toss.Widget, toss.API} {
		transactions, err := s.Payments.Transactions(ctx, keys, now.Add(-reconcileSpan), now)
		if err != nil {
			return Report{}, fmt.Errorf("reserve: reconcile: %w", err)
		}
		for _, t := range transactions {
			m := theirs[t.OrderID]
			theirs[t.OrderID] = m.add(t, keys)
		}
	}
	ours, err := postgres.ProviderBalances(ctx, s.DB.Pool, slices.Collect(maps.Keys(theirs)), now.Add(-reconcileSpan))
	if err != nil {
		return Report{}, err
	}
	report := Report{}
	orders := maps.Clone(ours)
	for order := range theirs {
		orders[order] = ours[order]
	}
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		report.Compared++
		m, listed := theirs[order]
		h, known := ours[order]
		if known && (h.Open || listed && m.won == h.Won) || !known && m.won == 0 {
			continue
		}
		difference, err := s.compare(ctx, order, m, h)
		if err != nil {
			return report, fmt.Errorf("reserve: reconcile order %s: %w", order, err)
		}
		if difference.Kind != "" {
			report.Differences = append(report.Differences, difference)
		}
	}
	return report, s.list(ctx, report, now)
}

// moved is what the provider's list says about an order.
type moved struct {
	won  int // what came in less what went out
	keys toss.KeySet
}

// add counts a transaction. Its status tells which way the money went; the sign of its amount says nothing.
func (m moved) add(t toss.Transaction, keys toss.KeySet) moved {
	amount := max(t.Amount, -t.Amount)
	switch t.Status {
	case toss.StatusDone:
		m.won += amount
	case toss.StatusCanceled, toss.StatusPartialCanceled, toss.StatusWaitingForDeposit:
		m.won = max(0, m.won-amount) // a waiting account holds nothing: it never did, or the bank took the deposit back
	}
	m.keys = keys
	return m
}

// compare has an order settled that differs by the lists, and returns what still differs when the provider is asked.
func (s *Service) compare(ctx context.Context, order string, m moved, h money.ProviderBalance) (money.Discrepancy, error) {
	if h.Reservation == 0 {
		p, err := s.Payments.PaymentByOrder(ctx, m.keys, order)
		if err != nil {
			return money.Discrepancy{}, err
		}
		if p.BalanceAmount == 0 || p.Status != toss.StatusDone && p.Status != toss.StatusPartialCanceled {
			return money.Discrepancy{}, nil
		}
		return difference(order, orphan, "%d won at the provider for an order that is not ours", p.BalanceAmount), nil
	}
	q, err := ask(ctx, s.DB.Pool, h.Reservation)
	if err != nil {
		return money.Discrepancy{}, err
	}
	p, err := s.lookUp(ctx, q)
	if toss.ClassOf(err) == toss.NotFound {
		return difference(order, missing, "%d won here, and the provider does not know the order", h.Won), nil
	}
	if err != nil {
		return money.Discrepancy{}, err
	}
	held := 0
	if p.Status == toss.StatusDone || p.Status == toss.StatusPartialCanceled {
		held = p.BalanceAmount
	}
	if held == h.Won {
		return money.Discrepancy{}, nil // the list was behind
	}
	found := difference(order, balance, "%d won at the provider, %d here", held, h.Won)
	if err := s.Settle(ctx, h.Reservation); err != nil && !errors.Is(err, ErrPaymentPending) {
		s.Log.WarnContext(ctx, "reconcile: not settled", "order_id", order, "error", err)
	}
	after, err := postgres.ProviderBalances(ctx, s.DB.Pool, []string{order}, s.now())
	if now := after[order]; now.Open || now.Won == held {
		found.Resolution = "settled"
	}
	return found, err
}

func difference(order, kind, format string, args ...any) money.Discrepancy {
	return money.Discrepancy{OrderID: order, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// list writes down what differs and closes what does not differ any more.
func (s *Service) list(ctx context.Context, report Report, now time.Time) error {
	still := map[string][]string{orphan: {}, missing: {}, balance: {}}
	for _, d := range report.Differences {
		if d.Resolution == "" {
			still[d.Kind] = append(still[d.Kind], d.OrderID)
		}
		if err := s.report(ctx, s.DB.Pool, d.OrderID, d.Kind, d.Detail); err != nil {
			return err
		}
	}
	for kind, orders := range still {
		if err := postgres.ResolveDiscrepancies(ctx, s.DB.Pool, kind, orders, "settled", now); err != nil {
			return err
		}
	}
	s.Log.InfoContext(ctx, "reconciled with the provider", "orders", report.Compared, "differences", len(report.Differences))
	return nil
}

// ReportStuck lists the orders whose outcome the provider leaves open for too long. Their slots stay taken.
func (s *Service) ReportStuck(ctx context.Context) error {
	now := s.now()
	orders, err := postgres.Stuck(ctx, s.DB.Pool, now.Add(-stuckAfter))
	if err != nil {
		return err
	}
	for order := range orders {
		if err := s.report(ctx, s.DB.Pool, order, stuck, "the provider has not told what became of the money for 15 minutes"); err != nil {
			return err
		}
	}
	still := slices.AppendSeq([]string{}, maps.Keys(orders))
	return postgres.ResolveDiscrepancies(ctx, s.DB.Pool, stuck, still, "settled", now)
}
