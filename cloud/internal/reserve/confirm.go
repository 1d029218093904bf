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

// ConfirmRequest is what the payment widget brings back.
type ConfirmRequest struct {
	PaymentKey string
	OrderID    string
	Amount     int
}

// Receipt is a reservation with its payment and branch, as confirmed.
type Receipt struct {
	Branch booking.Branch
	booking.Reservation
	Payment money.Payment
}

// watchdogDelay is how long an attempt is left to the process that made it. After that anybody asks what came of it.
var watchdogDelay = failpoint.Shorten(15 * time.Second)

// Confirm charges the payment of an order, or issues its virtual account, and confirms the reservation. The same
// request again, at the same time or later, gives the same receipt and charges nothing more.
//
// Errors: ErrUnknownOrder, ErrAmountMismatch, ErrHoldExpired (the provider is not asked), *PaymentRefused (the hold
// is kept), ErrPaymentPending (ask again later).
func (s *Service) Confirm(ctx context.Context, r ConfirmRequest) (Receipt, error) {
	// What is decided need not wait for a conversation that has not noticed yet.
	found, err := postgres.ReservationByOrder(ctx, s.DB.Pool, r.OrderID)
	if err == nil && found.Method != "" {
		return s.confirm(ctx, r)
	}
	topic := fmt.Sprintf("confirm %q %q %d", r.OrderID, r.PaymentKey, r.Amount)
	return detached(ctx, s, topic, func(ctx context.Context) (Receipt, error) { return s.confirm(ctx, r) })
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
	case attempt.reservation.State == booking.Confirming:
		err = s.followAttempt(ctx, attempt.question)
	}
	if err != nil {
		return Receipt{}, s.pending(ctx, r.OrderID, err)
	}
	return s.receipt(ctx, attempt.reservation.ID)
}

// pending is the error of a conversation that has begun: whatever went wrong on our side, the outcome is open and the
// watchdog will settle it. Only the provider's refusal ends an attempt.
func (s *Service) pending(ctx context.Context, orderID string, err error) error {
	var refused *PaymentRefused
	if errors.As(err, &refused) || errors.Is(err, ErrPaymentPending) || errors.Is(err, ErrHoldExpired) || errors.Is(err, ErrAccountRequired) {
		return err
	}
	s.Log.ErrorContext(ctx, "the provider's answer could not be acted on yet", "order_id", orderID, "error", err)
	return ErrPaymentPending
}

// confirmation is an attempt to confirm an order as beginConfirm found or made it.
type confirmation struct {
	question
	ours bool // begun here: nobody else sends it
}

// beginConfirm writes down, in one transaction, that the order is being confirmed: from here on the hold can neither
// expire nor be taken. The provider is never asked without owning the slot.
func (s *Service) beginConfirm(ctx context.Context, req ConfirmRequest) (confirmation, error) {
	var attempt confirmation
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		attempt = confirmation{}
		found, err := postgres.ReservationByOrder(ctx, tx, req.OrderID)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrUnknownOrder
		}
		if err != nil {
			return err
		}
		// The room before the reservation, as everywhere: see postgres.LockRooms.
		if err := postgres.LockRooms(ctx, tx, found.Room); err != nil {
			return err
		}
		r, err := postgres.LockOrder(ctx, tx, req.OrderID)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrUnknownOrder // registered anew in between
		}
		if err != nil {
			return err
		}
		if r.Source != booking.Customer {
			return ErrUnknownOrder // an administrator's account is issued, not confirmed
		}
		if req.Amount != r.Amount {
			return ErrAmountMismatch
		}
		switch r.State {
		case booking.Hold, booking.Expired:
			attempt.ours = true
			if err := s.startConfirm(ctx, tx, r, req, now); err != nil {
				return err
			}
		case booking.Released:
			return ErrHoldExpired
		default:
			if err := joinConfirm(ctx, tx, r, req); err != nil {
				return err
			}
		}
		attempt.question, err = ask(ctx, tx, r.ID)
		failpoint.Hit("confirm.beginning")
		return err
	})
	return attempt, err
}

func (s *Service) startConfirm(ctx context.Context, tx pgx.Tx, r booking.Reservation, req ConfirmRequest, now time.Time) error {
	if !r.Occupies(now) {
		if err := s.retake(ctx, tx, r, now); err != nil {
			return err
		}
	}
	if ok, err := postgres.SetState(ctx, tx, r.ID, r.State, booking.Confirming); err != nil || !ok {
		if postgres.IsExclusionViolation(err, "reservation_no_overlap") {
			return ErrHoldExpired
		}
		return errors.Join(err, errIf(!ok, ErrHoldExpired))
	}
	err := postgres.StartAttempt(ctx, tx, money.Payment{
		Reservation: r.ID, KeySet: string(toss.Widget), PaymentKey: req.PaymentKey, ConfirmKey: newConfirmKey(r.OrderID), AttemptedAt: now,
	}, now.Add(watchdogDelay))
	if postgres.IsUniqueViolation(err, "payment_payment_key_key") {
		return &PaymentRefused{Code: "INVALID_REQUEST", Message: "다른 주문에 사용된 결제입니다."}
	}
	if err != nil {
		return err
	}
	if err := s.Queue.Settle(ctx, tx, r.ID, now.Add(watchdogDelay)); err != nil {
		return err
	}
	return postgres.AppendLedger(ctx, tx, money.LedgerEntry{
		Reservation: r.ID, OrderID: r.OrderID, Kind: "confirm.sent", Amount: r.Amount,
	})
}

