package reserve

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Registration is an administrator's reservation without payment.
type Registration struct {
	booking.Contact
	Note   string
	Notify bool         // send the key to the contact
	Shown  *HoldRequest // the hold that the administrator sees; nil: not compared
	By     account.Principal
}

// RegisterWithoutPayment turns an administrator's hold into a confirmed reservation. A repetition with the same contents, as after an answer
// that was lost, returns the same reservation.
//
// Errors: ErrHoldExpired (also if reg.Shown is another hold), account.ErrBranchForbidden, ErrPaymentPending (a virtual account
// was requested for the hold).
func (s *Service) RegisterWithoutPayment(ctx context.Context, token Token, reg Registration) (booking.ReservationID, error) {
	var id booking.ReservationID
	err := s.adminHeld(ctx, token, reg.Shown, reg.By, func(c *change) error {
		r := c.r()
		id = r.ID
		key := s.newKey()
		err := postgres.RegisterAdmin(c.ctx, c.tx, r.ID, reg.Contact, reg.Note, postgres.Confirmation{Method: booking.ByAdmin, Key: key, PaidAt: c.now})
		if err != nil {
			return err
		}
		r.Name, r.Mobile, r.Email, r.Language = reg.Name, reg.Mobile, reg.Email, reg.Language
		r.DoorlockKey = key.Key.String()
		if err := c.issuePass(); err != nil {
			return err
		}
		if reg.Notify && (reg.Mobile != "" || reg.Email != "") {
			if err := c.notifyConfirmed(r, notify.ReservationConfirmed); err != nil {
				return err
			}
		}
		if err := c.block(); err != nil {
			return err
		}
		return c.audited(reg.By, "reservation.register", map[string]any{"reason": reg.Note})
	})
	if errors.Is(err, ErrHoldExpired) {
		return s.repeated(ctx, token, reg.Shown, reg.By, reg.Contact, func(r booking.Reservation) (bool, error) {
			return r.State == booking.Done && r.Method == booking.ByAdmin && r.Note == reg.Note, nil
		})
	}
	return id, err
}

// repeated returns the reservation that an earlier request with the same contents has made of the hold: its answer was lost. same compares
// what is not compared here. Otherwise repeated returns ErrHoldExpired.
func (s *Service) repeated(ctx context.Context, token Token, shown *HoldRequest, by account.Principal, contact booking.Contact, same func(booking.Reservation) (bool, error)) (booking.ReservationID, error) {
	r, err := postgres.ReservationByToken(ctx, s.DB.Pool, token.hash())
	if errors.Is(err, booking.ErrNoReservation) {
		return 0, ErrHoldExpired
	}
	if err != nil {
		return 0, err
	}
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	if err != nil {
		return 0, err
	}
	if !by.Reaches(branch.Code) || shown != nil && !shown.describes(r, branch) || r.Name != contact.Name || r.Mobile != contact.Mobile || r.Email != contact.Email {
		return 0, ErrHoldExpired
	}
	if is, err := same(r); err != nil || !is {
		return 0, cmp.Or(err, ErrHoldExpired)
	}
	return r.ID, nil
}

// adminHeld runs do in a transaction that locks the row of an administrator's live hold. shown is the room and time that the
// administrator sees; nil is not compared. All tabs of a browser share one hold, so a tab may show an earlier one.
func (s *Service) adminHeld(ctx context.Context, token Token, shown *HoldRequest, by account.Principal, do func(*change) error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := lockAdminHold(ctx, tx, token, now)
		if err != nil {
			return err
		}
		c := s.change(ctx, tx, r, now)
		branch, err := c.reachable(by)
		if err != nil {
			return err
		}
		if shown != nil && !shown.describes(r, branch) {
			return ErrHoldExpired
		}
		return do(c)
	})
}

// describes reports whether a hold is that of the request.
func (q HoldRequest) describes(held booking.Reservation, branch booking.Branch) bool {
	return q.Branch == branch.Code && q.Room == held.RoomNo &&
		q.Times.Start.Equal(booking.WallClock(held.Start, branch.Zone)) && q.Times.End.Equal(booking.WallClock(held.End, branch.Zone))
}

func lockAdminHold(ctx context.Context, tx pgx.Tx, token Token, now time.Time) (booking.Reservation, error) {
	if token == "" {
		return booking.Reservation{}, ErrHoldExpired
	}
	r, err := postgres.LockToken(ctx, tx, token.hash())
	if errors.Is(err, booking.ErrNoReservation) {
		return r, ErrHoldExpired
	}
	if err != nil {
		return r, err
	}
	return r, adminHold(r, now)
}

// adminHold returns nil for an administrator's live hold, and ErrPaymentPending if a virtual account was requested for it
// and the provider has not answered.
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

// AccountRequest is a request to issue a virtual account for an administrator's hold.
type AccountRequest struct {
	booking.Contact
	Amount    int
	OrderName string
	Bank      string
	Shown     *HoldRequest // as in Registration
	By        account.Principal
}

