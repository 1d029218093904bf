package reserve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// PartRequest is an administrator's request to return a part of a payment, or all of it, while the reservation stays as it
// is.
type PartRequest struct {
	ID      booking.ReservationID
	Amount  int // won
	Reason  string
	Account *toss.RefundAccount // for a virtual account
	By      account.Principal   `json:"-"`

	IdempotencyKey string `json:"-"` // optional: the same key with the same request has the same answer
}

// RefundResult is the answer to a request for a refund.
type RefundResult struct {
	ID      int64
	Amount  int
	Balance int  // won of the payment that are not refunded
	Waits   bool // another administrator has to approve the refund
}

// RefundPart returns a part of a payment through the provider. The key and the reservation stay. The reservation may have
// been canceled with a part of its payment retained.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNothingToRefund, ErrExceedsBalance, ErrRefundOpen, ErrKeyReused,
// ErrAccountRequired, ErrUnknownBank, *PaymentRefused (nothing is returned), ErrPaymentPending (the refund continues).
func (s *Service) RefundPart(ctx context.Context, req PartRequest) (RefundResult, error) {
	var (
		result RefundResult
		refund money.Refund
	)
	err := s.locked(ctx, req.ID, func(c *change) error {
		result, refund = RefundResult{}, money.Refund{}
		if _, err := c.reachable(req.By); err != nil {
			return err
		}
		known, found, err := c.repeated(req.IdempotencyKey, req)
		if err != nil {
			return err
		}
		if known {
			result = found
			refund, err = postgres.RefundByID(c.ctx, c.tx, found.ID)
			return err
		}
		if result, err = c.openPart(req); err != nil {
			return err
		}
		if refund, err = postgres.RefundByID(c.ctx, c.tx, result.ID); err != nil {
			return err
		}
		if err := c.noteRequest(req.IdempotencyKey, req, result); err != nil {
			return err
		}
		failpoint.Hit("refund.beginning")
		return c.audited(req.By, "reservation.refund-part", map[string]any{"amount": req.Amount, "reason": req.Reason, "account": accountDetail(req.Account, result.Waits)})
	})
	if err != nil || result.Waits {
		return result, err
	}
	switch refund.State {
	case money.RefundRequested:
		return result, s.runRefund(ctx, refund)
	case money.RefundRefused:
		return result, &PaymentRefused{Code: refund.ErrorCode, Message: refund.ErrorMessage}
	}
	return result, nil
}

// openPart checks a request and records the intent. Nothing is sent before the transaction is committed.
func (c *change) openPart(req PartRequest) (RefundResult, error) {
	if err := c.checkPart(req); err != nil {
		return RefundResult{}, err
	}
	id, err := c.startPart(req.Amount, req.Reason, req.By.Actor(), req.Account)
	if err != nil {
		return RefundResult{}, err
	}
	waits, err := c.noteAccount(id, c.depositAccount(req.Account), req.By)
	if err == nil && !waits && c.above(c.r().Amount-c.left()+req.Amount) {
		waits, err = true, c.awaitApproval(id, req.By, money.AmountApprovalRequired)
	}
	return RefundResult{ID: id, Amount: req.Amount, Balance: c.left() - req.Amount, Waits: waits}, err
}

func (c *change) checkPart(req PartRequest) (err error) {
	if c.Snapshot, err = load(c.ctx, c.tx, c.r()); errors.Is(err, postgres.ErrNoPayment) {
		return ErrNothingToRefund
	}
	r := c.r()
	switch {
	case err != nil:
		return err
	case r.PaidAt.IsZero():
		return ErrNothingToRefund
	case c.Refund != nil:
		return ErrRefundOpen
	case r.State != booking.Done && r.State != booking.Canceled, c.left() <= 0:
		return ErrNothingToRefund
	case req.Amount > c.left():
		return ErrExceedsBalance
	case r.Method == booking.VirtualAccount && req.Account == nil:
		return ErrAccountRequired
	}
	return nil
}

// left returns the won of a paid reservation that are not refunded.
func (c *change) left() int {
	switch p := c.Payment; p.Status {
	case toss.StatusDone, toss.StatusPartialCanceled:
		return p.Balance - p.SettledOutside
	case toss.StatusCanceled:
		return 0
	}
	return c.r().Amount
}

// depositAccount returns the account if the payment is a deposit: the provider accepts an account for nothing else.
func (c *change) depositAccount(to *toss.RefundAccount) *toss.RefundAccount {
	if c.r().Method != booking.VirtualAccount {
		return nil
	}
	return to
}

// startPart records a refund that keeps the stay.
func (c *change) startPart(won int, reason, by string, to *toss.RefundAccount) (id int64, err error) {
	refund := money.Refund{
		Reservation: c.r().ID, Reason: reason, Amount: won, By: by, IdempotencyKey: newCancelKey(c.r().ID), KeepsStay: true, Part: true,
	}
	if to = c.depositAccount(to); to != nil {
		if refund.Account, err = c.sealAccount(to); err != nil {
			return 0, err
		}
	}
	if id, err = postgres.OpenRefund(c.ctx, c.tx, refund); err != nil {
		return 0, err
	}
	if err := c.settleAt(c.now.Add(watchdogDelay)); err != nil {
		return 0, err
	}
	return id, c.entry("refund.requested", won, "", map[string]any{"by": by})
}