// newConfirmKey names one attempt: the provider executes a key once, whatever the body.
func newConfirmKey(orderID string) string { return "confirm-" + orderID + "-" + uuid.NewString() }

// retake makes the slot of an expired hold ours again if it can still be reserved, nobody has taken it and the room is
// on. The caller holds the room's lock, so what is found free stays free.
func (s *Service) retake(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
	if booking.CheckStart(r.Interval, now) != nil {
		return ErrHoldExpired
	}
	if err := postgres.ExpireHolds(ctx, tx, r.Room, r.Interval, r.ID, now); err != nil {
		return err
	}
	free, err := postgres.RoomFree(ctx, tx, r.Room, r.Interval, r.ID)
	if err != nil {
		return err
	}
	if !free {
		return ErrHoldExpired
	}
	return nil
}

// joinConfirm lets a request join an attempt that was begun before, if it is the same one.
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

// sendConfirm asks the provider for the charge and acts on its answer.
func (s *Service) sendConfirm(ctx context.Context, q question) error {
	payment, err := s.Payments.Confirm(ctx, toss.Widget, q.payment.ConfirmKey, q.confirmRequest())
	failpoint.Hit("confirm.answered")
	switch rule.Confirmed(err) {
	case rule.Act:
		return s.act(ctx, q, answer{payment: payment})
	case rule.AskAgain:
		s.Log.WarnContext(ctx, "confirm: outcome unknown", "reservation", q.reservation.ID, "order_id", q.reservation.OrderID, "error", err)
		return s.Settle(ctx, q.reservation.ID)
	}
	if toss.ClassOf(err) == toss.Misconfigured {
		s.Log.ErrorContext(ctx, "confirm: the provider does not accept our request", "order_id", q.reservation.OrderID, "error", err)
	}
	return s.act(ctx, q, answer{refused: refusal(err)})
}

// followPause is how often an attempt of another process is looked at.
const followPause = 100 * time.Millisecond

// followAttempt waits for what comes of an attempt that another process makes. It may have died since: once the attempt
// is old enough anybody may ask the provider about it.
func (s *Service) followAttempt(ctx context.Context, q question) error {
	ticker := time.NewTicker(followPause)
	defer ticker.Stop()
	for {
		if s.now().Sub(q.payment.AttemptedAt) >= watchdogDelay {
			return s.Settle(ctx, q.reservation.ID)
		}
		r, err := postgres.Reservation(ctx, s.DB.Pool, q.reservation.ID)
		if err != nil {
			return err
		}
		switch r.State {
		case booking.Confirming:
		case booking.Hold, booking.Expired, booking.Released:
			code, message, err := postgres.LastRefusal(ctx, s.DB.Pool, q.reservation.OrderID)
			if err != nil {
				return err
			}
			return &PaymentRefused{Code: code, Message: message}
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

// refusal is the provider's definitive no in the words meant for the customer.
func refusal(err error) *PaymentRefused {
	var e *toss.Error
	if !errors.As(err, &e) {
		return &PaymentRefused{Message: err.Error()}
	}
	return &PaymentRefused{Code: e.Code, Message: e.Message}
}

// receipt is what a confirmation has led to. It stays the same after the reservation was cancelled: it tells what was
// confirmed, not what stands.
func (s *Service) receipt(ctx context.Context, id booking.ReservationID) (Receipt, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if err != nil {
		return Receipt{}, err
	}
	switch {
	case r.State == booking.Confirming, r.State == booking.Canceling && r.Method == "":
		return Receipt{}, ErrPaymentPending
	case r.Method == "":
		return Receipt{}, fmt.Errorf("%w: state %s", ErrHoldExpired, r.State)
	}
	return s.withPayment(ctx, r)
}

func (s *Service) withPayment(ctx context.Context, r booking.Reservation) (Receipt, error) {
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	if err != nil {
		return Receipt{}, err
	}
	p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
	if err != nil && !errors.Is(err, postgres.ErrNoPayment) {
		return Receipt{}, err
	}
	return Receipt{branch, r, p}, nil
}

func errIf(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}
