package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Registration is a reservation without payment (docs/specification.md, Administration 1).
type Registration struct {
	booking.Contact
	Note   string
	Notify bool        // send the key to the contact
	Audit  audit.Entry // actor, action and detail
}

// RegisterWithoutPayment turns an administrator's hold into a confirmed reservation.
//
// Errors: ErrHoldExpired (the hold is gone), ErrPaymentPending (an account was asked for it).
func (s *Service) RegisterWithoutPayment(ctx context.Context, token Token, reg Registration) (booking.ReservationID, error) {
	var id booking.ReservationID
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := lockAdminHold(ctx, tx, token, now)
		if err != nil {
			return err
		}
		id = r.ID
		key := uuid.New()
		err = postgres.RegisterAdmin(ctx, tx, r.ID, reg.Contact, reg.Note, postgres.Confirmation{Method: booking.ByAdmin, Key: key, PaidAt: now})
		if err != nil {
			return err
		}
		r.Name, r.Mobile, r.Email, r.Language = reg.Name, reg.Mobile, reg.Email, reg.Language
		r.DoorlockKey = key.String()
		if err := s.audit(ctx, tx, reg.Audit, r); err != nil {
			return err
		}
		var told error
		if reg.Notify {
			told = s.notifyGuest(ctx, tx, r, notify.ReservationConfirmed, nil)
		}
		return errors.Join(told, s.block(ctx, tx, r.ID))
	})
	return id, err
}

func lockAdminHold(ctx context.Context, tx pgx.Tx, token Token, now time.Time) (booking.Reservation, error) {
	if token == "" {
		return booking.Reservation{}, ErrHoldExpired
	}
	r, err := postgres.LockToken(ctx, tx, token.hash())
	if errors.Is(err, postgres.ErrNoReservation) {
		return r, ErrHoldExpired
	}
	if err != nil {
		return r, err
	}
	return r, adminHold(r, now)
}

// adminHold is nil for an administrator's live hold. ErrPaymentPending: an account was asked for it, and the provider has
// not answered.
func adminHold(r booking.Reservation, now time.Time) error {
	switch {
	case r.Source != booking.Admin || !r.Occupies(now):
		return ErrHoldExpired
	case r.State == booking.Confirming:
		return ErrPaymentPending
	case r.State != booking.Hold:
		return ErrHoldExpired
	}
	return nil
}

// AdminHolder returns who made an administrator's hold, and where. Errors: ErrHoldExpired, ErrPaymentPending; see adminHold.
func (s *Service) AdminHolder(ctx context.Context, token Token) (booking.Reservation, error) {
	r, err := s.ofToken(ctx, token)
	if err != nil {
		return r, err
	}
	return r, adminHold(r, s.now())
}

// AccountRequest asks for a virtual account for an administrator's hold.
type AccountRequest struct {
	booking.Contact
	Amount    int
	OrderName string
	Bank      string
	Audit     audit.Entry // actor, action and detail
}

// IssueAccount issues a virtual account whose deposit confirms the reservation. From here on the slot is kept until the
// deposit is due.
//
// Errors: ErrHoldExpired, ErrUnknownBank, *PaymentRefused (the hold is kept), ErrPaymentPending.
func (s *Service) IssueAccount(ctx context.Context, token Token, req AccountRequest) (booking.ReservationID, error) {
	if bank, ok := booking.BankByCode(req.Bank); !ok || !bank.Issues {
		return 0, ErrUnknownBank
	}
	var (
		q   question
		due time.Time
	)
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := lockAdminHold(ctx, tx, token, now)
		if err != nil {
			return err
		}
		if err := s.audit(ctx, tx, req.Audit, r); err != nil {
			return err
		}
		order := newOrderID()
		due = now.Add(s.DepositDue)
		if ok, err := postgres.RegisterOrder(ctx, tx, r.ID, req.Contact, order, req.Amount, now); err != nil || !ok {
			return errors.Join(err, errIf(!ok, ErrHoldExpired))
		}
		if _, err := postgres.SetState(ctx, tx, r.ID, booking.Hold, booking.Confirming); err != nil {
			return err
		}
		err = errors.Join(
			postgres.StartAttempt(ctx, tx, money.Payment{
				Reservation: r.ID, KeySet: string(toss.API), ConfirmKey: "issue-" + order, AttemptedAt: now,
			}, now.Add(watchdogDelay)),
			s.Queue.Settle(ctx, tx, r.ID, now.Add(watchdogDelay)),
			postgres.AppendLedger(ctx, tx, money.LedgerEntry{Reservation: r.ID, OrderID: order, Kind: "account.requested", Amount: req.Amount}),
		)
		if err != nil {
			return err
		}
		q, err = ask(ctx, tx, r.ID)
		return err
	})
	if err != nil {
		return 0, err
	}
	request := toss.VirtualAccountRequest{
		Amount: req.Amount, OrderID: q.reservation.OrderID, OrderName: req.OrderName, CustomerName: req.Name, Email: req.Email,
		Mobile: booking.NormalizePhone(req.Mobile), Bank: req.Bank, DueDate: due,
	}
	return detached(ctx, s, q.payment.ConfirmKey, func(ctx context.Context) (booking.ReservationID, error) {
		err := s.sendIssue(ctx, q, request)
		if err != nil {
			err = s.pending(ctx, request.OrderID, err)
		}
		return q.reservation.ID, err
	})
}

// sendIssue asks the provider for the account and acts on its answer.
func (s *Service) sendIssue(ctx context.Context, q question, request toss.VirtualAccountRequest) error {
	payment, err := s.Payments.IssueVirtualAccount(ctx, q.payment.ConfirmKey, request)
	if err == nil {
		return s.act(ctx, q, answer{payment: payment})
	}
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed:
		s.Log.WarnContext(ctx, "virtual account: outcome unknown", "order_id", request.OrderID, "error", err)
		return s.Settle(ctx, q.reservation.ID)
	case toss.Misconfigured:
		s.Log.ErrorContext(ctx, "virtual account: the provider does not accept our request", "order_id", request.OrderID, "error", err)
	}
	return s.act(ctx, q, answer{refused: refusal(err)})
}
