package money

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Callback is a stored callback of the provider.
type Callback struct {
	TransmissionID string // identifies repetitions
	OrderID        string
	Status         string
	Unsigned       bool // the sender is unknown: repetitions are not stored while one is unapplied
}

// Discrepancy is a finding about money that an administrator has to review.
type Discrepancy struct {
	ID         int64
	FoundAt    time.Time
	OrderID    string
	Kind       string // orphan, missing, balance, amount, status, late-deposit, reversal, refund, stuck
	Detail     string
	KeySet     string // under which the provider listed an orphan
	PaymentKey string // of an orphan
	ResolvedAt time.Time
	Resolution string
}

// LedgerEntry is one entry of the append-only ledger. Detail must not hold anything secret.
type LedgerEntry struct {
	Reservation booking.ReservationID
	OrderID     string
	Kind        string // confirm.sent, confirm.done, …
	Amount      int
	Code        string // the provider's code
	Detail      map[string]any
}