// IssueAccount issues a virtual account whose deposit confirms the reservation. The slot is held until the deposit is due. A repetition with
// the same contact, amount and bank returns the same reservation, until the deposit has arrived.
//
// Errors: ErrHoldExpired (also if req.Shown is another hold), account.ErrBranchForbidden, ErrUnknownBank, *PaymentRefused (the hold is kept),
// ErrPaymentPending.
func (s *Service) IssueAccount(ctx context.Context, token Token, req AccountRequest) (booking.ReservationID, error) {
	if bank, ok := booking.BankByCode(req.Bank); !ok || !bank.Issues {
		return 0, ErrUnknownBank
	}
	var (
		q   question
		due time.Time
	)
	err := s.adminHeld(ctx, token, req.Shown, req.By, func(c *change) error {
		due = rule.DepositDue(c.r().Interval, c.now.Add(c.DepositDue), c.now)
		if err := c.requestAccount(req); err != nil {
			return err
		}
		var err error
		q, err = ask(c.ctx, c.tx, c.r().ID)
		return err
	})
	if errors.Is(err, ErrHoldExpired) {
		return s.repeated(ctx, token, req.Shown, req.By, req.Contact, func(r booking.Reservation) (bool, error) {
			if r.State != booking.WaitingForDeposit || r.Amount != req.Amount {
				return false, nil
			}
			p, err := postgres.PaymentOf(ctx, s.DB.Pool, r.ID)
			return p.Account.Bank == req.Bank, err
		})
	}
	if err != nil {
		return 0, err
	}
	request := toss.VirtualAccountRequest{
		Amount: req.Amount, OrderID: q.Reservation.OrderID, OrderName: req.OrderName, CustomerName: req.Name, Email: req.Email,
		Mobile: booking.NormalizePhone(req.Mobile), Bank: req.Bank, DueDate: due,
	}
	return detached(ctx, s, q.Payment.ConfirmKey, func(ctx context.Context) (booking.ReservationID, error) {
		err := s.sendIssue(ctx, q, request)
		if err != nil {
			err = s.pending(ctx, request.OrderID, err)
		}
		return q.Reservation.ID, err
	})
}

// requestAccount records the request for a virtual account before it is sent.
func (c *change) requestAccount(req AccountRequest) error {
	r := c.r()
	branch, err := postgres.BranchOf(c.ctx, c.tx, r.Branch)
	if err != nil {
		return err
	}
	id, err := c.newOrderID(c.ctx, c.tx, ordered{
		Entity: branch.LegalEntity, Room: r.Room, Times: r.Interval, Mobile: req.Mobile, Language: req.Language, Source: booking.Admin,
	})
	if err != nil {
		return err
	}
	order := postgres.NewOrder{ID: id, Contact: req.Contact, Entity: branch.LegalEntity, Amount: req.Amount}
	if err := postgres.RegisterOrder(c.ctx, c.tx, r, order, c.now); err != nil {
		return err
	}
	if _, err := postgres.SetState(c.ctx, c.tx, r.ID, booking.Hold, booking.Confirming); err != nil {
		return err
	}
	err = postgres.StartAttempt(c.ctx, c.tx, money.Payment{
		Reservation: r.ID, KeySet: string(toss.API.Of(branch.LegalEntity)), ConfirmKey: "issue-" + id, AttemptedAt: c.now,
	}, c.now.Add(watchdogDelay))
	if err != nil {
		return err
	}
	if err := c.Queue.Settle(c.ctx, c.tx, r.ID, c.now.Add(watchdogDelay)); err != nil {
		return err
	}
	c.Reservation.OrderID = id
	if err := c.entry("account.requested", req.Amount, "", nil); err != nil {
		return err
	}
	return c.audited(req.By, "virtual-account.issue", map[string]any{"amount": req.Amount})
}

// sendIssue requests the account from the provider and applies the answer.
func (s *Service) sendIssue(ctx context.Context, q question, request toss.VirtualAccountRequest) error {
	payment, err := s.Payments.IssueVirtualAccount(ctx, q.keys(), q.Payment.ConfirmKey, request)
	if err == nil {
		return s.act(ctx, q, answer{payment: payment})
	}
	switch toss.ClassOf(err) {
	case toss.Unknown, toss.AlreadyProcessed:
		s.Log.WarnContext(ctx, "virtual account: outcome unknown", "order_id", request.OrderID, "error", err)
		return s.Settle(ctx, q.Reservation.ID)
	case toss.Misconfigured:
		s.reportKeyRejected(ctx, q, err)
		s.Log.ErrorContext(ctx, "virtual account: the provider does not accept our request", "order_id", request.OrderID, "error", err)
	}
	return s.act(ctx, q, answer{refused: refusal(err), unknown: true})
}
