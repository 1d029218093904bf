package reserve

import (
	"cmp"
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
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// rebuilder is the author of the reservations that a rebuild creates.
const rebuilder = "system:rebuild"

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Orders int              // that the provider has and the database lacked
	Left   []string         // orders whose money an administrator has to refund: they are listed as orphans
	Failed map[string]error // by order: why it could not be rebuilt; the rebuild stays open

	Retired []string // codes of the legal entities whose orders were not read, because they are retired
}

// Err returns nil if every order could be rebuilt.
func (r Rebuilt) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	order := slices.Min(slices.Collect(maps.Keys(r.Failed)))
	return fmt.Errorf("reserve: rebuild: %d orders are left, among them %s: %w", len(r.Failed), order, r.Failed[order])
}

// Rebuild brings the database up to the provider's books after a backup was restored. Changes of known orders are
// applied first, so that the times of reservations that ended meanwhile are free. Each order that the database lacks
// becomes a reservation again, with a new key, from what its order id contains; if its time is taken or over, the payment is
// refunded. The guest is notified either way. The rebuild ends when every order of every legal entity in use has been decided; until then no
// time can be taken.
func (s *Service) Rebuild(ctx context.Context, span time.Duration) (Rebuilt, error) {
	result := Rebuilt{Failed: map[string]error{}}
	now := s.now()
	theirs, err := s.transactions(ctx, now.Add(-span), now)
	if err != nil {
		return result, err
	}
	result.Retired = theirs.retired
	if err := s.reconcileKnown(ctx, span); err != nil && !errors.Is(err, ErrBooksUnavailable) {
		return result, err
	}
	if err := s.settleOpen(ctx); err != nil {
		return result, err
	}
	known, err := postgres.ProviderBalances(ctx, s.DB.Pool, slices.Collect(maps.Keys(theirs.orders)), now)
	if err != nil {
		return result, err
	}
	for _, order := range s.byStart(ctx, theirs.orders) {
		ours, ok := known[order]
		switch {
		case ok && ours.Open: // for example an account whose deposit arrived after the backup
			if err := s.Settle(ctx, ours.Reservation); err != nil {
				s.Log.WarnContext(ctx, "rebuild: not settled yet", "order_id", order, "error", err)
			}
			continue
		case ok, theirs.orders[order].won == 0:
			continue
		}
		result.Orders++
		switch err := s.rebuildOrder(ctx, order, theirs.orders[order].payment); {
		case errors.Is(err, errForeignOrder):
			result.Left = append(result.Left, order)
		case err != nil:
			s.Log.WarnContext(ctx, "rebuild: an order could not be rebuilt", "order_id", order, "error", err)
			result.Failed[order] = err
		}
	}
	if err := errors.Join(result.Err(), theirs.unavailable()); err != nil {
		return result, err
	}
	if err := s.reconcileKnown(ctx, span); err != nil { // closes the discrepancies of the orders that are rebuilt
		return result, err
	}
	s.Log.InfoContext(ctx, "reservations rebuilt from the provider's books", "orders", result.Orders, "left", len(result.Left))
	return result, postgres.EndRebuild(ctx, s.DB.Pool, s.now())
}

// byStart returns orders in the order of their times: an extension follows its stay.
func (s *Service) byStart(ctx context.Context, orders map[string]moved) []string {
	starts := map[string]time.Time{}
	for order := range orders {
		if o, err := s.openOrderID(ctx, order); err == nil {
			starts[order] = o.Times.Start
		}
	}
	return slices.SortedFunc(maps.Keys(orders), func(a, b string) int {
		return cmp.Or(starts[a].Compare(starts[b]), cmp.Compare(a, b))
	})
}

// RebuildDue rebuilds if a rebuild is open, and reports whether it was.
func (s *Service) RebuildDue(ctx context.Context) (bool, error) {
	open, err := postgres.RebuildOpen(ctx, s.DB.Pool)
	if err != nil || !open {
		return false, err
	}
	_, err = s.Rebuild(ctx, ReconcileSpan)
	return true, err
}

// maxOpen bounds the reservations that a rebuild settles first.
const maxOpen = 1000

// settleOpen settles the reservations whose outcome the backup has left open. The time of those that have ended since may have been sold again.
func (s *Service) settleOpen(ctx context.Context) error {
	open, err := postgres.Unsettled(ctx, s.DB.Pool, s.now().Add(ReconcileSpan), maxOpen)
	for _, id := range open {
		if err := s.Settle(ctx, id); err != nil {
			s.Log.WarnContext(ctx, "rebuild: not settled yet", "reservation", id, "error", err)
		}
	}
	return err
}

