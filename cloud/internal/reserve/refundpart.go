package reserve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	waits, err := c.noteAccount(id, c.depositAccount(req.Account), req.By.Actor())
	if err == nil && !waits && c.above(c.r().Amount-c.Left()+req.Amount) {
		waits, err = true, c.awaitApproval(id, req.By.Actor(), money.AmountApprovalRequired)
	}
	return RefundResult{ID: id, Amount: req.Amount, Balance: c.Left() - req.Amount, Waits: waits}, err
}

func (c *change) checkPart(req PartRequest) (err error) {
	if c.Snapshot, err = load(c.ctx, c.tx, c.r()); errors.Is(err, postgres.ErrNoPayment) {
		return ErrNothingToRefund
	}
	r, left := c.r(), min(c.Left(), c.Payment.Balance) // what the bank has rejected can only be returned by hand
	switch {
	case err != nil:
		return err
	case r.PaidAt.IsZero():
		return ErrNothingToRefund
	case c.Refund != nil:
		return ErrRefundOpen
	case r.State != booking.Done && r.State != booking.Canceled, left <= 0:
		return ErrNothingToRefund
	case req.Amount > left:
		return ErrExceedsBalance
	case r.Method == booking.VirtualAccount && req.Account == nil:
		return ErrAccountRequired
	}
	return nil
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
	if c.Refund.Taken { // sent again: the bank had rejected it
		return c.advanceRefund(p)
	}
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
	switch won := c.CanceledBeside(p); {
	case won == 0:
		return c.returnRest(p)
	case c.Payment.Retained > 0:
		return c.followPart(p, won)
	default:
		return c.followCanceled(p, won)
	}
}

// cancelPaid prepares the cancellation of a paid reservation: the refund policy decides what is returned, and the refund of a
// part that is at the bank comes before the rest. ended reports that the reservation has ended without a refund of its own.
func (c *change) cancelPaid(intent *cancellation) (ended bool, err error) {
	part, err := c.openPartOf(*intent)
	if err != nil {
		return false, err
	}
	left := c.Left()
	if intent.policy {
		policy, err := postgres.RefundPolicyOf(c.ctx, c.tx, c.r().ID)
		if err != nil {
			return false, err
		}
		intent.keeps = left - policy.Refund(left, c.r().Start, cmp.Or(intent.asked, c.now))
	}
	won := left - intent.keeps
	switch {
	case part == nil && won > 0:
		return false, nil
	case won > 0 && c.r().Method == booking.VirtualAccount && intent.account == nil && !intent.forced:
		return false, ErrAccountRequired
	}
	if err := postgres.SetRetained(c.ctx, c.tx, c.r().ID, intent.keeps); err != nil {
		return false, err
	}
	if part != nil {
		return true, c.endBeforeRest(*part, *intent, won)
	}
	if err := c.entry("cancel.unrefunded", 0, "", map[string]any{"by": intent.by, "retained": intent.keeps}); err != nil {
		return false, err
	}
	if err := c.endExtensions(*intent); err != nil { // before end, which refunds them in full
		return false, err
	}
	if err := c.end(0); err != nil || c.r().Extends == 0 || intent.stay {
		return true, err
	}
	return true, c.renotifyGuest(c.withoutKey(), notify.ExtensionUnrefunded, nil)
}

// openPartOf returns the refund of a part that has to end before the rest is refunded, or nil. The provider has one state
// for all transfers of a payment, so the rest is sent only when the outcome of the part is known. A part that was never sent
// is returned with the rest.
func (c *change) openPartOf(intent cancellation) (*money.Refund, error) {
	f, err := currentRefund(c.ctx, c.tx, c.r().ID)
	switch {
	case err != nil || f == nil:
		return nil, err
	case f.HeldBack() && !remainsOwed(*f):
		return nil, c.withdraw(*f)
	case f.KeepsStay && f.Unsent():
		return nil, c.dropPart(*f, supersededCode, "취소로 함께 환불됩니다.")
	case !f.AtBank() && !intent.forced:
		return nil, ErrRefundOpen
	}
	return f, nil
}

