package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// ConfirmRequest is what the payment widget returns to the browser.
type ConfirmRequest struct {
	PaymentKey string
	OrderID    string
	Amount     int
}

// Receipt is a reservation with its payment and branch.
type Receipt struct {
	Branch booking.Branch
	booking.Reservation
	Payment money.Payment
	Cash    money.CashReceipt // zero: none is wanted
	Policy  booking.RefundPolicy

	// Of a history only.
	Refunded int  // won that the guest has back
	Ended    bool // the stay has ended, although the provider has declined its refund, which an administrator has to pay
}

// RefundableUntil returns the last moment at which a cancellation by the customer returns money. If none does, it is the time of the hold.
func (r Receipt) RefundableUntil() time.Time {
	if until := r.Policy.RefundableUntil(r.Start); !until.IsZero() {
		return until
	}
	return r.CreatedAt
}

// watchdogDelay is how long only the process that began an attempt may send its request. After that, the sweep looks up the
// outcome.
var watchdogDelay = failpoint.Shorten(15 * time.Second)

// Confirm charges the payment of an order, or issues its virtual account, and confirms the reservation. Repeating the
// request, concurrently or later, returns the same receipt and charges nothing more.
//
// Errors: ErrUnknownOrder, ErrAmountMismatch, ErrHoldExpired (nothing is charged), *PaymentRefused (the hold is kept),
// ErrPaymentPending (the caller may retry later; the guest receives a message about the outcome).
func (s *Service) Confirm(ctx context.Context, r ConfirmRequest) (Receipt, error) {
	receipt, err := s.confirmOnce(ctx, r)
	if errors.Is(err, ErrPaymentPending) || ctx.Err() != nil {
		return s.oweOutcome(ctx, r, err)
	}
	return receipt, err
}

func (s *Service) confirmOnce(ctx context.Context, r ConfirmRequest) (Receipt, error) {
	// Answer a settled order from the database: a shared call in progress may not have read the outcome yet.
	found, err := postgres.ReservationByOrder(ctx, s.DB.Pool, r.OrderID)
	if err == nil && found.Method != "" {
		return s.confirm(ctx, r)
	}
	key := fmt.Sprintf("confirm %q %q %d", r.OrderID, r.PaymentKey, r.Amount)
	return detached(ctx, s, key, func(ctx context.Context) (Receipt, error) { return s.confirm(ctx, r) })
}

// oweOutcome records that the guest does not know the outcome, so that the outcome is sent as a message. If the order has
// been settled meanwhile, oweOutcome returns the settled outcome instead.
func (s *Service) oweOutcome(ctx context.Context, req ConfirmRequest, pending error) (Receipt, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	settled := false
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockOrder(ctx, tx, req.OrderID)
		if err != nil {
			return err
		}
		if settled = r.State != booking.Confirming && r.State != booking.Canceling; settled {
			return nil
		}
		return postgres.OweOutcome(ctx, tx, r, now)
	})
	if err != nil {
		s.Log.ErrorContext(ctx, "confirm: a pending outcome was not recorded", "order_id", req.OrderID, "error", err)
		return Receipt{}, pending
	}
	if !settled {
		return Receipt{}, pending
	}
	return s.confirmed(ctx, req.OrderID)
}

// confirmed returns the outcome of an order that is not in progress.
func (s *Service) confirmed(ctx context.Context, orderID string) (Receipt, error) {
	r, err := postgres.ReservationByOrder(ctx, s.DB.Pool, orderID)
	if err != nil {
		return Receipt{}, err
	}
	if !rule.GivenUp(r.State) {
		return s.receipt(ctx, r.ID)
	}
	return Receipt{}, s.lastRefusal(ctx, orderID)
}

// lastRefusal returns the provider's refusal of an order's last attempt, or ErrPaymentPending if the outcome is unknown.
func (s *Service) lastRefusal(ctx context.Context, orderID string) error {
	if err := undecided(ctx, s.DB.Pool, orderID); err != nil {
		return err
	}
	code, message, err := postgres.LastRefusal(ctx, s.DB.Pool, orderID)
	if err != nil {
		return err
	}
	if code == "" {
		return ErrHoldExpired // the attempt lapsed without a charge
	}
	return &PaymentRefused{Code: code, Message: message}
}

