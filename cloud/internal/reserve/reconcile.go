package reserve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

const (
	// ReconcileSpan exceeds the 3 days and 19 hours for which the provider repeats a callback.
	ReconcileSpan = 7 * 24 * time.Hour
	// LightSpan is the span of a light comparison, from the last complete one back. It finds card payments that were
	// cancelled in the provider's dashboard, for which the provider sends no callback.
	LightSpan = 20 * time.Minute
	// stuckAfter is the age at which an unknown outcome is listed as a discrepancy.
	stuckAfter = 15 * time.Minute
)

// The kinds of comparison.
const (
	Light = "light" // orders with a recent transaction
	Full  = "full"  // also all orders that are paid according to the database
)

// The kinds of discrepancy. A comparison finds the first three, and closes them when they are settled.
const (
	orphan  = "orphan"  // the provider holds money, or the bank has returned a refund, of an order that the database does not have
	missing = "missing" // the database has a payment that the provider does not have
	balance = "balance" // both have the order, with different amounts

	stuck             = "stuck"          // the provider returns no final outcome
	refundKind        = "refund"         // a refund waits for an administrator
	declinedKind      = "refund-refused" // the provider declined a refund: the reservation is confirmed again
	refundOverdueKind = "refund-overdue" // the bank has not transferred a refund in time
	lateDepositKind   = "late-deposit"   // money for a reservation that has ended
	reversalKind      = "reversal"       // the bank has taken a deposit back
	providerKey       = "provider-key"   // the provider rejects our secret key

	settled = "settled" // the resolution of a discrepancy that closed without an administrator
)

// Report is the result of comparing the provider's payments with the database.
type Report struct {
	Compared      int                 // orders
	Discrepancies []money.Discrepancy // those with a Resolution were settled during the comparison
	Failed        map[string]error    // by order: why it could not be compared
	Retired       []string            // codes of the legal entities whose orders were not compared, because they are retired
}

// Err returns nil if every order could be compared.
func (r Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	order := slices.Min(slices.Collect(maps.Keys(r.Failed)))
	return fmt.Errorf("reserve: reconcile: %d of %d orders could not be compared, among them %s: %w", len(r.Failed), r.Compared, order, r.Failed[order])
}

// ErrBooksUnavailable is returned if the provider does not return the transactions of a legal entity.
var ErrBooksUnavailable = errors.New("reserve: the provider's transactions are not available")

// Reconcile compares the provider's payments of a span up to now with the database, in both directions. The provider's list
// only selects the orders to look up: each order that differs is looked up and settled, and any remaining difference is
// listed for an administrator. Orders that cannot be compared are in Report.Err and do not stop the comparison of the others.
// Orders with a request in progress are left to the sweep.
//
// The orders of retired entities are left out. If the provider rejects the keys of an entity in use, the orders of the others are
// compared, and the comparison stays incomplete.
//
// Errors: ErrBooksUnavailable.
func (s *Service) Reconcile(ctx context.Context, kind string, span time.Duration) (Report, error) {
	now := s.now()
	run, err := postgres.BeginReconciliation(ctx, s.DB.Pool, kind, now)
	if err != nil {
		return Report{}, err
	}
	books, err := s.transactions(ctx, now.Add(-span), now)
	if err != nil {
		return Report{}, err
	}
	since := now.Add(-span)
	if kind == Light {
		since = now // only the orders that the provider lists
	}
	ours, err := postgres.ProviderBalances(ctx, s.DB.Pool, slices.Collect(maps.Keys(books.orders)), since)
	if err != nil {
		return Report{}, err
	}
	maps.DeleteFunc(ours, func(_ string, h money.ProviderBalance) bool {
		return slices.Contains(books.retired, toss.KeySet(h.KeySet).Merchant())
	})
	report, compared := s.compareAll(ctx, books, ours)
	if err := s.list(ctx, report, compared, now); err != nil {
		return report, err
	}
	if err := books.unavailable(); err != nil {
		return report, err
	}
	failed := slices.AppendSeq([]string{}, maps.Keys(report.Failed))
	if err := postgres.EndReconciliation(ctx, s.DB.Pool, run, report.Compared, failed, s.now()); err != nil {
		return report, err
	}
	return report, report.Err()
}

// books are the provider's transactions.
type books struct {
	orders  map[string]moved
	unread  map[toss.KeySet]error // that the provider rejects: the contract of an entity may have ended
	retired []string              // codes of the entities that are not read
}

