package reserve

import (
	"cmp"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// book records the movements of a payment as the provider reports them: the capture and each cancellation. It records
// nothing for an account without a deposit. A reversed deposit may arrive again, so the source of an entry contains the
// number of reversals.
func (c *change) book(p toss.Payment) error {
	waiting := p.Status == toss.StatusWaitingForDeposit
	if waiting && c.r().State != booking.Done || !waiting && p.ApprovedAt.IsZero() {
		return nil
	}
	reversals, err := postgres.CountReversals(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	if waiting {
		return c.bookEntry(money.Entry{Source: fmt.Sprint("reversed:", p.PaymentKey, ":", reversals), Kind: money.Reversed, Won: -p.TotalAmount, At: c.now})
	}
	// The balance plus the returned amounts is the received amount, even if the provider states another total.
	received := p.BalanceAmount
	var entries []money.Entry
	for i, cancel := range p.Cancels {
		if cancel.Status == "" || cancel.Status == "DONE" {
			received += cancel.Amount
			entries = append(entries, money.Entry{
				Source: "refunded:" + cmp.Or(cancel.TransactionKey, fmt.Sprint(p.PaymentKey, ":", i)), Kind: money.Refunded, Won: -cancel.Amount, At: cancel.CanceledAt,
			})
		}
	}
	entries = append(entries, money.Entry{Source: fmt.Sprint("paid:", p.PaymentKey, ":", reversals), Kind: money.Paid, Won: received, At: p.ApprovedAt})
	for _, e := range entries {
		if err := c.bookEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) bookEntry(e money.Entry) error {
	e.Reservation, e.OrderID = c.r().ID, c.r().OrderID
	if e.At.IsZero() {
		e.At = c.now
	}
	if err := postgres.BookEntry(c.ctx, c.tx, e); err != nil {
		return fmt.Errorf("book %s of order %s: %w", e.Kind, e.OrderID, err)
	}
	return nil
}
