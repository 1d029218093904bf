package reserve_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// lose makes the database one that lacks an order, as after a backup was restored.
func (s *shop) lose(t *testing.T, id int64, order moneytest.Confirm) {
	t.Helper()
	s.exec(t, `update reservation set state = 'EXPIRED', order_id = null where id = $1`, id)
	s.exec(t, `delete from orders where order_id = $1`, order.OrderID)
	s.exec(t, `update payment set payment_key = null, closed_at = now(), check_at = 'infinity' where reservation_id = $1`, id)
}

func (s *shop) beginRebuild(t *testing.T) {
	t.Helper()
	if err := s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

// TestLostOrderIsRebuiltByItsCallback: the database has lost an order whose account waits for its deposit. The callback of the
// deposit makes the reservation again, for the same guest at the same time.
func TestLostOrderIsRebuiltByItsCallback(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{64}$`).MatchString(order.OrderID) {
		t.Errorf("order id %s", order.OrderID)
	}
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	s.awaitMessages(t, w.Mobile, "virtual-account-issued")
	s.lose(t, id, order)
	s.deposit(t, order.OrderID)
	rebuilt := s.await(t, order.OrderID, "DONE")
	if rebuilt == id {
		t.Fatal("the order was not lost")
	}
	if n := s.count(t, `
		select count(*) from reservation where id = $1 and start_at = $2 and mobile_key = $3
		  and (room_id, end_at) = (select room_id, end_at from reservation where id = $4)`, rebuilt, w.Start, w.Mobile, id); n != 1 {
		t.Error("the reservation has another time, room or guest")
	}
	s.awaitMessages(t, w.Mobile, "virtual-account-issued", "reservation-confirmed")
	if s.key(t, rebuilt) == "" {
		t.Error("no key")
	}
}

// TestDepositOfALostOrderAsksForItsAccount: the database has lost an order whose account waits for its deposit, and its time is sold again.
// The deposit cannot be kept, so its guest is asked for an account.
func TestDepositOfALostOrderAsksForItsAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	s.awaitMessages(t, w.Mobile, "virtual-account-issued")
	s.lose(t, id, order)
	w.Method, w.Mobile = sandbox.MethodCard, "01099998888"
	if _, err := s.buyer().Buy(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.deposit(t, order.OrderID)
	s.refundToken(t, s.await(t, order.OrderID, "CANCELED"))
}

// TestRebuildFreesTheTimeOfWhatHasEnded: the backup has a reservation that ended after it, and its time was sold again. The rebuild ends the
// reservation first, and gives the time to the guest who has bought it, although an agent may still hold the pass of a stay.
func TestRebuildFreesTheTimeOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, before, after string }{
		"canceled":        {sandbox.MethodCard, "DONE", "CANCELED"},
		"no deposit came": {sandbox.MethodVirtualAccount, "WAITING_FOR_DEPOSIT", "CANCELED"},
		"released":        {sandbox.MethodCard, "HOLD", "RELEASED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, lost, w := s.bought(t, sandbox.MethodVirtualAccount)
			s.lose(t, s.wantState(t, lost.OrderID, "WAITING_FOR_DEPOSIT"), lost)
			w.Method, w.Mobile = c.method, "01099998888"
			b := s.buyer()
			ended, err := b.Order(s.ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			if c.before != "HOLD" {
				s.answer(t, b, "/payment/confirm", ended, 200, "")
			}
			id := s.wantState(t, ended.OrderID, c.before)
			s.listed(t, id)
			s.exec(t, `update payment set check_at = check_at + interval '1 day' where reservation_id = $1`, id) // no sweep is faster
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
			if _, err := s.Sandbox.Deposit(lost.OrderID); err != nil {
				t.Fatal(err)
			}
			s.beginRebuild(t)
			if c.before != "HOLD" {
				s.dashboard(t, ended, 0, nil)
			}
			if _, err := s.Replica(t).Rebuild(s.ctx, reserve.ReconcileSpan); err != nil {
				t.Fatal(err)
			}
			s.wantState(t, ended.OrderID, c.after)
			s.await(t, lost.OrderID, "DONE")
		})
	}
}

// TestLostExtensionIsRebuilt: the backup has a stay and lacks its extension, which leaves no margin after the stay. The rebuild makes it an
// extension again. An order of another guest that begins at the end of the stay is none.
func TestLostExtensionIsRebuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mobile string // under which the extension is sealed; empty: that of the stay
		want   string
	}{"of the stay": {want: "DONE"}, "of another guest": {mobile: "01099998888", want: "CANCELED"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			if c.mobile != "" {
				s.exec(t, `update reservation set mobile = $2, mobile_key = $2 where id = $1`, g.id, c.mobile)
			}
			extension := g.hold(t, s, g.end().Add(30*time.Minute))
			if c.mobile != "" {
				s.exec(t, `update reservation set mobile = $2, mobile_key = $2 where id = $1`, g.id, g.wish.Mobile)
			}
			s.pay(t, g.Buyer, extension, sandbox.MethodVirtualAccount)
			id := s.wantState(t, extension.OrderID, "WAITING_FOR_DEPOSIT")
			s.lose(t, id, moneytest.Confirm{OrderID: extension.OrderID})
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
			if _, err := s.Sandbox.Deposit(extension.OrderID); err != nil {
				t.Fatal(err)
			}
			s.beginRebuild(t)
			if _, err := s.Replica(t).Rebuild(s.ctx, reserve.ReconcileSpan); err != nil {
				t.Fatal(err)
			}
			rebuilt := s.await(t, extension.OrderID, c.want)
			if n := s.count(t, `select count(*) from reservation where id = $1 and extends = $2`, rebuilt, g.id); (n == 1) != (c.want == "DONE") {
				t.Errorf("it extends the stay: %t", n == 1)
			}
			end := g.end()
			if c.want == "DONE" {
				end = end.Add(30 * time.Minute)
			}
			g.wantEnd(t, s, end)
		})
	}
}

// TestRebuildBesideANewerPayment: the guest of a lost order has opened the widget once more, so the look-up by the order id returns a
// payment that was not charged.
func TestRebuildBesideANewerPayment(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.order(t, sandbox.MethodCard)
	s.lose(t, s.wantState(t, order.OrderID, "HOLD"), order)
	s.chargeBehindOurBack(t, order)
	s.another(t, order.OrderID, order.Amount)
	s.beginRebuild(t)
	if result, err := s.Replica(t).Rebuild(s.ctx, reserve.ReconcileSpan); err != nil || result.Orders != 1 || len(result.Left) != 0 {
		t.Fatalf("rebuilt %+v, %v; want one order", result, err)
	}
	s.wantState(t, order.OrderID, "DONE")
}
