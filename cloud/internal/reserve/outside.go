package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// ByOutside is the reason of a refund that an administrator settled outside the provider.
const ByOutside = "제공사 밖에서 환불"

// ErrNothingToRefund is returned when the provider holds no money of the guest.
var ErrNothingToRefund = errors.New("reserve: nothing to refund")

// OutsideRequest ends a reservation that an administrator refunded outside the provider, because the provider cannot refund
// it.
type OutsideRequest struct {
	ID        booking.ReservationID
	Amount    int // won; 0: the balance without what the refund policy left with the shop
	Reason    string
	How       string            // for example a bank transfer
	Reference string            // evidence, for example the number of the transfer
	By        account.Principal `json:"-"`

	IdempotencyKey string `json:"-"` // optional, as in PartRequest

	requestedBy, approvedBy string // of a request that another administrator has approved
}

// actor returns the administrator who requested the refund.
func (r OutsideRequest) actor() string {
	if r.approvedBy != "" {
		return r.requestedBy
	}
	return r.By.Actor()
}

// evidence returns what is recorded of the refund.
func (r OutsideRequest) evidence() map[string]any {
	e := map[string]any{"how": r.How, "reference": r.Reference, "by": r.actor()}
	if r.approvedBy != "" {
		e["approvedBy"] = r.approvedBy
	}
	return e
}

// SettleOutside records that an administrator refunded money outside the provider. The reservation ends, its key is revoked
// and its slot becomes free. The amount counts as refunded. The payment is looked up first, because its money may have been
// returned in the provider's dashboard. Above the limit of
// refunds this waits for another administrator.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNothingToRefund, ErrExceedsBalance, ErrKeyReused, ErrPaymentPending (a
// refund at the provider may still succeed, or the provider does not answer).
//
// A virtual account that the provider does not close for so long is given up, and its reservation ends; the amount is 0.
func (s *Service) SettleOutside(ctx context.Context, req OutsideRequest) (result RefundResult, err error) {
	known := false
	err = s.locked(ctx, req.ID, func(c *change) error {
		known, result, err = c.settledBefore(req)
		return err
	})
	if known || err != nil {
		return result, err
	}
	if err := unlessOvertaken(func() error { return s.refresh(ctx, req.ID) }); err != nil {
		return result, err
	}
	err = s.locked(ctx, req.ID, func(c *change) error {
		if known, result, err = c.settledBefore(req); known || err != nil {
			return err
		}
		if c.Snapshot, err = load(c.ctx, c.tx, c.r()); err != nil {
			return err
		}
		if result, err = c.settleOutside(req); err != nil {
			return err
		}
		if err := c.noteRequest(req.IdempotencyKey, req, result); err != nil {
			return err
		}
		if err := c.audited(req.By, "reservation.settle-outside", map[string]any{"amount": result.Amount, "how": req.How, "reference": req.Reference, "approval": result.Waits}); err != nil {
			return err
		}
		failpoint.Hit("outside.beginning")
		return nil
	})
	failpoint.Hit("outside.finished")
	return result, err
}

// settledBefore returns the answer to an earlier request with the same key, if the administrator may see the reservation.
func (c *change) settledBefore(req OutsideRequest) (known bool, result RefundResult, err error) {
	if _, err := c.reachable(req.By); err != nil {
		return false, result, err
	}
	return c.repeated(req.IdempotencyKey, req)
}

// refresh looks a payment up, without sending a refund, and applies the answer. Without an answer it returns
// ErrPaymentPending, except for a refund that has waited for its answer so long that an administrator may end it, or whose keys the provider
// rejects, as after the end of a contract.
func (s *Service) refresh(ctx context.Context, id booking.ReservationID) error {
	q, err := ask(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoPayment) {
		return ErrNothingToRefund
	}
	if err != nil {
		return err
	}
	payment, err := s.lookUp(ctx, q, "")
	switch f := q.Refund; {
	case err == nil:
	case f != nil && (f.State == money.RefundRequested && stuckSince(*f, s.now()) || toss.KeyRejected(err)):
		return nil
	default:
		s.Log.WarnContext(ctx, "settle outside: the provider does not answer", "order_id", q.Reservation.OrderID, "error", err)
		return ErrPaymentPending
	}
	err = s.apply(ctx, q, answer{payment: payment})
	if refused := (*PaymentRefused)(nil); errors.As(err, &refused) {
		return nil // listed as a discrepancy
	}
	return err
}

