package reserve

import (
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// book records the movements of a payment: see [rule.Entries].
func (c *change) book(p toss.Payment) error {
	captures, reversals, err := postgres.CountDeposits(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	for _, e := range rule.Entries(p, captures, reversals) {
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
