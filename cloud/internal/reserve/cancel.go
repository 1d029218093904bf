package reserve

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// cancellation is the intent that is recorded before money moves.
type cancellation struct {
	by      string // customer, admin:<login id>, system:<reason>
	reason  string
	account *toss.RefundAccount
	policy  bool      // the branch's refund policy applies
	asked   time.Time // when the guest asked, which the policy goes by; zero: now
	keeps   int       // won that the policy leaves with the shop
	soon    bool      // the queue sends the refund, because no caller does
	stay    bool      // the whole stay ends, and its message covers the extensions
	unclear bool      // a purchase whose outcome is unknown may be ended: see endUnclear
	forced  bool      // no caller can name an account or try again later: the reservation ends now, and its money follows
}

// CancelRequest is a customer's request to cancel a payment.
type CancelRequest struct {
	ID      booking.ReservationID
	By      account.Principal
	Reason  string
	Account *toss.RefundAccount // for a virtual account whose deposit is complete
	Amount  *int                // won that the customer expects back; nil: what the policy returns
}

// Cancel refunds a customer's payment and frees the slot, or closes the virtual account if no deposit has arrived.
// Cancelling again changes nothing.
//
// Errors: ErrNotFound, ErrNotPayer, booking.ErrTooLateToCancel, ErrRefundChanged, ErrAccountRequired, ErrUnknownBank, *PaymentRefused
// (the reservation is as before), ErrPaymentPending (the key is revoked, the refund continues).
func (s *Service) Cancel(ctx context.Context, req CancelRequest) error {
	return s.cancel(ctx, req.ID, cancellation{by: "customer", reason: req.Reason, account: req.Account, policy: true}, func(c *change) error {
		r := c.r()
		switch {
		case r.Method == "":
			return ErrNotFound // a hold is released, not canceled
		case !r.BelongsTo(req.By.LoginType, req.By.LoginID):
			return ErrNotPayer
		case r.State == booking.Canceled, r.State == booking.Canceling:
			return nil
		}
		if err := r.CanCancel(c.now); err != nil || req.Amount == nil {
			return err
		}
		quote, err := c.quote()
		if err == nil && quote.Amount != *req.Amount {
			return ErrRefundChanged
		}
		return err
	}, func(c *change, refund *money.Refund) (waits bool, err error) {
		if c.r().State != booking.Done {
			return false, nil // the account is that of an earlier request
		}
		return c.noteCancelAccount(refund, cancellation{by: "customer", account: req.Account})
	})
}

// AdminCancelRequest is an administrator's request to end a reservation in any state.
type AdminCancelRequest struct {
	ID      booking.ReservationID
	Status  string // the state that the administrator saw: a booking.BookingStatus, or DONE for paid
	Account *toss.RefundAccount
	Reason  CancelReason
	By      account.Principal
}

// CancelReason is why an administrator ends a reservation, for the audit log, which holds no free text about guests.
type CancelReason string

const otherReason CancelReason = "other"

var cancelReasons = []CancelReason{"", "guest-request", "mistake", "double-booking", "out-of-order", "misuse", otherReason}

// ParseCancelReason returns the reason with a name, "other" for any other text. Empty: no reason was given.
func ParseCancelReason(name string) CancelReason {
	if reason := CancelReason(name); slices.Contains(cancelReasons, reason) {
		return reason
	}
	return otherReason
}

// AdminCancel ends a hold, closes a virtual account or refunds a payment, if the reservation is still in the state that the administrator saw.
// It drops a partner's booking in conflict. A purchase whose outcome has been unknown for SessionLimit is looked up once more and then ended.
//
// Errors: ErrNotFound, ErrQuarantine, ErrStatusMismatch, account.ErrBranchForbidden, account.ErrRoleForbidden, account.ErrScopeForbidden, and
// those of Cancel.
func (s *Service) AdminCancel(ctx context.Context, req AdminCancelRequest) error {
	if req.Status == string(booking.StatusConflict) {
		return s.dropConflict(ctx, req)
	}
	err := s.adminCancel(ctx, req, false)
	if !errors.Is(err, errUnclear) {
		return err
	}
	err = unlessOvertaken(func() error { return s.refresh(ctx, req.ID) })
	if err != nil && !errors.Is(err, ErrPaymentPending) {
		return err
	}
	return s.adminCancel(ctx, req, true)
}

