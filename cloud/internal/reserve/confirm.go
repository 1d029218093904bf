package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
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
	Payment postgres.Payment
}

// How long after an attempt began the sweep asks about it, and how long an answer may take at all.
const (
	watchdogDelay = 15 * time.Second
	providerLimit = 70 * time.Second
)

// Confirm charges the payment of an order, or issues its virtual account, and confirms the reservation. The same
// request again, at the same time or later, gives the same receipt and charges nothing more.
//
// Errors: ErrUnknownOrder, ErrAmountMismatch, ErrHoldExpired (the provider is not asked), *PaymentRefused (the hold
// is kept), ErrPaymentPending (ask again later).
func (s *Service) Confirm(ctx context.Context, r ConfirmRequest) (Receipt, error) {
	attempt, err := s.beginConfirm(ctx, r)
	if err != nil {
		return Receipt{}, err
	}
	if !attempt.settled {
		err := s.ask(ctx, r.OrderID, func(ctx context.Context) error { return s.confirmAtProvider(ctx, attempt) })
		if err != nil {
			return Receipt{}, err
		}
	}
	return s.receipt(ctx, attempt)
}

// confirmation is one attempt to confirm an order.
type confirmation struct {
	ConfirmRequest
	id      booking.ReservationID
	settled bool // by an earlier attempt
	resumed bool // an earlier attempt is under way and its outcome open
	key     string
}

// beginConfirm writes down, in one transaction, that the order is being confirmed: from here on the hold can neither
// expire nor be taken. The provider is never asked without owning the slot.
func (s *Service) beginConfirm(ctx context.Context, req ConfirmRequest) (confirmation, error) {
	attempt := confirmation{ConfirmRequest: req}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
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
		if req.Amount != r.Amount {
			return ErrAmountMismatch
		}
		attempt.id = r.ID
		switch r.State {
		case booking.Hold, booking.Expired:
			return s.startConfirm(ctx, tx, r, &attempt, now)
		case booking.Confirming, booking.WaitingForDeposit, booking.Done, booking.Canceling:
			return s.joinConfirm(ctx, tx, r, &attempt)
		}
		return ErrHoldExpired
	})
	return attempt, err
}

func (s *Service) startConfirm(ctx context.Context, tx pgx.Tx, r booking.Reservation, attempt *confirmation, now time.Time) error {
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
	attempt.key = "confirm-" + r.OrderID + "-" + uuid.NewString()
	err := postgres.StartAttempt(ctx, tx, postgres.Payment{
		Reservation: r.ID, KeySet: string(toss.Widget), PaymentKey: attempt.PaymentKey, ConfirmKey: attempt.key, AttemptedAt: now,
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
	return postgres.AppendLedger(ctx, tx, postgres.LedgerEntry{
		Reservation: r.ID, OrderID: r.OrderID, Kind: "confirm.sent", Amount: r.Amount,
	})
}

// retake makes the slot of an expired hold ours again if nobody has taken it and the room is still on. The caller
// holds the room's lock, so what is found free stays free.
func (s *Service) retake(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
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

// joinConfirm joins an attempt that was begun before: it is settled, or its outcome is asked for.
func (s *Service) joinConfirm(ctx context.Context, tx pgx.Tx, r booking.Reservation, attempt *confirmation) error {
	p, err := postgres.PaymentOf(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	if p.PaymentKey != attempt.PaymentKey {
		return &PaymentRefused{Code: "ALREADY_PROCESSED_PAYMENT", Message: "이미 처리된 결제 입니다."}
	}
	attempt.key = p.ConfirmKey
	attempt.settled = r.State != booking.Confirming
	attempt.resumed = !attempt.settled
	return nil
}

// confirmAtProvider asks the provider for the charge and applies its answer.
func (s *Service) confirmAtProvider(ctx context.Context, a confirmation) error {
	if a.resumed {
		// Someone else sent the request, perhaps a process that has died since: learn what came of it.
		return s.Settle(ctx, a.id)
	}
	asked := s.now()
	payment, err := s.Payments.Confirm(ctx, toss.Widget, a.key, toss.ConfirmRequest{
		PaymentKey: a.PaymentKey, OrderID: a.OrderID, Amount: a.Amount,
	})
	if err == nil {
		return s.apply(ctx, a.id, answer{payment: payment, asked: asked})
	}
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed:
		s.Log.WarnContext(ctx, "confirm: outcome unknown", "reservation", a.id, "order_id", a.OrderID, "error", err)
		return s.Settle(ctx, a.id)
	case toss.Misconfigured:
		s.Log.ErrorContext(ctx, "confirm: the provider does not accept our request", "order_id", a.OrderID, "error", err)
	}
	return s.apply(ctx, a.id, answer{refused: refusal(err), asked: asked})
}

// refusal is the provider's definitive no in the words meant for the customer.
func refusal(err error) *PaymentRefused {
	var e *toss.Error
	if !errors.As(err, &e) {
		return &PaymentRefused{Message: err.Error()}
	}
	return &PaymentRefused{Code: e.Code, Message: e.Message}
}

func (s *Service) receipt(ctx context.Context, a confirmation) (Receipt, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, a.id)
	if err != nil {
		return Receipt{}, err
	}
	switch r.State {
	case booking.Confirming:
		return Receipt{}, ErrPaymentPending
	case booking.WaitingForDeposit, booking.Done, booking.Canceling:
		return s.withPayment(ctx, r)
	}
	return Receipt{}, fmt.Errorf("%w: state %s", ErrHoldExpired, r.State)
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
