package rule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestEntries checks the movements that are booked for a payment: the same movement always has the same source.
func TestEntries(t *testing.T) {
	t.Parallel()
	account := &toss.VirtualAccount{Number: "1"}
	received := func(won, reversals int) money.Entry {
		return money.Entry{Source: []string{"paid:key:0", "paid:key:1"}[reversals], Kind: money.Paid, Won: won, At: now}
	}
	reversed := []money.Entry{{Source: "reversed:key:0", Kind: money.Reversed, Won: -12000}}
	cancels := []toss.Cancellation{
		{TransactionKey: "t1", Amount: 1000, CanceledAt: now.Add(time.Minute), Status: "DONE"},
		{TransactionKey: "t2", Amount: 500, CanceledAt: now.Add(time.Minute), Status: "IN_PROGRESS"},
		{Amount: 2000, CanceledAt: now.Add(time.Hour)},
	}
	refunded := []money.Entry{
		{Source: "refunded:t1", Kind: money.Refunded, Won: -1000, At: now.Add(time.Minute)},
		{Source: "refunded:key:2", Kind: money.Refunded, Won: -2000, At: now.Add(time.Hour)},
	}
	for _, c := range []struct {
		name                string
		status              string
		approved            bool
		account             *toss.VirtualAccount
		balance             int
		cancels             []toss.Cancellation
		captures, reversals int
		want                []money.Entry
	}{
		{"a card", toss.StatusDone, true, nil, 12000, nil, 0, 0, []money.Entry{received(12000, 0)}},
		{"not captured", toss.StatusInProgress, false, nil, 12000, nil, 0, 0, nil},
		{"returned in parts", toss.StatusPartialCanceled, true, nil, 9000, cancels, 1, 0, append(slices.Clone(refunded), received(12000, 0))},
		{"an account", toss.StatusWaitingForDeposit, false, account, 12000, nil, 0, 0, nil},
		{"a closed account", toss.StatusCanceled, false, account, 0, nil, 0, 0, nil},
		{"a deposit", toss.StatusDone, true, account, 12000, nil, 0, 0, []money.Entry{received(12000, 0)}},
		{"a reversed deposit", toss.StatusWaitingForDeposit, false, account, 12000, nil, 1, 0, reversed},
		{"a reversed deposit with the time of its arrival", toss.StatusWaitingForDeposit, true, account, 12000, nil, 1, 0, reversed},
		{"a reversed deposit of a closed account", toss.StatusCanceled, false, account, 0, nil, 1, 0, reversed},
		{"a reversal that is booked", toss.StatusWaitingForDeposit, false, account, 12000, nil, 1, 1, nil},
		{"a deposit that arrived again", toss.StatusDone, true, account, 12000, nil, 1, 1, []money.Entry{received(12000, 1)}},
		{"a returned deposit", toss.StatusCanceled, true, account, 9000, cancels, 1, 0, append(slices.Clone(refunded), received(12000, 0))},
		{"an expired payment without an account", toss.StatusExpired, false, nil, 12000, nil, 1, 0, nil},
	} {
		p := toss.Payment{PaymentKey: "key", Status: c.status, TotalAmount: 12000, BalanceAmount: c.balance, VirtualAccount: c.account, Cancels: c.cancels}
		if c.approved {
			p.ApprovedAt = now
		}
		if got := rule.Entries(p, c.captures, c.reversals); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