func (s *Service) confirm(ctx context.Context, r ConfirmRequest) (Receipt, error) {
	attempt, err := s.beginConfirm(ctx, r)
	if err != nil {
		return Receipt{}, err
	}
	switch {
	case attempt.ours:
		failpoint.Hit("confirm.begun")
		err = s.sendConfirm(ctx, attempt.question)
		failpoint.Hit("confirm.finished")
	case attempt.Reservation.State == booking.Confirming:
		err = s.followAttempt(ctx, attempt.question)
	}
	if err != nil {
		return Receipt{}, s.pending(ctx, r.OrderID, err)
	}
	return s.receipt(ctx, attempt.Reservation.ID)
}

// pending converts the error of a request to the provider that has begun. Only the provider's refusal ends an attempt; after
// any other failure the outcome is unknown, and the sweep settles it.
func (s *Service) pending(ctx context.Context, orderID string, err error) error {
	var refused *PaymentRefused
	if errors.As(err, &refused) || errors.Is(err, ErrPaymentPending) || errors.Is(err, ErrHoldExpired) || errors.Is(err, ErrAccountRequired) {
		return err
	}
	s.Log.ErrorContext(ctx, "the provider's answer could not be acted on yet", "order_id", orderID, "error", err)
	return ErrPaymentPending
}

// attempt is an attempt to confirm an order that beginConfirm found or created.
type attempt struct {
	question
	ours bool // created here: no other process sends it
}

// beginConfirm records in one transaction that the order is being confirmed. From then on the hold cannot expire and the
// slot cannot be taken, so no charge is requested without owning the slot.
func (s *Service) beginConfirm(ctx context.Context, req ConfirmRequest) (attempt, error) {
	var begun attempt
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		begun = attempt{}
		r, err := lockPurchase(ctx, tx, req.OrderID)
		if err != nil {
			return err
		}
		if req.Amount != r.Amount {
			return ErrAmountMismatch
		}
		switch r.State {
		case booking.Hold, booking.Expired:
			begun.ours = true
			if err := s.change(ctx, tx, r, now).startConfirm(req); err != nil {
				return err
			}
		case booking.Released:
			if err := undecided(ctx, tx, r.OrderID); err != nil {
				return err
			}
			return endedOutcome(ctx, tx, r)
		default:
			if err := joinConfirm(ctx, tx, r, req); err != nil {
				return err
			}
		}
		begun.question, err = ask(ctx, tx, r.ID)
		failpoint.Hit("confirm.beginning")
		return err
	})
	return begun, err
}

// lockPurchase locks the room and the reservation of an order that a guest may confirm.
func lockPurchase(ctx context.Context, tx pgx.Tx, orderID string) (booking.Reservation, error) {
	found, err := postgres.ReservationByOrder(ctx, tx, orderID)
	if errors.Is(err, booking.ErrNoReservation) {
		return found, ErrUnknownOrder
	}
	if err != nil {
		return found, err
	}
	// The lock order is rooms first, then reservations: see postgres.LockRooms.
	if err := postgres.LockRooms(ctx, tx, found.Room); err != nil {
		return found, err
	}
	r, err := postgres.LockOrder(ctx, tx, orderID)
	if errors.Is(err, booking.ErrNoReservation) {
		return r, ErrUnknownOrder // another order has replaced it since the read
	}
	if err != nil {
		return r, err
	}
	if r.Source != booking.Customer {
		return r, ErrUnknownOrder // an administrator's virtual account is issued, not confirmed
	}
	order, err := postgres.OrderOf(ctx, tx, orderID)
	if err == nil && !order.ReplacedAt.IsZero() {
		return r, ErrUnknownOrder
	}
	return r, err
}

// errRefunded returns the error for a payment that was captured too late and is being refunded.
func errRefunded() error {
	return &PaymentRefused{Code: "REFUNDED_PAYMENT", Message: "예약이 확정되지 않아 결제 금액을 환불해 드립니다."}
}