// settleOutside records a refund outside the provider and ends the reservation, or has the refund wait for another administrator.
func (c *change) settleOutside(req OutsideRequest) (RefundResult, error) {
	f := c.Refund
	if f != nil && f.State != money.RefundFailed && !stuckSince(*f, c.now) {
		return RefundResult{}, ErrPaymentPending
	}
	if f != nil && f.Amount == 0 && req.Amount == 0 && c.r().State == booking.Canceling && c.Payment.Status == toss.StatusWaitingForDeposit {
		return c.giveUpAccount(*f, req)
	}
	sums, err := c.sumsOutside(req.Amount)
	if err != nil {
		return RefundResult{}, err
	}
	result := RefundResult{Amount: sums.won, Balance: sums.left - sums.won}
	if req.approvedBy == "" && c.above(c.r().Amount-result.Balance) {
		req.Amount, result.Waits = sums.won, true
		result.ID, err = c.awaitOutside(f, req)
		return result, err
	}
	if result.ID, err = c.recordOutside(sums, req); err != nil {
		return RefundResult{}, err
	}
	if err := c.endOutside(sums.won); err != nil {
		return RefundResult{}, err
	}
	return result, c.wakeReceipt()
}

// outsideSums are the sums of a refund outside the provider, in won.
type outsideSums struct {
	won      int // the guest receives
	left     int // the guest has paid and not received back
	rejected int // the part of left whose transfer the bank has rejected
}

// sumsOutside checks the amount that an administrator has refunded; 0: all that the guest is to have.
func (c *change) sumsOutside(amount int) (outsideSums, error) {
	f := c.Refund
	if c.Payment.Status == toss.StatusWaitingForDeposit || c.r().PaidAt.IsZero() && f == nil { // an account without a deposit, or no charge
		return outsideSums{}, ErrNothingToRefund
	}
	sums := outsideSums{won: amount, left: c.Payment.InBalance()}
	if f != nil && f.Outstanding() {
		sums.rejected = f.Amount
		sums.left += sums.rejected
	}
	if amount == 0 {
		sums.won = owed(sums.left, c.Payment, f)
	}
	if sums.left <= 0 || sums.won <= 0 {
		return outsideSums{}, ErrNothingToRefund
	}
	if sums.won > sums.left {
		return outsideSums{}, ErrExceedsBalance
	}
	return sums, nil
}

// giveUpAccount ends a reservation whose virtual account the provider does not close: no deposit has arrived. One that still arrives is a late
// one.
func (c *change) giveUpAccount(f money.Refund, req OutsideRequest) (RefundResult, error) {
	if err := postgres.SettleRefundOutside(c.ctx, c.tx, c.r().ID, f.ID, 0, 0, req.evidence()); err != nil {
		return RefundResult{}, err
	}
	return RefundResult{ID: f.ID}, c.endOutside(0)
}

// owed returns the won of what is left that the guest is to have: all but the share of the shop, and at least the refund of a part,
// which an administrator may have granted from this share.
func owed(left int, p money.Payment, open *money.Refund) int {
	won := left - p.Retained
	if open != nil && open.KeepsStay {
		won = max(won, min(left, open.Amount))
	}
	return won
}

// stuckSince reports whether a refund has been open for so long that an administrator may end it.
func stuckSince(f money.Refund, now time.Time) bool {
	if f.State == money.RefundPending {
		return !f.DueAt.IsZero() && now.After(f.DueAt)
	}
	return now.Sub(f.RequestedAt) > stuckAfter
}

// recordOutside completes the open refund of the payment, or a new one, with the sums, and books them.
func (c *change) recordOutside(sums outsideSums, req OutsideRequest) (id int64, err error) {
	if f := c.Refund; f != nil {
		id = f.ID
		if f.KeepsStay {
			err = postgres.CountReturned(c.ctx, c.tx, c.r().ID, -f.Amount)
		}
	} else {
		id, err = postgres.OpenRefund(c.ctx, c.tx, money.Refund{
			Reservation: req.ID, Reason: req.Reason, Amount: sums.won, By: req.actor(), KeyRevoked: c.r().State == booking.Done, IdempotencyKey: newCancelKey(req.ID),
		})
	}
	if err != nil {
		return 0, err
	}
	err = postgres.SettleRefundOutside(c.ctx, c.tx, c.r().ID, id, sums.won, sums.rejected, req.evidence())
	if err != nil {
		return 0, fmt.Errorf("settle refund %d outside: %w", id, err)
	}
	if err := c.entry("refund.outside", sums.won, "", req.evidence()); err != nil {
		return 0, err
	}
	if sums.rejected > 0 { // the books have it as refunded
		if err := c.bookEntry(money.Entry{Source: fmt.Sprint("rejected:", id), Kind: money.Rejected, Won: sums.rejected}); err != nil {
			return 0, err
		}
	}
	return id, c.bookEntry(money.Entry{Source: fmt.Sprint("outside:", id), Kind: money.Outside, Won: -sums.won})
}

// endOutside cancels the reservation and closes the discrepancies about its refund.
func (c *change) endOutside(won int) error {
	for _, kind := range []string{refundKind, declinedKind, refundOverdueKind, lateDepositKind, stuck} {
		if err := postgres.SettleDiscrepancy(c.ctx, c.tx, c.r().OrderID, kind, settled, c.now); err != nil {
			return err
		}
	}
	if c.r().State == booking.Canceled {
		return nil
	}
	return c.end(won)
}
