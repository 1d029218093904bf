package reserve

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
)

// Quote is what a customer's cancellation returns at this moment.
type Quote struct {
	Amount       int // won, with the extensions that end with the reservation
	Paid         int // won for which the stay was sold
	Percent      int // of the reservation itself
	Policy       booking.RefundPolicy
	CancelUntil  time.Time
	NeedsAccount bool // a deposit is returned, so the guest names an account
}

// RefundQuote returns what a cancellation by the customer returns now, under the policies that were fixed at the payments.
//
// Errors: ErrNotFound, ErrNotPayer, account.ErrBranchForbidden, booking.ErrTooLateToCancel, ErrPaymentPending (a cancellation is in progress).
func (s *Service) RefundQuote(ctx context.Context, id booking.ReservationID, by account.Principal) (quote Quote, err error) {
	err = s.locked(ctx, id, func(c *change) error {
		r := c.r()
		if by.Administrator() {
			if _, err := c.reachable(by); err != nil {
				return err
			}
		} else if !r.BelongsTo(by.LoginType, by.LoginID) {
			return ErrNotPayer
		}
		if r.State == booking.Canceling {
			return ErrPaymentPending
		}
		if r.Method == "" || r.State != booking.Done && r.State != booking.WaitingForDeposit {
			return ErrNotFound
		}
		if err := r.CanCancel(c.now); err != nil {
			return err
		}
		quote, err = c.quote()
		return err
	})
	return quote, err
}

// quote reports what a cancellation by the guest returns now, with the extensions that end with the reservation.
func (c *change) quote() (Quote, error) {
	r := c.r()
	policy, won, err := c.returns()
	if err != nil {
		return Quote{}, err
	}
	quote := Quote{
		Amount: won, Paid: r.Amount, Percent: policy.Percent(r.Start, c.now), Policy: policy.OrDefault(), CancelUntil: r.RefundDeadline(),
		NeedsAccount: r.State == booking.Done && r.Method == booking.VirtualAccount,
	}
	following, err := c.following()
	if err != nil {
		return Quote{}, err
	}
	for _, e := range following {
		if e.State != booking.Done {
			continue
		}
		_, won, err := c.on(e).returns()
		if err != nil {
			return Quote{}, err
		}
		quote.Amount += won
		quote.Paid += e.Amount
		quote.NeedsAccount = quote.NeedsAccount || e.Method == booking.VirtualAccount
	}
	return quote, nil
}

// returns reports what a cancellation of the reservation by its guest returns, without its extensions.
func (c *change) returns() (policy booking.RefundPolicy, won int, err error) {
	r := c.r()
	if c.Payment, err = postgres.PaymentOf(c.ctx, c.tx, r.ID); err != nil && !errors.Is(err, postgres.ErrNoPayment) {
		return policy, 0, err
	}
	if policy, err = postgres.RefundPolicyOf(c.ctx, c.tx, r.ID); err != nil || r.PaidAt.IsZero() {
		return policy, 0, err
	}
	return policy, policy.Refund(c.Left(), r.Start, c.now), nil
}

// kept returns the won of a paid reservation that the guest does not have back.
func kept(r booking.Reservation, payment money.Payment, current money.Refund) int {
	won := rule.Snapshot{Reservation: r, Payment: payment}.Left()
	if current.Outstanding() {
		won += current.Amount
	}
	return won
}

// Balance is the won that a guest has paid and does not have back. A transfer that the bank has not completed, or has rejected, is
// included.
type Balance struct {
	Own        int // of the reservation's payment
	ByHand     int // of it: the sum to return by hand, without the share of the shop; see SettleOutside
	Extensions int // of the extensions that end with the reservation, which the provider refunds with it
}

// BalancesByID returns what BalancesOf does for the reservations with these ids.
func (s *Service) BalancesByID(ctx context.Context, ids ...booking.ReservationID) (map[booking.ReservationID]Balance, error) {
	list, err := postgres.Reservations(ctx, s.DB.Pool, ids...)
	if err != nil {
		return nil, err
	}
	return s.BalancesOf(ctx, list...)
}

// BalancesOf returns, by id, what the end of each reservation by an administrator returns, which no policy reduces. Reservations for
// which nothing was paid are missing.
func (s *Service) BalancesOf(ctx context.Context, list ...booking.Reservation) (map[booking.ReservationID]Balance, error) {
	ids, roots := make([]booking.ReservationID, len(list)), make([]booking.ReservationID, len(list))
	for i, r := range list {
		ids[i], roots[i] = r.ID, cmp.Or(r.Extends, r.ID)
	}
	extensions, err := postgres.ConfirmedExtensions(ctx, s.DB.Pool, roots)
	if err != nil {
		return nil, err
	}
	for _, e := range extensions {
		ids = append(ids, e.ID)
	}
	payments, err := postgres.PaymentsOf(ctx, s.DB.Pool, ids)
	if err != nil {
		return nil, err
	}
	refunds, err := postgres.CurrentRefunds(ctx, s.DB.Pool, ids)
	if err != nil {
		return nil, err
	}
	unreturned := func(r booking.Reservation) (won int, paid bool) {
		payment, paid := payments[r.ID]
		if !paid || r.PaidAt.IsZero() {
			return 0, false
		}
		return kept(r, payment, refunds[r.ID]), true
	}
	balances := map[booking.ReservationID]Balance{}
	for _, r := range list {
		own, paid := unreturned(r)
		b := Balance{Own: own}
		if f := refunds[r.ID]; paid {
			b.ByHand = max(0, owed(own, payments[r.ID], &f))
		}
		for _, e := range extensions {
			if e.Extends != cmp.Or(r.Extends, r.ID) || e.Start.Before(r.End) {
				continue
			}
			won, of := unreturned(e)
			b.Extensions, paid = b.Extensions+won, paid || of
		}
		if paid {
			balances[r.ID] = b
		}
	}
	return balances, nil
}