func (s *Service) adminCancel(ctx context.Context, req AdminCancelRequest, lookedUp bool) error {
	intent := cancellation{by: req.By.Actor(), reason: "관리자 취소", account: req.Account, unclear: lookedUp}
	return s.cancel(ctx, req.ID, intent, func(c *change) error {
		r := c.r()
		if r.State == booking.Expired || r.State == booking.Released || (r.State == booking.Hold && !r.Occupies(c.now)) {
			return ErrNotFound
		}
		if _, err := c.reachable(req.By); err != nil {
			return err
		}
		if r.QuarantineOf != 0 {
			return ErrQuarantine
		}
		seen := booking.BookingStatus(req.Status)
		if req.Status == string(booking.Done) {
			seen = booking.StatusPaid
		}
		if seen == "" || seen != r.BookingStatus() {
			return ErrStatusMismatch
		}
		if forbidden := mayRefund(req.By); forbidden != nil {
			if refunds, err := c.wouldRefund(); err != nil || refunds {
				return cmp.Or(err, forbidden)
			}
		}
		if lookedUp {
			return nil
		}
		return c.unlessUnclear()
	}, func(c *change, refund *money.Refund) (waits bool, err error) {
		account := req.Account
		if c.r().State == booking.Canceling {
			account = nil // the refund goes to the account of an earlier request
		} else if waits, err = c.noteCancelAccount(refund, intent); err != nil {
			return false, err
		}
		return waits, c.audited(req.By, "reservation.cancel", withReason(accountDetail(account, waits), req.Reason))
	})
}

// mayRefund returns an error for an administrator or a token that may not return money.
func mayRefund(by account.Principal) error {
	switch {
	case by.Role == account.FrontDesk:
		return account.ErrRoleForbidden
	case !by.Has(account.ScopeMoney):
		return account.ErrScopeForbidden
	}
	return nil
}

// wouldRefund reports whether the end of the reservation, and of the extensions that end with it, returns money.
func (c *change) wouldRefund() (bool, error) {
	following, err := c.following()
	return paidFor(c.r(), following), err
}

func paidFor(r booking.Reservation, following []booking.Reservation) bool {
	unpaid := r.State == booking.Hold || r.State == booking.WaitingForDeposit
	return !unpaid && r.Amount > 0 || slices.ContainsFunc(following, func(e booking.Reservation) bool { return e.State == booking.Done && e.Amount > 0 })
}

// MayAdminCancel returns an error if AdminCancel refuses the principal because the end of the reservation returns money.
func (s *Service) MayAdminCancel(ctx context.Context, by account.Principal, r booking.Reservation) error {
	forbidden := mayRefund(by)
	if forbidden == nil || r.State == booking.Conflict {
		return nil
	}
	following, err := postgres.ExtensionsAfter(ctx, s.DB.Pool, r)
	if err == nil && paidFor(r, following) {
		return forbidden
	}
	return err
}

// noteCancelAccount records the account of a cancellation at its refund. waits reports that another administrator has to approve it.
func (c *change) noteCancelAccount(refund *money.Refund, intent cancellation) (waits bool, err error) {
	if refund == nil || refund.State != money.RefundRequested || len(refund.Account) == 0 {
		return false, nil
	}
	if c.Payment, err = postgres.PaymentOf(c.ctx, c.tx, c.r().ID); err != nil {
		return false, err
	}
	return c.noteAccount(refund.ID, intent.account, intent.by)
}