// transactions returns the provider's transactions, summed by order. The lists of both key sets of a merchant may have the same ones. During
// an outage it asks for no other list, so that the sweep does not wait for each of them.
func (s *Service) transactions(ctx context.Context, from, to time.Time) (books, error) {
	b := books{orders: map[string]moved{}, unread: map[toss.KeySet]error{}}
	sets, retired, err := s.keySets(ctx)
	if err != nil {
		return b, err
	}
	b.retired = retired
	known := map[string]bool{} // by transaction key
	for _, keys := range sets {
		transactions, err := s.Payments.Transactions(ctx, keys, from, to)
		if err != nil {
			b.unread[keys] = fmt.Errorf("key set %s: %w", keys, err)
			if !toss.KeyRejected(err) {
				return b, b.unavailable()
			}
			continue
		}
		for _, t := range transactions {
			m := b.orders[t.OrderID]
			if !known[t.TransactionKey] {
				m = m.add(t)
			}
			if !slices.Contains(m.keys, keys) {
				m.keys = append(m.keys, keys)
			}
			b.orders[t.OrderID], known[t.TransactionKey] = m, true
		}
	}
	return b, nil
}

// unavailable returns ErrBooksUnavailable if a key set could not be read.
func (b books) unavailable() error {
	if len(b.unread) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrBooksUnavailable, errors.Join(slices.Collect(maps.Values(b.unread))...))
}

// compareAll compares every order, apart from those whose key set could not be read, and returns those that could be compared.
func (s *Service) compareAll(ctx context.Context, theirs books, ours map[string]money.ProviderBalance) (Report, []string) {
	report, compared := Report{Failed: map[string]error{}, Retired: theirs.retired}, []string{}
	orders := maps.Clone(ours)
	for order := range theirs.orders {
		orders[order] = ours[order]
	}
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		report.Compared++
		m, listed := theirs.orders[order]
		h, known := ours[order]
		if err := theirs.unread[toss.KeySet(h.KeySet)]; known && err != nil {
			report.Failed[order] = err
			continue
		}
		if known && (h.Open || listed && m.won == h.Won) || !known && m.won == 0 && !m.transferred {
			compared = append(compared, order)
			continue
		}
		found, err := s.compare(ctx, order, m, h)
		if err != nil {
			s.Log.WarnContext(ctx, "reconcile: an order could not be compared", "order_id", order, "error", err)
			report.Failed[order] = err
			continue
		}
		compared = append(compared, order)
		if found.Kind != "" {
			report.Discrepancies = append(report.Discrepancies, found)
		}
	}
	return report, compared
}

// moved is the sum of an order's transactions in the provider's list.
type moved struct {
	won         int           // received less refunded
	transferred bool          // a deposit was refunded, whose transfer the bank may have rejected
	keys        []toss.KeySet // whose lists have the order
	payment     string        // the key of the payment; of the payments of an order, the provider processes one
}

// add adds a transaction. Its status determines the direction of the money; the sign of its amount is not reliable.
func (m moved) add(t toss.Transaction) moved {
	amount := max(t.Amount, -t.Amount)
	switch t.Status {
	case toss.StatusDone:
		m.won += amount
	case toss.StatusCanceled, toss.StatusPartialCanceled, toss.StatusWaitingForDeposit:
		m.transferred = m.transferred || t.Method == toss.MethodVirtualAccount && t.Status != toss.StatusWaitingForDeposit
		m.won = max(0, m.won-amount) // an account without a deposit holds nothing: no deposit arrived, or the bank reversed it
	}
	m.payment = t.PaymentKey
	return m
}

// compare settles an order that differs between the lists, and returns the difference that remains after a look-up.
func (s *Service) compare(ctx context.Context, order string, m moved, h money.ProviderBalance) (money.Discrepancy, error) {
	if h.Reservation == 0 {
		return s.compareUnknown(ctx, order, m)
	}
	q, err := ask(ctx, s.DB.Pool, h.Reservation)
	if err != nil {
		return money.Discrepancy{}, err
	}
	p, err := s.lookUp(ctx, q, m.payment)
	if toss.ClassOf(err) == toss.NotFound {
		return discrepancy(order, missing, "%d won here, and the provider does not know the order", h.Won), nil
	}
	if err != nil {
		return money.Discrepancy{}, err
	}
	held := p.Held()
	if held == h.Won {
		return money.Discrepancy{}, nil // the list was outdated
	}
	found := discrepancy(order, balance, "%d won at the provider, %d here", held, h.Won)
	if err := s.Settle(ctx, h.Reservation); err != nil && !errors.Is(err, ErrPaymentPending) {
		s.Log.WarnContext(ctx, "reconcile: not settled", "order_id", order, "error", err)
	}
	after, err := postgres.ProviderBalances(ctx, s.DB.Pool, []string{order}, s.now())
	if now := after[order]; now.Open || now.Won == held {
		found.Resolution = settled
	}
	return found, err
}

