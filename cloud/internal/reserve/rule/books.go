package rule

import (
	"cmp"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Entries returns the movements of a payment as the provider reports them: the capture and each cancellation. There are none
// for an account without a deposit. captures and reversals are the numbers of booked deposits and of booked reversals: a
// deposit that is booked, and that the provider does not have any more, was reversed, even if its account was closed since. A
// reversed deposit may arrive again, so the source of an entry contains the number of reversals. An entry without a time was
// made now.
func Entries(p toss.Payment, captures, reversals int) []money.Entry {
	waiting := p.Status == toss.StatusWaitingForDeposit
	switch {
	case captures > reversals && p.VirtualAccount != nil && (waiting || p.ApprovedAt.IsZero() && over(p, time.Time{})):
		return []money.Entry{{Source: fmt.Sprint("reversed:", p.PaymentKey, ":", reversals), Kind: money.Reversed, Won: -p.TotalAmount}}
	case waiting, p.ApprovedAt.IsZero():
		return nil
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
	return append(entries, money.Entry{Source: fmt.Sprint("paid:", p.PaymentKey, ":", reversals), Kind: money.Paid, Won: received, At: p.ApprovedAt})
}
