package money

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Payment is the provider's side of a reservation.
type Payment struct {
	Reservation booking.ReservationID
	KeySet      string // key set at the provider that created the payment: see toss.KeySet
	PaymentKey  string
	ConfirmKey  string // Idempotency-Key of the attempt in progress or completed
	Attempt     int
	AttemptedAt time.Time
	Checks      int    // status checks without a final state since the last event
	Answers     int    // provider answers that were acted on
	Status      string // last status reported by the provider; empty before the first report
	Balance     int    // balance reported with that status, won
	Secret      []byte // of the deposit callback, sealed
	Account     DepositAccount
	ReceiptURL  string

	SettledOutside int // won that an administrator returned outside the provider
	Rejected       int // won of them that the bank had rejected, so they are not in the balance
	Returned       int // won of refunds that keep the stay, requested or done
	Retained       int // won that the refund policy left with the shop when the guest canceled
}

// InBalance returns the won of the balance that no administrator has returned outside the provider.
func (p Payment) InBalance() int { return p.Balance + p.Rejected - p.SettledOutside }

// DepositAccount is the virtual account that a guest pays into.
type DepositAccount struct {
	Bank   string // two-character bank code
	Number string
	Holder string
	DueAt  time.Time
}

// ProviderState is what the provider reports about a payment.
type ProviderState struct {
	PaymentKey string
	Status     string
	Total      int
	Balance    int
	ApprovedAt time.Time
	Secret     []byte // sealed; empty keeps the stored value
	Account    DepositAccount
	ReceiptURL string
}

// ProviderBalance is the balance of an order at the provider by our records.
type ProviderBalance struct {
	Reservation booking.ReservationID
	KeySet      string // the keys that took the payment
	Won         int
	Open        bool // the outcome at the provider is open, so the balance may change at any moment
}

// Order is one attempt of a guest to pay for a hold. A hold may get several, one after the other.
type Order struct {
	ID          string
	ReplacedAt  time.Time // another order took its place; zero: it is current
	AbandonedAt time.Time // the guest left while the outcome was unclear
	PendingAt   time.Time // the guest is owed a message about the outcome
}

// Abandoned reports that the guest no longer wants the order: it must not be charged.
func (o Order) Abandoned() bool { return !o.AbandonedAt.IsZero() || !o.ReplacedAt.IsZero() }