// supersededCode is the code of a part that was never sent because a cancellation returns it.
const supersededCode = "CANCELED_WITH_RESERVATION"

// endBeforeRest ends a reservation whose part is at the bank. The rest follows the part to the account of the cancellation,
// and a part that the bank has rejected is sent to it again. Without an account the guest is asked for one.
func (c *change) endBeforeRest(part money.Refund, intent cancellation, won int) error {
	if err := c.entry("cancel.requested", won, "", map[string]any{"by": intent.by, "after": part.ID}); err != nil {
		return err
	}
	if err := c.payPartAndRest(part, intent); err != nil {
		return err
	}
	if err := c.endExtensions(intent); err != nil {
		return err
	}
	if !part.AtBank() { // the provider's balance may still include the part
		won = c.r().Amount - c.Payment.Returned - c.Payment.SettledOutside
	}
	return c.end(won)
}

func (c *change) payPartAndRest(part money.Refund, intent cancellation) error {
	to := c.depositAccount(intent.account)
	if to == nil || !part.AtBank() {
		return nil
	}
	if part.State == money.RefundPending {
		responsible, err := c.responsible(intent.by)
		needed := false
		if err == nil && responsible != "" {
			needed, err = c.approval(to, responsible)
		}
		if err != nil || needed {
			return err // another administrator cannot approve it yet
		}
	}
	sealed, err := c.sealAccount(to)
	if err != nil {
		return err
	}
	if part.State == money.RefundFailed {
		if err := postgres.ReopenRefund(c.ctx, c.tx, part.ID, nil, newCancelKey(c.r().ID)); err != nil {
			return err
		}
		if err := c.entry("cancel.retried", part.Amount, "", map[string]any{"by": intent.by}); err != nil {
			return err
		}
	}
	if err := postgres.PayRestTo(c.ctx, c.tx, part.ID, sealed); err != nil {
		return err
	}
	if err := postgres.NoteRefundAccount(c.ctx, c.tx, part.ID, masked(to)); err != nil {
		return err
	}
	return c.settleAt(c.now)
}

// returnRest refunds what the provider still holds of a reservation that ended while the refund of a part was open.
func (c *change) returnRest(p toss.Payment) error {
	if !c.Owes(p) {
		return nil
	}
	won := p.BalanceAmount - c.Payment.Retained
	if f := c.Refund; f == nil || !f.Rest {
		return c.startLateRefund(p, c.LateBy(c.now), won)
	}
	_, err := postgres.OpenRefund(c.ctx, c.tx, money.Refund{
		Reservation: c.r().ID, Reason: "예약 취소", Amount: won, By: c.LateBy(c.now), Account: c.Refund.Account,
		IdempotencyKey: newCancelKey(c.r().ID), Part: c.Payment.Retained > 0,
	})
	if err != nil {
		return err
	}
	return c.settleAt(c.now)
}

// requestPurpose is the purpose of the MACs of requests for refunds.
const requestPurpose = "refund-request"

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
	hashes, err := c.bodyHashes(body)
	if err == nil && !slices.ContainsFunc(hashes, func(hash []byte) bool { return bytes.Equal(hash, r.BodyHash) }) {
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
	hashes, err := c.bodyHashes(body)
	if err != nil {
		return err
	}
	return postgres.NoteRefundRequest(c.ctx, c.tx, postgres.RefundRequest{
		Reservation: c.r().ID, Key: key, BodyHash: hashes[0], Refund: result.ID, Amount: result.Amount, Balance: result.Balance,
	})
}

// bodyHashes returns what may be stored for a request, that under the sealing key first. The last one is of the previous release. The others are
// MACs, because the account of the guest could be found by trying all candidates. The type of the request is included, so that
// requests of different kinds differ.
func (c *change) bodyHashes(body any) ([][]byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("hash of a request: %w", err)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%T %s", body, encoded))
	return append(c.Keys.MACs(requestPurpose, string(hash[:])), hash[:]), nil
}
