package reserve_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestNoTransactionDuringStall: no transaction is open while the provider stalls, so a slow provider does not block the
// database.
func TestNoTransactionDuringStall(t *testing.T) {
	t.Parallel()
	s := open(t)
	const stall = 1500 * time.Millisecond
	slow := func(target sandbox.FaultTarget) { // each call: the background work calls the provider, too
		s.Sandbox.ClearFaults()
		s.fault(t, sandbox.Fault{Target: target, Kind: sandbox.FaultSlow, Delay: stall, Times: -1})
	}

	b, order, w := s.order(t, sandbox.MethodCard)
	slow(sandbox.TargetConfirm)
	s.noneOpenDuring(t, "confirm", func() { s.answer(t, b, "/payment/confirm", order, 200, "") })

	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "DONE")
	slow(sandbox.TargetCancel)
	s.noneOpenDuring(t, "cancel", func() {
		s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	})

	s.Sandbox.ClearFaults()
	_, waiting, _ := s.bought(t, sandbox.MethodVirtualAccount)
	slow(sandbox.TargetGet)
	s.noneOpenDuring(t, "callback", func() { s.deposit(t, waiting.OrderID) })

	s.Sandbox.ClearFaults()
	admin, w := s.buyer(), s.wish(sandbox.MethodVirtualAccount)
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	s.answer(t, admin, "/admin/reservation", map[string]any{
		"branch": "gangnam", "room": w.Room, "startDateTime": moneytest.Wire(w.Start), "endDateTime": moneytest.Wire(w.Start.Add(time.Hour)),
	}, 200, "")
	slow(sandbox.TargetVirtualAccounts)
	s.noneOpenDuring(t, "issue", func() {
		s.answer(t, admin, "/admin/v2/virtual-accounts", map[string]any{
			"amount": 12000, "orderName": "룸", "name": "홍길동", "mobileNum": w.Mobile, "bankCode": "20",
		}, 200, "")
	})
}

// noneOpenDuring samples the server's transactions while do runs. A transaction without a statement for two thirds of the stall
// counts as open because of it.
func (s *shop) noneOpenDuring(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	found := make(chan string, 1)
	go func() {
		defer close(found)
		for {
			var open string
			err := s.DB.Pool.QueryRow(s.ctx, `
				select coalesce(string_agg(state || ' ' || query, '; '), '') from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
				  and state = 'idle in transaction' and state_change < clock_timestamp() - interval '1 second'`).Scan(&open)
			if err != nil {
				open = err.Error()
			}
			if open != "" {
				found <- open
				return
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond): // a sampler
			}
		}
	}()
	began := time.Now()
	do()
	close(done)
	if open := <-found; open != "" {
		t.Errorf("%s: open during the provider's stall: %s", what, open)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("%s: the provider did not stall (%v)", what, took)
	}
}

// TestHangingProvider: if the provider hangs, a request to it takes ten seconds and other requests are not delayed.
func TestHangingProvider(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultTimeout, Delay: 12 * time.Second})
	began := time.Now()
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			reply, err := b.Post(s.ctx, "/payment/confirm", order)
			answers <- fmt.Sprint(reply.HTTP, reply.ErrorType, err)
		}()
	}
	for range 2 {
		if got := <-answers; got != "503PaymentPendingException<nil>" {
			t.Errorf("answer %s", got)
		}
	}
	if took := time.Since(began); took < 9*time.Second {
		t.Errorf("the request took %v", took)
	}
	s.await(t, order.OrderID, "DONE")
}