// partReturned records that the provider has returned a part, and notifies the guest.
func (c *change) partReturned(p toss.Payment) error {
	if err := c.ledgerOf("refund.done", c.Refund.Amount, p); err != nil {
		return err
	}
	if err := c.renotifyGuest(c.r(), notify.PartRefunded, map[string]string{"amount": notify.Won(c.Refund.Amount)}); err != nil {
		return err
	}
	return c.advanceRefund(p)
}

// partRefused records that the provider declined to return a part. The reservation is as before.
func (c *change) partRefused(p toss.Payment, why *PaymentRefused) error {
	if err := postgres.CountReturned(c.ctx, c.tx, c.r().ID, -c.Refund.Amount); err != nil {
		return err
	}
	if err := postgres.AdvanceRefund(c.ctx, c.tx, c.Refund.ID, money.RefundRefused, why.Code, why.Message); err != nil {
		return err
	}
	if err := c.entry("refund.refused", c.Refund.Amount, why.Code, nil); err != nil {
		return err
	}
	if err := c.settleAt(c.now); err != nil { // the payment may have been canceled at the provider meanwhile
		return err
	}
	if err := c.report(declinedKind, why.Code+": "+why.Message); err != nil {
		return err
	}
	return c.returnRest(p)
}

// cancelPaid prepares the cancellation of a paid reservation: refunds that keep the stay must be finished, and the refund
// policy decides what is returned. ended reports that nothing is left to return, so the reservation has ended.
func (c *change) cancelPaid(intent *cancellation) (ended bool, err error) {
	open, err := c.closePart()
	switch {
	case err != nil:
		return false, err
	case open && intent.forced:
		return true, c.end(c.r().Amount - c.Payment.Returned - c.Payment.SettledOutside) // returnRest refunds the rest
	case open:
		return false, ErrRefundOpen
	}
	left := c.left()
	if intent.policy {
		policy, err := postgres.RefundPolicyOf(c.ctx, c.tx, c.r().ID)
		if err != nil {
			return false, err
		}
		intent.keeps = left - policy.Refund(left, c.r().Start, c.now)
	}
	if left > intent.keeps {
		return false, nil
	}
	if err := postgres.SetRetained(c.ctx, c.tx, c.r().ID, intent.keeps); err != nil {
		return false, err
	}
	if err := c.entry("cancel.unrefunded", 0, "", map[string]any{"by": intent.by, "retained": intent.keeps}); err != nil {
		return false, err
	}
	return true, c.end(0)
}

// closePart ends the refund of a part in favour of a cancellation. It returns open if that refund has to end by itself first.
func (c *change) closePart() (open bool, err error) {
	f, err := currentRefund(c.ctx, c.tx, c.r().ID)
	switch {
	case err != nil || f == nil:
		return false, err
	case f.KeepsStay && f.HeldBack(): // the cancellation returns the part, too
		return false, c.withdraw(*f)
	case f.State == money.RefundPending: // The bank is transferring the part. The refund of the rest follows both transfers.
		return false, postgres.AdvanceRefund(c.ctx, c.tx, f.ID, money.RefundCompleted, "", "")
	}
	return true, nil
}

// returnRest refunds what the provider still holds of a reservation that ended while the refund of a part was open.
func (c *change) returnRest(p toss.Payment) error {
	if !c.Owes(p) {
		return nil
	}
	return c.startLateRefund(p, c.LateBy(c.now), p.BalanceAmount)
}

// repeated returns the recorded answer to an earlier request with the same key, or ErrKeyReused if its body was another one.
func (c *change) repeated(key string, body any) (known bool, result RefundResult, err error) {
	if key == "" {
		return false, result, nil
	}
	r, err := postgres.RefundRequestOf(c.ctx, c.tx, c.r().ID, key)
	if errors.Is(err, postgres.ErrNoRefund) {
		return false, result, nil
	}
	if err != nil {
		return false, result, err
	}
	hash, err := bodyHash(body)
	if err == nil && !bytes.Equal(hash, r.BodyHash) {
		err = ErrKeyReused
	}
	if err != nil {
		return true, result, err
	}
	f, err := postgres.RefundByID(c.ctx, c.tx, r.Refund)
	return true, RefundResult{ID: r.Refund, Amount: r.Amount, Balance: r.Balance, Waits: f.Waits()}, err
}

// noteRequest records the answer to a request with a key.
func (c *change) noteRequest(key string, body any, result RefundResult) error {
	if key == "" {
		return nil
	}
	hash, err := bodyHash(body)
	if err != nil {
		return err
	}
	return postgres.NoteRefundRequest(c.ctx, c.tx, postgres.RefundRequest{
		Reservation: c.r().ID, Key: key, BodyHash: hash, Refund: result.ID, Amount: result.Amount, Balance: result.Balance,
	})
}

// bodyHash identifies a request. Its type is included, so that requests of different kinds differ.
func bodyHash(body any) ([]byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("hash of a request: %w", err)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%T %s", body, encoded))
	return hash[:], nil
}