// compareUnknown looks up an order that the database does not have. One of the key sets that list it reads its payment.
func (s *Service) compareUnknown(ctx context.Context, order string, m moved) (found money.Discrepancy, err error) {
	var (
		p    toss.Payment
		keys toss.KeySet
	)
	for _, keys = range m.keys {
		if p, err = s.payment(ctx, keys, order, m.payment); err == nil {
			break
		}
	}
	switch {
	case toss.ClassOf(err) == toss.NotFound:
		return found, nil
	case err != nil:
		return found, err
	case p.Held() > 0:
		found = discrepancy(order, orphan, "%d won at the provider for an order that is not ours: %s", p.Held(), p.OrderName)
	case rule.TransferRejected(p):
		found = discrepancy(order, orphan, "the bank returned a refund of an order that is not ours: %s", p.OrderName)
	default:
		return found, nil
	}
	found.KeySet, found.PaymentKey = string(keys), m.payment
	return found, nil
}

func discrepancy(order, kind, format string, args ...any) money.Discrepancy {
	return money.Discrepancy{OrderID: order, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// list stores the discrepancies of a report, and closes those of compared orders that no longer differ.
func (s *Service) list(ctx context.Context, report Report, compared []string, now time.Time) error {
	still := map[string][]string{orphan: {}, missing: {}, balance: {}}
	for _, d := range report.Discrepancies {
		if d.Resolution == "" {
			still[d.Kind] = append(still[d.Kind], d.OrderID)
		}
		if err := s.reportDiscrepancy(ctx, s.DB.Pool, d); err != nil {
			return err
		}
	}
	for kind, orders := range still {
		if err := postgres.ResolveDiscrepancies(ctx, s.DB.Pool, kind, compared, orders, settled, now); err != nil {
			return err
		}
	}
	s.Log.InfoContext(ctx, "reconciled with the provider", "orders", report.Compared, "discrepancies", len(report.Discrepancies), "failed", len(report.Failed))
	return nil
}

// ReconcileDue runs the comparisons that are due: a light one every few minutes, and a full one when fullInterval has passed
// since the last complete one. An incomplete one is repeated after a few minutes. complete reports whether a full comparison
// was completed.
func (s *Service) ReconcileDue(ctx context.Context, fullInterval time.Duration) (complete bool, err error) {
	began, completed, err := postgres.LastReconciliation(ctx, s.DB.Pool, Full)
	if err != nil {
		return false, err
	}
	now := s.now()
	if now.Sub(completed) >= fullInterval && now.Sub(began) >= retryInterval {
		_, err := s.Reconcile(ctx, Full, ReconcileSpan)
		return err == nil, err
	}
	if began, completed, err = postgres.LastReconciliation(ctx, s.DB.Pool, Light); err != nil || now.Sub(began) < lightInterval {
		return false, err
	}
	since := min(now.Sub(completed), ReconcileSpan-LightSpan) // an outage may have lasted longer than LightSpan
	_, err = s.Reconcile(ctx, Light, since+LightSpan)
	return false, err
}

const (
	lightInterval = 2 * time.Minute
	retryInterval = 5 * time.Minute
)

// ReportStuck lists the orders whose outcome has been unknown for too long, and the refunds that the bank has not
// transferred in time. Their slots stay occupied.
func (s *Service) ReportStuck(ctx context.Context) error {
	now := s.now()
	err := s.listOrders(ctx, stuck, "the provider has not reported the outcome for 15 minutes", postgres.Stuck, now.Add(-stuckAfter), now)
	if err != nil {
		return err
	}
	return s.listOrders(ctx, refundOverdueKind, "the bank has not transferred the refund within three business days", postgres.OverdueRefunds, now, now)
}

// overdue returns reservations, by order id, whose outcome is overdue at a time. id restricts the result to one reservation; 0 is
// all.
type overdue func(ctx context.Context, q postgres.Querier, id booking.ReservationID, at time.Time) (map[string]booking.ReservationID, error)

// listOrders records a discrepancy of one kind for each overdue order, and closes that kind for all other orders. Each order is
// looked up again under the lock of its reservation: an administrator may end it in the meantime.
func (s *Service) listOrders(ctx context.Context, kind, detail string, find overdue, at, now time.Time) error {
	orders, err := find(ctx, s.DB.Pool, 0, at)
	if err != nil {
		return err
	}
	for order, id := range orders {
		err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			if _, err := postgres.LockReservation(ctx, tx, id); err != nil {
				return err
			}
			if still, err := find(ctx, tx, id, at); err != nil || len(still) == 0 {
				return err
			}
			return s.report(ctx, tx, order, kind, detail)
		})
		if err != nil {
			return err
		}
	}
	still := slices.AppendSeq([]string{}, maps.Keys(orders))
	return postgres.ResolveDiscrepancies(ctx, s.DB.Pool, kind, nil, still, settled, now)
}
