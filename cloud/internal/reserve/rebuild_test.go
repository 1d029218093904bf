package reserve_test

import (
	"regexp"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

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
	s.exec(t, `update reservation set state = 'EXPIRED', order_id = null where id = $1`, id)
	s.exec(t, `delete from orders where order_id = $1`, order.OrderID)
	s.exec(t, `update payment set payment_key = null, closed_at = now(), check_at = 'infinity' where reservation_id = $1`, id)
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
	s.exec(t, `update reservation set state = 'EXPIRED', order_id = null where id = $1`, id)
	s.exec(t, `delete from orders where order_id = $1`, order.OrderID)
	s.exec(t, `update payment set payment_key = null, closed_at = now(), check_at = 'infinity' where reservation_id = $1`, id)
	w.Method, w.Mobile = sandbox.MethodCard, "01099998888"
	if _, err := s.buyer().Buy(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.deposit(t, order.OrderID)
	s.refundToken(t, s.await(t, order.OrderID, "CANCELED"))
}
