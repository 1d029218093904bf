package reserve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// receiptPurpose is the seal purpose of the number that identifies a guest to the tax office.
const receiptPurpose = "cash-receipt"

// receiptErased is the code of a receipt that cannot be issued because the guest's number was erased.
const receiptErased = "NUMBER_ERASED"

// receiptByHand is the code of a receipt that was issued by hand, for cash that was returned afterwards.
const receiptByHand = "ISSUED_BY_HAND"

// The errors of requests for a cash receipt.
var (
	ErrNoCash        = errors.New("reserve: no deposit is kept, or no cash receipt was asked for")
	ErrReceiptStands = errors.New("reserve: the cash receipt stands or is in progress")
)

// ReceiptWish is the cash receipt that a guest asks for. The zero value asks for none.
type ReceiptWish struct {
	Type   money.ReceiptType
	Number string // digits
}

// seal returns the wish as it is stored.
func (w ReceiptWish) seal(s *Service) money.CashReceipt {
	if w.Type == "" {
		return money.CashReceipt{}
	}
	return money.CashReceipt{Type: w.Type, Number: s.Keys.Seal(receiptPurpose, []byte(w.Number)), Masked: w.masked()}
}

// masked returns the number as it is shown.
func (w ReceiptWish) masked() string {
	return w.Number[:3] + "****" + w.Number[len(w.Number)-3:]
}

// wakeReceipt enqueues the next step of the cash receipt if the kept cash has changed.
func (c *change) wakeReceipt() error {
	woken, err := postgres.WakeReceipt(c.ctx, c.tx, c.r().ID, c.now)
	if err != nil || !woken {
		return err
	}
	return c.Queue.CashReceipt(c.ctx, c.tx, c.r().ID, c.now)
}

// receiptStep is a step of a cash receipt that is recorded and has to be taken.
type receiptStep struct {
	receipt money.CashReceipt
	order   question
	name    string // of the order, as the tax office shows it
	look    bool   // an earlier request may have reached the provider, or only the tax office's decision is wanted
}

// SettleReceipt takes the next step of a reservation's cash receipt, if one is due: issue it, cancel it, or look up the outcome
// of an earlier step. A request is recorded before it is sent, and one without an answer is looked up before it is repeated with its key.
func (s *Service) SettleReceipt(ctx context.Context, id booking.ReservationID) error {
	step, err := s.beginReceipt(ctx, id)
	if errors.Is(err, postgres.ErrNoReceipt) || err == nil && step == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cash receipt of reservation %d: %w", id, err)
	}
	failpoint.Hit("receipt.begun")
	asking, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	entry, err := s.askReceipt(asking, *step)
	failpoint.Hit("receipt.answered")
	if err != nil {
		s.Log.WarnContext(ctx, "cash receipt", "reservation", id, "state", step.receipt.State, "error", err)
	}
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	return s.noteReceipt(noting, *step, entry, err)
}

