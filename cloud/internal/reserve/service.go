package reserve

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Payments is the payment provider, implemented by *toss.Client.
type Payments interface {
	Confirm(ctx context.Context, keys toss.KeySet, idempotencyKey string, r toss.ConfirmRequest) (toss.Payment, error)
	Payment(ctx context.Context, keys toss.KeySet, paymentKey string) (toss.Payment, error)
	PaymentByOrder(ctx context.Context, keys toss.KeySet, orderID string) (toss.Payment, error)
	Cancel(ctx context.Context, keys toss.KeySet, idempotencyKey, paymentKey string, r toss.CancelRequest) (toss.Payment, error)
	IssueVirtualAccount(ctx context.Context, keys toss.KeySet, idempotencyKey string, r toss.VirtualAccountRequest) (toss.Payment, error)
	Transactions(ctx context.Context, keys toss.KeySet, from, to time.Time) ([]toss.Transaction, error)
	Settlements(ctx context.Context, keys toss.KeySet, from, to time.Time) ([]toss.Settlement, error)
	IssueCashReceipt(ctx context.Context, keys toss.KeySet, idempotencyKey string, r toss.CashReceiptRequest) (toss.CashReceipt, error)
	CancelCashReceipt(ctx context.Context, keys toss.KeySet, idempotencyKey, receiptKey string) (toss.CashReceipt, error)
	CashReceipts(ctx context.Context, keys toss.KeySet, day time.Time) ([]toss.CashReceipt, error)
}

// Service executes the operations on reservations. Every field is required.
type Service struct {
	DB       *postgres.DB
	Payments Payments
	Queue    *queue.Queue
	Keys     *seal.Keyring
	Log      *slog.Logger

	HoldTTL      time.Duration // of a customer's hold (docs/specification.md, Holds 1)
	AdminHoldTTL time.Duration
	DepositDue   time.Duration // from the issue of a virtual account to the deadline of its deposit
	PublicURL    string        // for links in messages, without a trailing slash

	// Limits of live unpaid holds; 0: unlimited.
	MaxHoldsPerClient int
	MaxHoldsPerPhone  int

	// RefundLimit is the won of a payment up to which one administrator returns parts or records a refund by hand. Above it
	// another one has to approve; 0: unlimited.
	RefundLimit int

	calls   singleflight.Group // calls to the provider that concurrent requests share
	running sync.WaitGroup     // calls in progress, which may outlive their requests
}

func (s *Service) now() time.Time { return s.DB.Now() }

// The errors of requests.
var (
	ErrNoRoom          = errors.New("reserve: no such room")
	ErrNotForSale      = errors.New("reserve: the room's price tiers cannot express that length")
	ErrRoomDisabled    = errors.New("reserve: the room is switched off")
	ErrTaken           = errors.New("reserve: the time is reserved")
	ErrHeld            = errors.New("reserve: the time is held by another client")
	ErrHoldExpired     = errors.New("reserve: the hold has expired")
	ErrAmountMismatch  = errors.New("reserve: the amount is not the price")
	ErrUnknownOrder    = errors.New("reserve: no such order")
	ErrNotFound        = errors.New("reserve: no such reservation")
	ErrPaymentPending  = errors.New("reserve: the provider's answer is not known yet")
	ErrNotPayer        = errors.New("reserve: not the payer")
	ErrStatusMismatch  = errors.New("reserve: the reservation is not in the state that the caller has seen")
	ErrQuarantine      = errors.New("reserve: a quarantine ends by its release only")
	ErrAccountRequired = errors.New("reserve: a deposited payment needs a refund account")
	ErrWrongSecret     = errors.New("reserve: the callback's secret is wrong")
	ErrNotMovable      = errors.New("reserve: only a confirmed reservation can be moved")
	ErrUnknownBank     = errors.New("reserve: no such bank")
	ErrRefundChanged   = errors.New("reserve: the cancellation does not return the amount that the caller has seen")
	ErrRefundOpen      = errors.New("reserve: another refund of the reservation is not finished")
	ErrExceedsBalance  = errors.New("reserve: the amount is more than what is left of the payment")
	ErrKeyReused       = errors.New("reserve: the Idempotency-Key belongs to another request")
)

// ErrBlocked is returned for the purchase of a phone number that staff have blocked.
var ErrBlocked = errors.New("reserve: the phone number is blocked")

// tooManyHolds is the error of a client or a phone number with too many live unpaid reservations, of which the first expires at
// a time. Without such a time, all of them wait for the provider, which answers within a minute.
func tooManyHolds(until, now time.Time) error {
	wait := until.Sub(now)
	if wait <= 0 {
		wait = time.Minute
	}
	return &limit.ExceededError{Rule: "unpaid holds", RetryAfter: wait}
}

// PaymentRefused is the provider's final refusal of a charge or a refund. No money was moved.
type PaymentRefused struct {
	Code    string // the provider's
	Message string // the provider's, in Korean
}

func (e *PaymentRefused) Error() string { return "reserve: the provider refused: " + e.Code }

// RoomBusy lists the reservations because of which a room cannot be disabled.
type RoomBusy struct {
	Zone      *time.Location // of the branch
	Conflicts []booking.Reservation
}

func (e *RoomBusy) Error() string { return "reserve: the room has reservations" }

// room finds a room of a branch by its number.
func (s *Service) room(ctx context.Context, code string, no int) (booking.Branch, booking.Room, error) {
	branch, err := s.DB.Branch(ctx, code)
	if err != nil {
		return branch, booking.Room{}, err
	}
	room, ok := branch.Room(no)
	if !ok {
		return branch, room, ErrNoRoom
	}
	return branch, room, nil
}