// reconcileKnown compares all orders. Orders that cannot be compared are listed; they keep their times and block nothing.
func (s *Service) reconcileKnown(ctx context.Context, span time.Duration) error {
	report, err := s.Reconcile(ctx, Full, span)
	if err != nil && report.Err() != nil && !errors.Is(err, ErrBooksUnavailable) {
		s.Log.WarnContext(ctx, "rebuild: the comparison is incomplete", "error", err)
		return nil //nolint:nilerr // the orders that failed are in the report
	}
	return err
}

// rebuildOrder makes a reservation of an order that the database lacks and applies the provider's answer to it. It returns
// errForeignOrder if the order id contains no reservation, or the payment is in a state that only a person can judge. listed is the key of
// the payment that the provider lists; it may be empty.
func (s *Service) rebuildOrder(ctx context.Context, order, listed string) error {
	o, err := s.openOrderID(ctx, order)
	if err != nil {
		return err
	}
	p, err := s.payment(ctx, o.keySet(), order, listed)
	if err != nil {
		return err
	}
	if p.Status != toss.StatusDone && p.Status != toss.StatusWaitingForDeposit {
		return errForeignOrder
	}
	id, err := s.adopt(ctx, order, o, p)
	if err != nil {
		return err
	}
	if err := s.Settle(ctx, id); err != nil && !errors.Is(err, ErrPaymentPending) {
		return err
	}
	return nil
}

// adopt records a payment of the provider as the attempt of its order, whose reservation it creates unless the backup has it.
// From then on the order is like any other whose outcome is not known yet.
func (s *Service) adopt(ctx context.Context, order string, o ordered, p toss.Payment) (id booking.ReservationID, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, o.Room); err != nil {
			return err
		}
		r, err := postgres.LockOrder(ctx, tx, order)
		if errors.Is(err, booking.ErrNoReservation) {
			r, err = postgres.InsertLost(ctx, tx, s.lost(order, o, p, now), now)
		}
		if errors.Is(err, booking.ErrNoReservation) {
			return errForeignOrder // its room is lost, too
		}
		if err != nil {
			return err
		}
		id = r.ID
		if _, err := postgres.PaymentOf(ctx, tx, r.ID); err == nil || !errors.Is(err, postgres.ErrNoPayment) {
			return err // another process has adopted it
		}
		return s.change(ctx, tx, r, now).adopted(o.keySet(), p)
	})
	return id, err
}

func (s *Service) lost(order string, o ordered, p toss.Payment, now time.Time) postgres.LostReservation {
	contact := booking.Contact{Mobile: o.Mobile, Language: o.Language, Name: unnamed}
	if p.VirtualAccount != nil {
		contact.Name = cmp.Or(p.VirtualAccount.CustomerName, unnamed)
	}
	return postgres.LostReservation{
		NewHold: postgres.NewHold{
			Room: o.Room, Interval: o.Times, Source: o.Source, Token: newToken().hash(), ExpiresAt: now.Add(s.HoldTTL), By: rebuilder,
		},
		Contact: contact, OrderID: order, LegalEntity: o.Entity, Amount: p.TotalAmount,
	}
}

// unnamed is the name of a guest whose name is lost.
const unnamed = "고객"

// adopted records the payment. A hold whose time is taken meanwhile, or an order that was replaced, stays given up: its payment
// is then refunded as any that comes too late.
func (c *change) adopted(keys toss.KeySet, p toss.Payment) error {
	r := c.r()
	if r.State == booking.Hold && r.Occupies(c.now) {
		if _, err := postgres.SetState(c.ctx, c.tx, r.ID, booking.Hold, booking.Confirming); err != nil {
			return err
		}
	}
	err := postgres.StartAttempt(c.ctx, c.tx, money.Payment{
		Reservation: r.ID, KeySet: string(keys), PaymentKey: p.PaymentKey, ConfirmKey: newConfirmKey(r.OrderID), AttemptedAt: c.now,
	}, c.now)
	if err != nil {
		return err
	}
	if err := c.Queue.Settle(c.ctx, c.tx, r.ID, c.now.Add(watchdogDelay)); err != nil {
		return err
	}
	return c.entry("confirm.rebuilt", p.TotalAmount, "", nil)
}
