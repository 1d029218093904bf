package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// failingNth fails the nth look-up, of whatever kind and order.
type failingNth struct {
	reserve.Payments
	n     int64
	count *atomic.Int64
}

func (f failingNth) fails() bool { return f.count.Add(1) == f.n }

func (f failingNth) PaymentByOrder(ctx context.Context, keys toss.KeySet, orderID string) (toss.Payment, error) {
	if f.fails() {
		return toss.Payment{}, errors.New("connection reset")
	}
	return f.Payments.PaymentByOrder(ctx, keys, orderID)
}

func (f failingNth) Payment(ctx context.Context, keys toss.KeySet, paymentKey string) (toss.Payment, error) {
	if f.fails() {
		return toss.Payment{}, errors.New("connection reset")
	}
	return f.Payments.Payment(ctx, keys, paymentKey)
}

// C1: whichever look-up of a comparison fails, of an orphan, of an order of ours, or while it is settled, every other order
// that differs is listed, and the failed one is listed or counts as not compared.
func TestEachFailedLookUpHidesNoOtherOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	const each = 3
	var orders []moneytest.Confirm
	for i := range each {
		s.orphan(t, replica, fmt.Sprint("ord-orphan-", i), 5000)
		_, order, _ := s.bought(t, sandbox.MethodCard)
		orders = append(orders, order)
	}
	s.compared(t, replica)
	tried := int64(0)
	for n := int64(1); ; n++ {
		s.exec(t, `delete from reconciliation_difference`)
		for _, order := range orders {
			won := 100
			_, err := replica.Payments.Cancel(s.ctx, widget, fmt.Sprint("part-", n, order.OrderID), order.PaymentKey, toss.CancelRequest{Reason: "일부", Amount: &won})
			if err != nil {
				t.Fatal(err)
			}
		}
		flaky := s.Replica(t)
		count := new(atomic.Int64)
		flaky.Payments = failingNth{flaky.Payments, n, count}
		report, err := flaky.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan)
		if count.Load() < n {
			break // no look-up failed
		}
		tried++
		found := map[string]bool{}
		for _, d := range report.Discrepancies {
			found[d.OrderID] = true
		}
		for order := range report.Failed {
			found[order] = true
		}
		if len(found) != 2*each || len(report.Failed) > 1 || len(report.Failed) == 1 && err == nil {
			t.Errorf("look-up %d fails: %d of %d orders found, %d failed, %v", n, len(found), 2*each, len(report.Failed), err)
		}
		if _, err := replica.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan); err != nil { // settles what failed
			t.Fatal(err)
		}
	}
	if tried < 3*each { // an orphan has one look-up, an order of ours two
		t.Errorf("%d look-ups tried, want at least %d", tried, 3*each)
	}
}

// TestHundredPartRefunds: after 100 refunds of random parts, some in the provider's dashboard, the books equal the provider's
// to the won. The audit at the end of the test compares them per order and per day.
func TestHundredPartRefunds(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	rng := rand.New(rand.NewPCG(5, 17))
	type sale struct {
		moneytest.Confirm
		id   int64
		left int
	}
	var sales []*sale
	for range 10 {
		_, order, _ := s.bought(t, sandbox.MethodCard)
		sales = append(sales, &sale{order, s.wantState(t, order.OrderID, "DONE"), order.Amount})
	}
	won := 0
	for i := range 100 {
		one, dashboard := sales[2+rng.IntN(8)], i%5 == 0
		if dashboard {
			one = sales[rng.IntN(2)] // the audit cannot tell these from ours
		}
		amount := 1 + rng.IntN(min(1000, one.left-1))
		if dashboard {
			s.dashboard(t, moneytest.Confirm{OrderID: fmt.Sprint(one.OrderID, i), PaymentKey: one.PaymentKey}, amount, nil)
			if err := replica.Settle(s.ctx, part(one.id, 1).ID); err != nil {
				t.Fatal(err)
			}
		} else if _, err := replica.RefundPart(s.ctx, part(one.id, amount)); err != nil {
			t.Fatal(err)
		}
		one.left -= amount
		won += amount
	}
	if n := s.count(t, `select coalesce(-sum(won), 0) from money_entry where kind = 'refunded'`); n != won {
		t.Errorf("%d won booked as refunded, want %d", n, won)
	}
	if n := s.count(t, `select count(*) from money_entry where kind = 'refunded'`); n != 100 {
		t.Errorf("%d refunds booked, want 100", n)
	}
}
