package reserve_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestSettlementAcrossAMonthEnd sells, refunds and cancels at random in the last minutes of a month and the first ones of the next. The
// settlement of both months is what the provider has taken, returned and deducted on each day, with what was returned by hand.
func TestSettlementAcrossAMonthEnd(t *testing.T) {
	t.Parallel()
	for seed := *firstSeed; seed < *firstSeed+3; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { settleAtRandom(t, seed) })
	}
}

func settleAtRandom(t *testing.T, seed uint64) {
	s, zone := unaudited(t), booking.DefaultBranch().Zone
	rng, service := rand.New(rand.NewPCG(seed, 12)), s.Replica(t)
	now := s.Clock.Now().Add(time.Hour).In(zone)
	midnight := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, zone)
	pass := func(d time.Duration) {
		for _, clock := range []*servicetest.Clock{s.Clock, s.Provider} {
			clock.Advance(d)
		}
	}
	pass(midnight.Add(-25 * time.Minute).Sub(s.Clock.Now()))

	type place struct{ day, method string }
	type sums struct{ paid, refunded, fee, vat int }
	want, got := map[place]sums{}, map[place]sums{}
	var (
		stays []*refunds
		trace []string
	)
	methods := []string{sandbox.MethodCard, sandbox.MethodEasyPay, sandbox.MethodVirtualAccount}
	buy := func() {
		n := len(stays)
		r := &refunds{s: s, service: service, rng: rng, guest: s.buyer(), mobile: fmt.Sprintf("0105%07d", n)}
		method := methods[rng.IntN(len(methods))]
		r.deposit = method == sandbox.MethodVirtualAccount
		start := midnight.Add(-30 * time.Minute) // the stay has begun
		if n >= 6 {
			start = midnight.Add(time.Duration(n/6) * 2 * time.Hour)
		}
		var err error
		if r.order, err = r.guest.Buy(s.ctx, moneytest.Wish{Room: n%6 + 1, Start: start, Method: method, Mobile: r.mobile}); err != nil {
			t.Fatal(err)
		}
		if r.deposit {
			if err := r.bank(s.Sandbox.Deposit); err != nil {
				t.Fatal(err)
			}
		}
		r.id = int64(s.await(t, r.order.OrderID, "DONE"))
		stays = append(stays, r)
	}
	for range 9 {
		buy()
	}
	for s.Clock.Now().Before(midnight.Add(20 * time.Minute)) {
		r := stays[rng.IntN(len(stays))]
		to := &guestAccount
		if !r.deposit {
			to = nil
		}
		var (
			what string
			err  error
		)
		switch rng.IntN(8) {
		case 0, 1, 2:
			request := part(r.id, 1+rng.IntN(6000))
			request.Account, what = to, "part"
			_, err = service.RefundPart(s.ctx, request)
		case 3:
			what = "cancel"
			err = service.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(r.id), Status: "DONE", Account: to, By: hq})
		case 4, 5:
			what = r.dashboard()
		case 6:
			r.byHand, what = true, "by hand"
			_, err = service.SettleOutside(s.ctx, outside(r.id, 1+rng.IntN(3000)))
		case 7:
			what = "buy"
			buy()
		}
		trace = append(trace, fmt.Sprintf("%s order %s %s: %v", s.Clock.Now().In(zone).Format(time.DateTime), r.order.OrderID[:12], what, err))
		if err != nil && !possible(err) {
			t.Fatal(err)
		}
		pass(time.Duration(rng.IntN(150)) * time.Second)
	}
	s.eventually(t, "no refund is open", func() bool {
		for _, r := range stays {
			if err := service.Settle(s.ctx, booking.ReservationID(r.id)); err != nil && !possible(err) {
				t.Fatal(err)
			}
		}
		return s.endRefunds(t, service) == 0
	})

	for _, r := range stays {
		for _, p := range s.Sandbox.Payments(r.order.OrderID) {
			if p.ApprovedAt == nil {
				continue
			}
			add := func(at time.Time, paid, refunded int) {
				to := place{at.In(zone).Format(time.DateOnly), *p.Method}
				sum := want[to]
				sum.paid, sum.refunded = sum.paid+paid, sum.refunded+refunded
				want[to] = sum
			}
			add(*p.ApprovedAt, p.TotalAmount, 0)
			for _, c := range p.Cancels {
				add(c.CanceledAt, 0, c.CancelAmount)
			}
		}
	}
	list, err := service.Payments.Settlements(s.ctx, widget, midnight.AddDate(0, -1, 0), midnight.AddDate(0, 1, -1))
	if err != nil || len(list) == 0 {
		t.Fatalf("the provider lists %d settlements: %v", len(list), err)
	}
	for _, one := range list {
		sum := want[place{one.SoldOn, one.Method}]
		sum.fee, sum.vat = sum.fee+one.Fee, sum.vat+one.VAT
		want[place{one.SoldOn, one.Method}] = sum
	}
	byHand := 0
	for _, month := range []time.Time{midnight.AddDate(0, -1, 0), midnight} {
		first := time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, time.UTC)
		rows, complete, err := service.Settlement(s.ctx, []string{"gangnam"}, first)
		if err != nil || !complete {
			t.Fatalf("the settlement of %s: complete %t, %v", first.Format("2006-01"), complete, err)
		}
		for _, row := range rows {
			if !strings.HasPrefix(row.Date, first.Format("2006-01")) {
				t.Errorf("the settlement of %s has a row of %s", first.Format("2006-01"), row.Date)
			}
			byHand += row.Outside
			if sum := (sums{row.Paid, row.Refunded - row.Outside, row.Fee, row.VAT}); sum != (sums{}) {
				got[place{row.Date, row.Method}] = sum
			}
		}
	}
	days := map[string]bool{}
	for at, sum := range want {
		days[at.day] = true
		if got[at] != sum {
			t.Errorf("%v: the settlement has %+v, the provider %+v", at, got[at], sum)
		}
		delete(got, at)
	}
	if len(got) > 0 || len(days) != 2 {
		t.Errorf("the settlement also has %v; the provider has days %v, want two", got, days)
	}
	if returned := s.count(t, `select coalesce(sum(settled_outside), 0) from payment`); byHand != returned {
		t.Errorf("the settlement has %d won by hand, want %d", byHand, returned)
	}
	if t.Failed() {
		t.Log(strings.Join(trace, "\n"))
	}
}
