package reserve

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// stay is a reservation with its live extensions in order of time. All rows are locked.
type stay struct {
	root       booking.Reservation
	extensions []booking.Reservation
}

// lockStay locks a reservation and its extensions, or returns ErrNotFound.
func lockStay(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (stay, error) {
	root, err := postgres.LockReservation(ctx, tx, id)
	if errors.Is(err, booking.ErrNoReservation) {
		return stay{}, ErrNotFound
	}
	if err != nil {
		return stay{}, err
	}
	extensions, err := postgres.LockExtensions(ctx, tx, id)
	return stay{root, extensions}, err
}

// confirmed returns the confirmed reservations of the stay, the root first.
func (s stay) confirmed() []booking.Reservation {
	list := []booking.Reservation{s.root}
	for _, e := range s.extensions {
		if e.State == booking.Done {
			list = append(list, e)
		}
	}
	return list
}

// price returns the won for which the stay was sold.
func (s stay) price() (won int) {
	for _, r := range s.confirmed() {
		won += r.Amount
	}
	return won
}

func ids(list []booking.Reservation) []booking.ReservationID {
	all := make([]booking.ReservationID, len(list))
	for i, r := range list {
		all[i] = r.ID
	}
	return all
}

// dropUnpaid ends the extensions of a stay that are not paid: holds are released, payments in progress abandoned, and
// virtual accounts closed.
func (c *change) dropUnpaid(s stay) error {
	unpaid := slices.DeleteFunc(slices.Clone(s.extensions), func(r booking.Reservation) bool { return r.State == booking.Done })
	return c.endEach(unpaid, cancellation{by: rule.ByStay, reason: "이용 변경", forced: true})
}

// endExtensions ends the extensions that follow the reservation: without it they would not be reachable. Their refunds are
// requests of their own.
func (c *change) endExtensions(intent cancellation) error {
	following, err := c.following()
	if err != nil {
		return err
	}
	intent.stay = intent.stay || c.r().Extends == 0
	return c.endEach(following, intent)
}

// endFollowing ends the extensions that follow the reservation, which ends now: as its cancellation asked, by the refund that is in
// progress, otherwise in full.
func (c *change) endFollowing() error {
	f := c.Refund
	if c.r().State != booking.Canceling || f == nil {
		return c.endExtensions(cancellation{by: rule.ByStay, reason: "예약 취소", forced: true})
	}
	sealed := f.Account
	if sealed == nil {
		sealed = f.ExtensionAccount
	}
	account, err := c.openAccount(sealed)
	if err != nil {
		return err
	}
	return c.endExtensions(cancellation{by: f.By, reason: f.Reason, account: account, policy: !f.PolicyAt.IsZero(), asked: f.PolicyAt, forced: true})
}

// checkFollowing returns ErrRefundOpen if a refund of an extension that ends with the reservation has no answer yet.
func (c *change) checkFollowing(intent cancellation) error {
	if intent.forced {
		return nil
	}
	following, err := c.following()
	for _, e := range following {
		if err != nil {
			break
		}
		if e.State != booking.Done || e.Method == booking.VirtualAccount && intent.account == nil {
			continue
		}
		var f *money.Refund
		if f, err = currentRefund(c.ctx, c.tx, e.ID); err == nil && f != nil && f.State == money.RefundRequested {
			err = ErrRefundOpen
		}
	}
	return err
}

// keepAccount stores the account of a cancellation with its refund for the extensions that a deposit has paid, unless the refund goes to
// that account itself.
func (c *change) keepAccount(refund *money.Refund, to *toss.RefundAccount) error {
	if to == nil || refund.Account != nil {
		return nil
	}
	following, err := c.following()
	if err != nil || !slices.ContainsFunc(following, paidByDeposit) {
		return err
	}
	refund.ExtensionAccount, err = c.sealAccount(to)
	return err
}

func paidByDeposit(r booking.Reservation) bool {
	return r.State == booking.Done && r.Method == booking.VirtualAccount
}

// following locks and returns the live extensions after the reservation, which end with it.
func (c *change) following() ([]booking.Reservation, error) {
	r := c.r()
	extensions, err := postgres.LockExtensions(c.ctx, c.tx, cmp.Or(r.Extends, r.ID))
	return slices.DeleteFunc(extensions, func(e booking.Reservation) bool { return e.Start.Before(r.End) || e.ID == r.ID }), err
}

// endEach ends extensions, the last one first.
func (c *change) endEach(extensions []booking.Reservation, intent cancellation) error {
	for _, e := range slices.Backward(extensions) {
		if err := c.on(e).endExtension(intent); err != nil {
			return err
		}
	}
	return nil
}

// on returns a change of another reservation in the same transaction. The caller has locked its row.
func (c *change) on(r booking.Reservation) *change { return c.change(c.ctx, c.tx, r, c.now) }

func (c *change) endExtension(intent cancellation) error {
	r := c.r()
	switch r.State {
	case booking.Hold, booking.Confirming:
		return c.giveUp()
	case booking.Done, booking.WaitingForDeposit:
	default:
		return nil
	}
	if paidByDeposit(r) && intent.account == nil {
		return c.endWithoutAccount(intent.by)
	}
	intent.soon, intent.keeps = true, 0 // the refund policy applies to each payment by its own start
	refunding, err := c.cancel(intent)
	if err != nil || !refunding {
		return err
	}
	refund, err := currentRefund(c.ctx, c.tx, r.ID)
	if err != nil {
		return err
	}
	_, err = c.noteCancelAccount(refund, intent)
	return err
}

// endWithoutAccount cancels a reservation whose deposit cannot be refunded until the guest names an account.
func (c *change) endWithoutAccount(by string) error {
	payment, err := postgres.PaymentOf(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	part, err := c.openPartOf(cancellation{forced: true})
	if err != nil {
		return err
	}
	if err := c.end(0); err != nil || part != nil || payment.Balance == 0 {
		return err // returnRest refunds the rest, or parts have returned everything
	}
	return c.startLateRefund(toss.Payment{Method: toss.MethodVirtualAccount}, by, payment.Balance)
}

// needsAccount reports whether a cancellation of the reservation has to name an account for the deposit of an extension.
func (c *change) needsAccount() (bool, error) {
	extensions, err := postgres.LockExtensions(c.ctx, c.tx, c.r().ID)
	return slices.ContainsFunc(extensions, paidByDeposit), err
}
