package money

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// The kinds of entries.
const (
	Paid     = "paid"
	Refunded = "refunded"
	Reversed = "reversed" // the bank took a deposit back
	Outside  = "outside"  // an administrator returned it outside the provider
	Rejected = "rejected" // a refund that the bank has rejected, and that an administrator has returned outside the provider
)

// Entry is one movement of money as the provider reports it.
type Entry struct {
	Source      string // of the provider's transaction: the same movement is booked once
	Reservation booking.ReservationID
	OrderID     string
	Kind        string
	Won         int // what came in; negative: what went out
	At          time.Time
}

// Totals are the sums of entries, all positive.
type Totals struct {
	Paid, Refunded, Reversed, Outside int
}

// Net is what is left.
func (t Totals) Net() int { return t.Paid - t.Refunded - t.Reversed - t.Outside }