// beginReceipt records the next step under the row's lock. It returns nil if there is none.
func (s *Service) beginReceipt(ctx context.Context, id booking.ReservationID) (step *receiptStep, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		step = nil
		c, err := postgres.LockDueReceipt(ctx, tx, id, now)
		if err != nil {
			return err
		}
		next := receiptStep{look: c.State == money.ReceiptIssued && c.Due == c.Standing || c.State == money.ReceiptIssuing || c.State == money.ReceiptCanceling}
		switch {
		case next.look:
		case c.State == money.ReceiptOutside && c.Due != c.Standing: // only an administrator can correct it
			c.State, c.ErrorCode, c.RequestedAt = money.ReceiptFailed, receiptByHand, now
			c.ErrorMessage = "직접 처리한 현금영수증의 금액이 남은 입금액과 다릅니다."
			return postgres.PutReceipt(ctx, tx, c, time.Time{}, now)
		case c.State == money.ReceiptFailed && c.ErrorCode == receiptByHand && c.Due == c.Standing: // a reversed deposit has arrived again
			c.State, c.ErrorCode, c.ErrorMessage = money.ReceiptOutside, "", ""
			return postgres.PutReceipt(ctx, tx, c, time.Time{}, now)
		case c.State == money.ReceiptFailed && c.Due == 0 && c.Standing == 0:
			c.State = money.ReceiptCanceled // nothing is left to issue
			return postgres.PutReceipt(ctx, tx, c, time.Time{}, now)
		case c.State == money.ReceiptFailed, c.Due == c.Standing:
			return postgres.PutReceipt(ctx, tx, c, time.Time{}, now)
		case c.Standing > 0:
			c.State, c.Attempt, c.Checks, c.RequestedAt = money.ReceiptCanceling, c.Attempt+1, 0, now
		default:
			c.State, c.Sequence, c.Attempt, c.Checks, c.Amount, c.RequestedAt = money.ReceiptIssuing, c.Sequence+1, 1, 0, c.Due, now
			c.Key, c.IssueNumber, c.URL, c.ErrorCode, c.ErrorMessage = "", "", "", "", ""
		}
		if c.State != money.ReceiptIssued {
			c.SentAt = now
		}
		next.receipt = c
		if next.order, err = ask(ctx, tx, id); err != nil {
			return err
		}
		branch, err := postgres.BranchOf(ctx, tx, next.order.Reservation.Branch)
		if err != nil {
			return err
		}
		next.name = fmt.Sprintf("%.80s %d번 룸", branch.NameKo, next.order.Reservation.RoomNo)
		step = &next
		return postgres.PutReceipt(ctx, tx, c, now.Add(checkLease), now)
	})
	return step, err
}

// orderID returns the order id of a request to issue the receipt. It follows from the order and the sequence, so that a
// database that was restored from a backup repeats its requests with the keys that the provider knows.
func (r receiptStep) orderID() string {
	order := sha256.Sum256([]byte(r.order.Reservation.OrderID))
	return fmt.Sprintf("cash-%x-%d", order[:16], r.receipt.Sequence)
}

func (r receiptStep) key(verb string) string {
	return fmt.Sprintf("%s-%s-%d", verb, r.orderID(), r.receipt.Attempt)
}

// Why a step has no answer that ends it.
var (
	errUndecided   = errors.New("reserve: the provider does not list the cash receipt")
	errUnanswered  = errors.New("reserve: a look-up failed, and nothing may be repeated")
	errWithPayment = errors.New("reserve: the provider issued a cash receipt with the payment")
)

func (s *Service) askReceipt(ctx context.Context, r receiptStep) (toss.CashReceipt, error) {
	if r.look {
		entry, err := s.findReceipt(ctx, r)
		if !errors.Is(err, errUndecided) || r.receipt.State == money.ReceiptIssued {
			return entry, err
		}
	}
	if r.receipt.State == money.ReceiptCanceling {
		return s.Payments.CancelCashReceipt(ctx, r.order.keys(), r.key("cancel"), r.receipt.Key)
	}
	payment, err := s.Payments.Payment(ctx, r.order.keys(), r.order.Payment.PaymentKey)
	if err != nil {
		return toss.CashReceipt{}, errors.Join(errUnanswered, err)
	}
	if len(payment.CashReceipts) > 0 {
		return toss.CashReceipt{}, errWithPayment
	}
	number, err := s.Keys.Open(receiptPurpose, r.receipt.Number)
	if err != nil {
		return toss.CashReceipt{}, &PaymentRefused{Code: receiptErased, Message: "고객의 번호가 없어 발급할 수 없습니다."}
	}
	kind := toss.PersonalReceipt
	if r.receipt.Type == money.BusinessReceipt {
		kind = toss.BusinessReceipt
	}
	return s.Payments.IssueCashReceipt(ctx, r.order.keys(), r.key("issue"), toss.CashReceiptRequest{
		OrderID: r.orderID(), OrderName: r.name, Type: kind, Number: string(number), Amount: r.receipt.Amount,
	})
}

