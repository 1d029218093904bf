package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// dearer takes the hold of an exchange that costs more.
func (g guest) dearer(t *testing.T, s *shop) (amount int) {
	t.Helper()
	start := g.wish.Start.Add(24 * time.Hour)
	wish := refundAccount(g.exchange(g.wish.Room, start, start.Add(2*time.Hour)))
	return decode[exchanged](t, s.answer(t, g.Buyer, g.exchangePath(), wish, 200, "").Data).Amount
}

// retryPart sends the failed refund of a part again, to another account.
func (s *shop) retryPart(t *testing.T, id int64) {
	t.Helper()
	account := guestAccount
	retry := reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &account, By: hq}
	if err := s.Replica(t).RetryRefund(s.ctx, retry); err != nil {
		t.Fatal(err)
	}
}

// TestExchangeWithDepositOfExtension: an extension that was paid by virtual account after the hold of the exchange does not
// keep the paid exchange from its confirmation. The refund of its deposit waits for the guest's account.
func TestExchangeWithDepositOfExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	start := g.wish.Start.Add(24 * time.Hour)
	reply := s.answer(t, g.Buyer, g.exchangePath(), g.exchange(g.wish.Room, start, start.Add(2*time.Hour)), 200, "")
	tab := guest{Buyer: s.buyer(), wish: g.wish, order: g.order, id: g.id, key: g.key}
	extended := tab.hold(t, s, g.end().Add(time.Hour))
	s.pay(t, tab.Buyer, extended, sandbox.MethodVirtualAccount)
	if _, err := s.Sandbox.Deposit(extended.OrderID); err != nil {
		t.Fatal(err)
	}
	s.await(t, extended.OrderID, "DONE")

	order := s.payHeld(t, g, decode[exchanged](t, reply.Data).Amount)
	s.wantState(t, order.OrderID, "DONE")
	s.await(t, g.order.OrderID, "CANCELED")
	id := s.wantState(t, extended.OrderID, "CANCELED")
	s.awaitRefund(t, id, "FAILED")
	s.retryPart(t, id)
	s.awaitRefund(t, id, "COMPLETED")
	if l := s.Sandbox.Ledger(); l.Charged-l.Refunded != order.Amount {
		t.Errorf("charged %d, refunded %d, want a difference of %d", l.Charged, l.Refunded, order.Amount)
	}
}

// TestExchangeWhileRefundOfPartIsOpen: a refund of a part of the old stay that has not ended does not keep a paid exchange from its
// confirmation. The rest is refunded after it, to the account of the exchange.
func TestExchangeWhileRefundOfPartIsOpen(t *testing.T) {
	t.Parallel()
	t.Run("without an answer", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		g := s.loggedIn(t, sandbox.MethodCard)
		amount := g.dearer(t, s)
		s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500})
		if _, err := s.Replica(t).RefundPart(s.ctx, part(g.id, 1000)); !errors.Is(err, reserve.ErrPaymentPending) {
			t.Fatalf("got %v, want a pending refund", err)
		}
		order := s.payHeld(t, g, amount)
		s.wantState(t, order.OrderID, "DONE")
		s.wantState(t, g.order.OrderID, "CANCELED")
		s.Sandbox.ClearFaults()
		s.wantReturned(t, g.order.OrderID)
	})
	t.Run("rejected by the bank", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		g := s.loggedIn(t, sandbox.MethodVirtualAccount)
		amount := g.dearer(t, s)
		s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
		if _, err := s.Replica(t).RefundPart(s.ctx, part(g.id, 1000)); err != nil {
			t.Fatal(err)
		}
		s.awaitRefund(t, g.id, "FAILED")
		order := s.payHeld(t, g, amount)
		s.wantState(t, order.OrderID, "DONE")
		s.wantState(t, g.order.OrderID, "CANCELED")
		s.wantReturned(t, g.order.OrderID)
	})
}

// TestStayEndsWhileRefundOfExtensionIsOpen: a stay that is canceled at the provider ends although a refund of a part of its extension
// has not ended.
func TestStayEndsWhileRefundOfExtensionIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bank  sandbox.Fault
		state string
	}{
		"at the bank":          {sandbox.Fault{Kind: sandbox.FaultSlow, Delay: time.Minute}, "PENDING"},
		"rejected by the bank": {sandbox.Fault{Kind: sandbox.FaultError}, "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			extended := g.hold(t, s, g.end().Add(time.Hour))
			s.pay(t, g.Buyer, extended, sandbox.MethodVirtualAccount)
			if _, err := s.Sandbox.Deposit(extended.OrderID); err != nil {
				t.Fatal(err)
			}
			id := s.await(t, extended.OrderID, "DONE")
			c.bank.Target = sandbox.TargetRefund
			s.fault(t, c.bank)
			if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, c.state)
			s.dashboard(t, g.order, 0, nil)
			if _, err := s.Replica(t).Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan); err != nil { // the refund is not settled yet
				t.Fatal(err)
			}
			s.await(t, g.order.OrderID, "CANCELED")
			s.wantState(t, extended.OrderID, "CANCELED")
			s.Provider.Advance(c.bank.Delay)
			if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantReturned waits until the provider holds nothing of an order.
func (s *shop) wantReturned(t *testing.T, order string) {
	t.Helper()
	s.eventually(t, "order "+order+" is refunded", func() bool {
		p := s.Sandbox.Payments(order)
		return len(p) == 1 && p[0].BalanceAmount == 0
	})
}