func (c *change) startConfirm(req ConfirmRequest) error {
	r := c.r()
	if !c.now.Before(r.LastUnlock()) {
		return ErrHoldExpired // the stay is over, so nothing is charged
	}
	if err := relate(c.ctx, c.tx, &c.Snapshot); err != nil {
		return err
	}
	if c.Obsolete(c.now) {
		return ErrHoldExpired // the stay that the guest wanted to change has changed or begun
	}
	if !r.Occupies(c.now) {
		if err := c.retake(); err != nil {
			return err
		}
	}
	ok, err := postgres.SetState(c.ctx, c.tx, r.ID, r.State, booking.Confirming)
	if postgres.IsExclusionViolation(err, "reservation_no_overlap") {
		return ErrHoldExpired
	}
	if err != nil {
		return err
	}
	if !ok {
		return ErrHoldExpired
	}
	err = postgres.StartAttempt(c.ctx, c.tx, money.Payment{
		Reservation: r.ID, KeySet: string(toss.Widget.Of(r.LegalEntity)), PaymentKey: req.PaymentKey, ConfirmKey: newConfirmKey(r.OrderID), AttemptedAt: c.now,
	}, c.now.Add(watchdogDelay))
	if postgres.IsUniqueViolation(err, "payment_payment_key_key") {
		return &PaymentRefused{Code: "INVALID_REQUEST", Message: "다른 주문에 사용된 결제입니다."}
	}
	if err != nil {
		return err
	}
	// No job watches the attempt: it would ask the provider about every purchase. The sweep finds an attempt without an outcome.
	return c.entry("confirm.sent", r.Amount, "", nil)
}

// newConfirmKey returns the idempotency key of one attempt. The provider executes a key once and does not compare bodies.
func newConfirmKey(orderID string) string { return "confirm-" + orderID + "-" + uuid.NewString() }

// retake reserves the slot of an expired hold again if the time can still be reserved, the branch was not closed meanwhile, the slot is free
// and the room is enabled. The caller holds the room's lock, so a free slot stays free, and no closure is in progress.
func (c *change) retake() error {
	r := c.r()
	branch, err := postgres.BranchOf(c.ctx, c.tx, r.Branch)
	if err != nil {
		return err
	}
	if booking.CheckStart(r.Interval, c.now) != nil || branch.Schedule.Check(r.Interval, branch.Zone) != nil {
		return ErrHoldExpired
	}
	place := postgres.Place{Room: r.Room, Interval: r.Interval, Extension: r.Extends != 0}
	if err := postgres.ExpireHolds(c.ctx, c.tx, place, r.ID, c.now); err != nil {
		return err
	}
	free, err := postgres.RoomForSale(c.ctx, c.tx, place, r.ID)
	if err != nil {
		return err
	}
	if !free {
		return ErrHoldExpired
	}
	return nil
}

// joinConfirm checks that a request repeats the attempt in progress, so that it may wait for the same outcome.
func joinConfirm(ctx context.Context, tx pgx.Tx, r booking.Reservation, req ConfirmRequest) error {
	p, err := postgres.PaymentOf(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	if p.PaymentKey != req.PaymentKey {
		return &PaymentRefused{Code: "ALREADY_PROCESSED_PAYMENT", Message: "이미 처리된 결제 입니다."}
	}
	return nil
}

// sendConfirm requests the charge from the provider and applies the answer.
func (s *Service) sendConfirm(ctx context.Context, q question) error {
	payment, err := s.Payments.Confirm(ctx, q.keys(), q.Payment.ConfirmKey, q.confirmRequest())
	failpoint.Hit("confirm.answered")
	switch rule.Confirmed(err) {
	case rule.Act:
		return s.act(ctx, q, answer{payment: payment})
	case rule.AskAgain:
		s.Log.WarnContext(ctx, "confirm: outcome unknown", "reservation", q.Reservation.ID, "order_id", q.Reservation.OrderID, "error", err)
		return s.Settle(ctx, q.Reservation.ID)
	case rule.AskLater:
		return s.keyRejected(ctx, q, err)
	}
	if toss.ClassOf(err) == toss.Misconfigured {
		s.Log.ErrorContext(ctx, "confirm: the provider does not accept our request", "order_id", q.Reservation.OrderID, "error", err)
	}
	return s.act(ctx, q, answer{refused: refusal(err), unknown: unknownPayment(err)})
}

// keyRejected postpones a request that failed because the provider rejects our secret key, and alerts the operator.
func (s *Service) keyRejected(ctx context.Context, q question, err error) error {
	s.reportKeyRejected(ctx, q, err)
	key := newConfirmKey(q.Reservation.OrderID)
	if err := postgres.RenewConfirmKey(ctx, s.DB.Pool, q.Reservation.ID, q.Payment.ConfirmKey, key); err != nil {
		return fmt.Errorf("renew the key of order %s: %w", q.Reservation.OrderID, err)
	}
	return s.later(ctx, q)
}

// followInterval is the interval at which an attempt of another process is read from the database.
const followInterval = 100 * time.Millisecond

// followAttempt waits for the outcome of an attempt of another process. That process may have crashed: once the attempt is
// older than watchdogDelay, any process looks it up at the provider.
func (s *Service) followAttempt(ctx context.Context, q question) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		if s.now().Sub(q.Payment.AttemptedAt) >= watchdogDelay {
			return s.Settle(ctx, q.Reservation.ID)
		}
		r, err := postgres.Reservation(ctx, s.DB.Pool, q.Reservation.ID)
		if err != nil {
			return fmt.Errorf("follow order %s: %w", q.Reservation.OrderID, err)
		}
		switch {
		case r.State == booking.Confirming:
		case rule.GivenUp(r.State):
			return s.lastRefusal(ctx, q.Reservation.OrderID)
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return ErrPaymentPending
		case <-ticker.C:
		}
	}
}