// korea is the provider's time zone.
var korea = time.FixedZone("KST", 9*60*60)

// clockSkew is the difference that the provider's clock may have from ours.
const clockSkew = time.Hour

// findReceipt returns the entry of the receipt in the provider's lists of the days on which it may have been requested.
func (s *Service) findReceipt(ctx context.Context, r receiptStep) (toss.CashReceipt, error) {
	last := earlier(s.now(), r.receipt.SentAt.Add(24*time.Hour)).In(korea).Format(time.DateOnly)
	for at := r.receipt.RequestedAt.Add(-clockSkew).In(korea); ; at = at.AddDate(0, 0, 1) {
		list, err := s.Payments.CashReceipts(ctx, r.order.keys(), at)
		if err != nil {
			return toss.CashReceipt{}, errors.Join(errUnanswered, err)
		}
		for _, entry := range list {
			if entry.OrderID == r.orderID() && entry.Canceled == (r.receipt.State == money.ReceiptCanceling) {
				return entry, nil
			}
		}
		if at.Format(time.DateOnly) >= last {
			return toss.CashReceipt{}, errUndecided
		}
	}
}

// The delays between look-ups: of a request without an answer, and of the tax office's decision, which takes one or two days.
var (
	receiptRetries = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
	receiptPolls   = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}
)

// noteReceipt stores what a step resulted in, unless an administrator has ended it meanwhile. If the kept cash has changed
// meanwhile, the next step follows at once.
func (s *Service) noteReceipt(ctx context.Context, step receiptStep, entry toss.CashReceipt, failure error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		c, err := postgres.LockReceipt(ctx, tx, step.receipt.Reservation)
		if err != nil {
			return err
		}
		if c.State != step.receipt.State || c.Sequence != step.receipt.Sequence || c.Attempt != step.receipt.Attempt {
			return nil
		}
		wait := noteAnswer(&c, entry, failure)
		var next time.Time
		if wait > 0 {
			next = now.Add(wait)
		}
		if err := postgres.PutReceipt(ctx, tx, c, next, now); err != nil {
			return err
		}
		if c.State == money.ReceiptFailed {
			s.Log.ErrorContext(ctx, "a cash receipt needs an administrator", "reservation", c.Reservation, "code", c.ErrorCode)
			return nil
		}
		return s.change(ctx, tx, step.order.Reservation, now).wakeReceipt()
	})
}

// noteAnswer brings a receipt in line with the provider's answer. It returns the time until the next look-up; 0: none.
func noteAnswer(c *money.CashReceipt, entry toss.CashReceipt, failure error) time.Duration {
	switch {
	case errors.Is(failure, errWithPayment):
		c.State = money.ReceiptWithPayment
		return 0
	case errors.Is(failure, errUndecided), errors.Is(failure, errUnanswered):
	case failure != nil:
		why := refusal(failure)
		if own := new(PaymentRefused); errors.As(failure, &own) {
			why = own
		} else if !rule.Rejected(failure) && toss.ClassOf(failure) != toss.Misconfigured {
			break // unknown: to be looked up
		} else if toss.ClassOf(failure) == toss.RetryLater || toss.KeyRejected(failure) {
			c.Attempt++ // the provider replays its refusal for the old key
			break
		}
		c.State, c.ErrorCode, c.ErrorMessage = money.ReceiptFailed, why.Code, why.Message
		return 0
	case entry.Status == toss.ReceiptFailed && c.State == money.ReceiptCanceling:
		c.State, c.ErrorCode, c.ErrorMessage = money.ReceiptFailed, "", "국세청에서 취소를 거절했습니다."
		return 0
	case entry.Status == toss.ReceiptFailed:
		c.State, c.Standing = money.ReceiptFailed, 0
		c.ErrorCode, c.ErrorMessage = "", "국세청에서 발급을 거절했습니다."
		if entry.Failure != nil {
			c.ErrorCode, c.ErrorMessage = entry.Failure.Code, entry.Failure.Message
		}
		return 0
	case c.State == money.ReceiptCanceling:
		c.State, c.Standing = money.ReceiptCanceled, 0
		return 0
	default:
		c.Key, c.IssueNumber, c.URL, c.Standing = entry.Key, entry.IssueNumber, entry.URL, c.Amount
		fresh := c.State == money.ReceiptIssuing
		if c.State = money.ReceiptCompleted; entry.Status != toss.ReceiptCompleted {
			c.State = money.ReceiptIssued
		} else {
			return 0
		}
		if fresh {
			c.Checks = 0
		}
		c.Checks++
		return delay(receiptPolls, c.Checks-1)
	}
	c.Checks++
	return delay(receiptRetries, c.Checks-1)
}