// cancel decides under the row's lock how to cancel the reservation, then sends the refund if there is one. The functions
// in then run in the same transaction; if one returns waits, the refund is not sent.
func (s *Service) cancel(ctx context.Context, id booking.ReservationID, intent cancellation, allow func(*change) error, then ...func(*change, *money.Refund) (waits bool, err error)) error {
	if err := s.lookUpTransfer(ctx, id); err != nil {
		return err
	}
	var refund *money.Refund // in progress
	err := s.locked(ctx, id, func(c *change) error {
		refund = nil
		if err := allow(c); err != nil {
			return err
		}
		refunding, err := c.cancel(intent)
		if err != nil {
			return err
		}
		if refunding {
			if refund, err = currentRefund(c.ctx, c.tx, id); err != nil {
				return err
			}
		}
		if refund != nil && refund.Waits() { // since an earlier request
			refund = nil
		}
		for _, do := range then {
			waits, err := do(c, refund)
			if err != nil {
				return err
			}
			if waits {
				refund = nil
			}
		}
		failpoint.Hit("cancel.beginning")
		return nil
	})
	if err != nil || refund == nil || refund.KeepsStay {
		return err // the queue sends a part and the rest of a reservation that has ended
	}
	return s.runRefund(ctx, *refund)
}

// lookUpTransfer looks up the part that the bank is transferring, so that a cancellation knows its outcome. Without an
// answer the cancellation does not wait for it.
func (s *Service) lookUpTransfer(ctx context.Context, id booking.ReservationID) error {
	f, err := currentRefund(ctx, s.DB.Pool, id)
	if err != nil || f == nil || !f.KeepsStay || f.State != money.RefundPending {
		return err
	}
	err = unlessOvertaken(func() error { return s.refresh(ctx, id) })
	if errors.Is(err, ErrPaymentPending) {
		return nil
	}
	return err
}

// cancel executes a request to cancel, and reports whether a refund may be in progress. A guest cancels before the PIN is disclosed,
// so the freed time needs no quarantine.
func (c *change) cancel(intent cancellation) (refunding bool, err error) {
	refunding, err = c.execute(intent)
	if err != nil || intent.by != "customer" || c.r().Extends != 0 {
		return refunding, err
	}
	return refunding, postgres.LiftQuarantine(c.ctx, c.tx, c.r().ID, c.r().Start)
}

func (c *change) execute(intent cancellation) (refunding bool, err error) {
	known, err := c.charged()
	if err != nil {
		return false, err
	}
	if c.r().State == booking.Done && intent.account == nil && !intent.forced {
		if needed, err := c.needsAccount(); err != nil || needed {
			return false, cmp.Or(err, ErrAccountRequired)
		}
	}
	if known && c.r().State == booking.Done {
		if ended, err := c.cancelPaid(&intent); ended || err != nil {
			return ended, err
		}
	}
	switch rule.Cancel(c.r(), known, intent.account != nil) {
	case rule.Release:
		_, err := postgres.SetState(c.ctx, c.tx, c.r().ID, booking.Hold, booking.Released)
		return false, err
	case rule.Pending:
		if intent.unclear && c.SessionOver(c.now) {
			return false, c.endUnclear()
		}
		return false, ErrPaymentPending
	case rule.NeedAccount:
		return false, ErrAccountRequired
	case rule.End:
		if err := c.endExtensions(intent); err != nil { // before end, which refunds them in full
			return false, err
		}
		return false, c.end(0)
	case rule.Refund:
		if err := c.checkFollowing(intent); err != nil {
			return false, err
		}
		return true, c.startRefund(intent)
	case rule.Join:
		return true, nil
	}
	return false, nil
}

// accountDetail is the audit detail of an account: its bank, its last digits, and whether another administrator has to
// approve it. The audit log holds no names.
func accountDetail(to *toss.RefundAccount, waits bool) map[string]any {
	if to == nil {
		return nil
	}
	return map[string]any{"bank": to.Bank, "account": "..." + lastDigits(to.Number), "approval": waits}
}

// withReason adds a reason, which may be empty, to an audit detail.
func withReason(detail map[string]any, reason CancelReason) map[string]any {
	switch {
	case reason == "":
		return detail
	case detail == nil:
		detail = map[string]any{}
	}
	detail["reason"] = reason
	return detail
}

// charged reports whether the provider holds, or may receive, money for the reservation. It is false for reservations that
// an administrator registered or a partner reported.
func (c *change) charged() (bool, error) {
	p, err := postgres.PaymentOf(c.ctx, c.tx, c.r().ID)
	c.Payment = p
	if errors.Is(err, postgres.ErrNoPayment) {
		return false, nil
	}
	return err == nil, err
}