// unknownPayment reports whether the provider refused because it has no such payment.
func unknownPayment(err error) bool { return toss.ClassOf(err) == toss.NotFound }

// refusal returns the provider's final refusal with its message for the guest.
func refusal(err error) *PaymentRefused {
	var e *toss.Error
	if !errors.As(err, &e) {
		return &PaymentRefused{Message: err.Error()}
	}
	return &PaymentRefused{Code: e.Code, Message: e.Message}
}

// receipt returns the outcome of a confirmation. It shows what was confirmed, not the current state, so it does not change
// when the reservation is canceled.
func (s *Service) receipt(ctx context.Context, id booking.ReservationID) (Receipt, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if err != nil {
		return Receipt{}, fmt.Errorf("receipt of reservation %d: %w", id, err)
	}
	if r.Method != "" {
		return s.withPayment(ctx, r)
	}
	switch r.State {
	case booking.Confirming, booking.Canceling:
		return Receipt{}, ErrPaymentPending
	}
	return Receipt{}, endedOutcome(ctx, s.DB.Pool, r)
}

// endedOutcome returns the error for a purchase that ended without a confirmation; a captured payment is refunded.
func endedOutcome(ctx context.Context, q postgres.Querier, r booking.Reservation) error {
	refunded, err := postgres.HasRefund(ctx, q, r.ID)
	switch {
	case err != nil:
		return fmt.Errorf("outcome of order %s: %w", r.OrderID, err)
	case refunded:
		return errRefunded()
	}
	return fmt.Errorf("%w: state %s", ErrHoldExpired, r.State)
}

func (s *Service) withPayment(ctx context.Context, r booking.Reservation) (Receipt, error) {
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	if err != nil {
		return Receipt{}, err
	}
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if err != nil && !errors.Is(err, postgres.ErrNoPayment) {
		return Receipt{}, fmt.Errorf("payment of reservation %d: %w", r.ID, err)
	}
	if r.DoorlockKey, err = s.keyOf(r); err != nil {
		return Receipt{}, err
	}
	cash, err := postgres.CashReceiptsOf(ctx, s.DB.Pool, r.ID)
	if err != nil {
		return Receipt{}, fmt.Errorf("cash receipt of reservation %d: %w", r.ID, err)
	}
	policy := branch.RefundPolicy
	if !r.PaidAt.IsZero() { // fixed then
		if policy, err = postgres.RefundPolicyOf(ctx, s.DB.Pool, r.ID); err != nil {
			return Receipt{}, fmt.Errorf("refund policy of reservation %d: %w", r.ID, err)
		}
	}
	return Receipt{Branch: branch, Reservation: r, Payment: p, Cash: cash[r.ID], Policy: policy}, nil
}
