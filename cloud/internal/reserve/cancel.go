package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// CancelRequest is a customer's wish to cancel a payment.
type CancelRequest struct {
	ID        booking.ReservationID
	LoginType booking.LoginType
	LoginID   string
	Reason    string
	Account   *toss.RefundAccount // for a virtual account whose deposit is complete
}

// cancellation is the intent that is written down before money moves.
type cancellation struct {
	by      string // customer, admin:<login id>, system:<why>
	reason  string
	account *toss.RefundAccount
	audit   audit.Entry
}

// Cancel refunds a customer's payment and frees the slot, or closes the account that waits for the deposit. What is
// cancelled already stays so.
//
// Errors: ErrNotFound, ErrNotPayer, booking.ErrTooLateToCancel, ErrAccountRequired, ErrUnknownBank, *PaymentRefused
// (the reservation stands as before), ErrPaymentPending (the key is dead, the refund goes on).
func (s *Service) Cancel(ctx context.Context, req CancelRequest) error {
	return s.cancel(ctx, req.ID, func(r booking.Reservation, now time.Time) (cancellation, error) {
		c := cancellation{by: "customer", reason: req.Reason, account: req.Account}
		switch {
		case r.Method == "":
			return c, ErrNotFound // a hold is released, not cancelled
		case !r.BelongsTo(req.LoginType, req.LoginID):
			return c, ErrNotPayer
		case r.State == booking.Canceled, r.State == booking.Canceling:
			return c, nil
		}
		return c, r.CanCancel(now)
	})
}

// AdminCancelRequest is an administrator's wish to cancel whatever the reservation is.
type AdminCancelRequest struct {
	ID      booking.ReservationID
	Status  string // what the administrator believes: a booking.BookingStatus, or DONE for paid
	Account *toss.RefundAccount
	By      string                              // login id
	Scope   func(branch booking.BranchID) error // nil error: the administrator may act there
	Audit   audit.Entry                         // actor, action and detail
}

// AdminCancel ends a hold, closes a waiting account or refunds a payment, if the reservation is what the administrator
// believes it to be.
//
// Errors: ErrNotFound, Scope's, ErrStatusMismatch, and those of Cancel.
func (s *Service) AdminCancel(ctx context.Context, req AdminCancelRequest) error {
	return s.cancel(ctx, req.ID, func(r booking.Reservation, now time.Time) (cancellation, error) {
		c := cancellation{by: "admin:" + req.By, reason: "관리자 취소", account: req.Account, audit: req.Audit}
		if r.State == booking.Expired || r.State == booking.Released || (r.State == booking.Hold && !r.Occupies(now)) {
			return c, ErrNotFound
		}
		if err := req.Scope(r.Branch); err != nil {
			return c, err
		}
		believed := booking.BookingStatus(req.Status)
		if req.Status == string(booking.Done) {
			believed = booking.StatusPaid
		}
		if believed == "" || believed != r.BookingStatus() {
			return c, ErrStatusMismatch
		}
		return c, nil
	})
}

// cancel decides under the row's lock what a cancellation means for the reservation as it is, and then has the money
// follow.
func (s *Service) cancel(ctx context.Context, id booking.ReservationID, allow func(booking.Reservation, time.Time) (cancellation, error)) error {
	var refund money.Refund // under way
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		refund = money.Refund{}
		r, err := postgres.LockReservation(ctx, tx, id)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		c, err := allow(r, now)
		if err != nil {
			return err
		}
		if err := s.audit(ctx, tx, c.audit, r); err != nil {
			return err
		}
		known, err := charged(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		switch rule.Cancel(r, known, c.account != nil) {
		case rule.Release:
			_, err := postgres.SetState(ctx, tx, r.ID, booking.Hold, booking.Released)
			return err
		case rule.Pending:
			return ErrPaymentPending
		case rule.NeedAccount:
			return ErrAccountRequired
		case rule.End:
			return s.end(ctx, tx, r, now)
		case rule.Over:
			return nil
		case rule.Refund:
			if err := s.startRefund(ctx, tx, r, c, now); err != nil {
				return err
			}
		}
		refund, err = postgres.CurrentRefund(ctx, tx, id)
		failpoint.Hit("cancel.beginning")
		return err
	})
	if err != nil || refund.ID == 0 {
		return err
	}
	return s.runRefund(ctx, refund)
}

// end cancels a reservation of which the provider knows nothing.
func (s *Service) end(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
	return errors.Join(
		postgres.MarkCanceled(ctx, tx, r.ID, now),
		s.notifyCanceled(ctx, tx, r),
		s.unblock(ctx, tx, r.ID),
	)
}

// charged reports whether the provider holds, or may come to hold, money of the reservation: not of one that an
// administrator registered, or that came from a partner.
func charged(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (bool, error) {
	_, err := postgres.PaymentOf(ctx, tx, id)
	if errors.Is(err, postgres.ErrNoPayment) {
		return false, nil
	}
	return err == nil, err
}