// ReceiptRequest is an administrator's decision about a cash receipt.
type ReceiptRequest struct {
	ID   booking.ReservationID
	Wish ReceiptWish // zero: as the guest asked
	// How and Reference are set if the receipt was issued or canceled by hand, for example at the tax office's site.
	How, Reference string
	By             account.Principal
}

// SettleCashReceipt asks for a cash receipt that failed, was asked for after the payment, or has another number; or it records
// that an administrator did what was due by hand. It returns the state.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNoCash,
// ErrReceiptStands.
func (s *Service) SettleCashReceipt(ctx context.Context, req ReceiptRequest) (state money.ReceiptState, err error) {
	err = s.locked(ctx, req.ID, func(c *change) error {
		if _, err := c.reachable(req.By); err != nil {
			return err
		}
		state, err = c.settleReceipt(req)
		if err != nil {
			return err
		}
		what := "retry"
		if req.How != "" {
			what = "outside"
		}
		return c.audited(req.By, "reservation.cash-receipt", map[string]any{"what": what, "type": req.Wish.Type})
	})
	return state, err
}

func (c *change) settleReceipt(req ReceiptRequest) (money.ReceiptState, error) {
	found, err := postgres.LockReceipt(c.ctx, c.tx, req.ID)
	switch {
	case errors.Is(err, postgres.ErrNoReceipt) && req.Wish.Type != "":
		if err := postgres.WishReceipt(c.ctx, c.tx, req.ID, req.Wish.seal(c.Service)); err != nil {
			return "", err
		}
		if found, err = postgres.LockReceipt(c.ctx, c.tx, req.ID); err == nil && found.Due == 0 {
			err = ErrNoCash
		}
	case errors.Is(err, postgres.ErrNoReceipt):
		err = ErrNoCash
	}
	if err != nil {
		return "", err
	}
	switch found.State {
	case money.ReceiptRequested, money.ReceiptFailed:
	case money.ReceiptIssuing, money.ReceiptCanceling:
		if c.now.Sub(found.RequestedAt) < stuckAfter || req.How == "" {
			return "", ErrReceiptStands
		}
	default:
		return "", ErrReceiptStands
	}
	if req.How != "" {
		err := postgres.EndReceipt(c.ctx, c.tx, found, map[string]string{"how": req.How, "reference": req.Reference, "by": req.By.Actor()}, c.now)
		return money.ReceiptOutside, err
	}
	if found.Standing > 0 && found.Key == "" { // issued by hand
		return "", ErrReceiptStands
	}
	if req.Wish.Type != "" {
		wish := req.Wish.seal(c.Service)
		found.Type, found.Number, found.Masked = wish.Type, wish.Number, wish.Masked
	}
	if found.State = money.ReceiptRequested; found.Standing > 0 {
		found.State = money.ReceiptCompleted // its cancellation failed
	}
	found.ErrorCode, found.ErrorMessage = "", ""
	if err := postgres.PutReceipt(c.ctx, c.tx, found, time.Time{}, c.now); err != nil {
		return "", err
	}
	return found.State, c.wakeReceipt()
}
