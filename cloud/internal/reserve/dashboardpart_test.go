package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// rejecting has the bank reject the next transfers to guests.
func (s *shop) rejecting(t *testing.T, transfers int, after time.Duration) {
	t.Helper()
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: transfers, Delay: after})
}

// wantHeld checks what the provider holds of an order, and that the bank has rejected no transfer that was not repeated.
func (s *shop) wantHeld(t *testing.T, order moneytest.Confirm, won int) {
	t.Helper()
	if p, rejected := s.Sandbox.Payments(order.OrderID)[0], s.Sandbox.Bounced(order.OrderID); p.BalanceAmount != won || rejected != 0 {
		t.Errorf("the provider holds %d won, and the bank has rejected %d; want %d and 0", p.BalanceAmount, rejected, won)
	}
}

// wantRefused checks that the provider was not asked, because of a code.
func wantRefused(t *testing.T, err error, code string) {
	t.Helper()
	refused := (*reserve.PaymentRefused)(nil)
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// TestRejectedPartOfTheDashboard: the bank rejects a part of a deposit that the provider's dashboard returned. It is listed like a
// refund of the service, and an administrator sends it again.
func TestRejectedPartOfTheDashboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.rejecting(t, 1, 0)
	s.dashboard(t, order, 1000, &guestAccount)
	s.awaitRefund(t, id, "FAILED")
	s.wantState(t, order.OrderID, "DONE")
	if n := s.open(t, order.OrderID, "refund"); n != 1 {
		t.Errorf("%d discrepancies, want 1", n)
	}
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 2000)); !errors.Is(err, reserve.ErrRefundOpen) {
		t.Errorf("another part: got %v, want ErrRefundOpen", err)
	}
	s.retryPart(t, id)
	s.awaitRefund(t, id, "COMPLETED")
	s.wantHeld(t, order, order.Amount-1000)
}

// TestPartBesideAnUnknownTransfer: the bank works on a part that the dashboard returned, or has rejected it, and the service does not
// know of it yet. The provider has one state for both transfers, so another part is not sent. Before, it counted as rejected, and each
// retry returned it once more.
func TestPartBesideAnUnknownTransfer(t *testing.T) {
	t.Parallel()
	for state, takes := range map[string]time.Duration{"FAILED": 0, "PENDING": time.Minute} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
			s.rejecting(t, 1, takes)
			s.dashboard(t, order, 1000, &guestAccount)
			replica := s.Replica(t)
			_, err := replica.RefundPart(s.ctx, part(id, 2000))
			wantRefused(t, err, "OTHER_TRANSFER_OPEN")
			if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount-1000 {
				t.Errorf("the provider holds %d won, want %d", p.BalanceAmount, order.Amount-1000)
			}
			s.Sandbox.ClearFaults()
			if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, state)
			s.Provider.Advance(takes)
			s.awaitRefund(t, id, "FAILED")
			s.retryPart(t, id)
			s.awaitRefund(t, id, "COMPLETED")
			s.wantHeld(t, order, order.Amount-1000)
		})
	}
}

// TestDashboardDuringAPart: the dashboard returns money while the bank works on a part, and the bank rejects both transfers. All of
// a canceled payment is sent again together. Of another one the service cannot tell the transfers apart, and sends none.
func TestDashboardDuringAPart(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"everything": true, "another part": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.rejecting(t, 2, time.Minute)
			replica := s.Replica(t)
			if _, err := replica.RefundPart(s.ctx, part(id, 1000)); err != nil {
				t.Fatal(err)
			}
			won := map[bool]int{false: 3000}[whole]
			s.dashboard(t, order, won, &guestAccount)
			if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
				t.Fatal(err)
			}
			s.Provider.Advance(time.Minute)
			s.awaitRefund(t, id, "FAILED")
			if whole {
				s.wantState(t, order.OrderID, "CANCELED")
				s.retryPart(t, id)
				s.awaitRefund(t, id, "COMPLETED")
				s.wantHeld(t, order, 0)
				return
			}
			account := guestAccount
			err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &account, By: hq})
			wantRefused(t, err, "OTHER_TRANSFER_OPEN")
			rejected := 4000
			again := toss.CancelRequest{Reason: "재송금", Amount: &rejected, RefundAccount: &guestAccount}
			if _, err := replica.Payments.Cancel(s.ctx, widget, "again-"+order.OrderID, order.PaymentKey, again); err != nil {
				t.Fatal(err)
			}
			if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, "COMPLETED")
			s.wantHeld(t, order, order.Amount-4000)
		})
	}
}

// TestDashboardCancelsBeforeAPartIsSent: the dashboard cancels a deposit of which a refund waits for an administrator, for the guest's account or for
// the provider. It is part of that cancellation, whose transfer the bank rejects: the guest is asked for an account, and gets everything.
func TestDashboardCancelsBeforeAPartIsSent(t *testing.T) {
	t.Parallel()
	waiting := func(won int) func(*testing.T, *shop, moneytest.Confirm, int64) {
		return func(t *testing.T, s *shop, order moneytest.Confirm, id int64) {
			if got, err := s.limited(t, 500).RefundPart(s.ctx, part(id, min(won, order.Amount))); err != nil || !got.Waits {
				t.Fatalf("got %+v, %v", got, err)
			}
		}
	}
	for name, begin := range map[string]func(*testing.T, *shop, moneytest.Confirm, int64){
		"a part that waits for an administrator":     waiting(1000),
		"everything that waits for an administrator": waiting(1000000),
		"a part without an answer": func(t *testing.T, s *shop, _ moneytest.Confirm, id int64) {
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: 1})
			if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); !errors.Is(err, reserve.ErrPaymentPending) {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			begin(t, s, order, id)
			s.rejecting(t, 1, 0)
			s.dashboard(t, order, 0, &guestAccount)
			s.awaitRefund(t, id, "FAILED")
			s.await(t, order.OrderID, "CANCELED")
			s.wantMessage(t, id, order.Amount)
			if err := s.Replica(t).EnterRefundAccount(s.ctx, s.refundToken(t, id), guestAccount); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, "COMPLETED")
			s.wantHeld(t, order, 0)
		})
	}
}

// TestDashboardCancelsBesideAPartWithoutAnAnswer: a part has no answer yet, the dashboard cancels everything, and an administrator who wants to
// record a refund by hand looks the payment up, which ends the stay. Then the provider declines the part, and the bank rejects the transfer
// of the dashboard: the guest is asked for an account, and gets everything.
func TestDashboardCancelsBesideAPartWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	replica := s.Replica(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: 1})
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatal(err)
	}
	s.rejecting(t, 1, 0)
	s.dashboard(t, order, 0, &guestAccount)
	byHand := reserve.OutsideRequest{ID: booking.ReservationID(id), Reason: "직접 송금", How: "계좌 이체", Reference: "1", By: hq}
	if _, err := replica.SettleOutside(s.ctx, byHand); err == nil {
		t.Fatal("a refund by hand is recorded beside a part without an answer")
	}
	s.wantState(t, order.OrderID, "CANCELED")
	_ = replica.Settle(s.ctx, booking.ReservationID(id)) // sends the part once more
	s.awaitRefund(t, id, "FAILED")
	if err := replica.EnterRefundAccount(s.ctx, s.refundToken(t, id), guestAccount); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.wantHeld(t, order, 0)
	if n := s.count(t, `select sum(amount) from refund where reservation_id = $1 and state = 'COMPLETED'`, id); n != order.Amount {
		t.Errorf("%d won are recorded as returned, want %d", n, order.Amount)
	}
}

// TestDashboardRefundsWhatWaits: the dashboard returns a deposit whose refund waits for an administrator, or for the guest's account, and the
// bank rejects the transfer. It is listed as rejected, and an administrator can record that it was returned by hand.
func TestDashboardRefundsWhatWaits(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *shop) (order moneytest.Confirm, id int64){
		"an administrator": func(t *testing.T, s *shop) (moneytest.Confirm, int64) {
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			account := guestAccount
			account.Holder = "다른 사람"
			request := reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: "paid", By: gangnamManager, Account: &account}
			if err := s.Replica(t).AdminCancel(s.ctx, request); err != nil {
				t.Fatal(err)
			}
			s.wantState(t, order.OrderID, "CANCELING")
			return order, id
		},
		"the guest": func(t *testing.T, s *shop) (moneytest.Confirm, int64) {
			orderID, id := s.lateDeposit(t)
			p := s.Sandbox.Payments(orderID)[0]
			return moneytest.Confirm{OrderID: orderID, PaymentKey: p.PaymentKey, Amount: p.TotalAmount}, id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			replica := s.Replica(t)
			for _, noticed := range []bool{false, true} { // while the bank works on it
				order, id := begin(t, s)
				s.awaitRefund(t, id, "FAILED")
				s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
				s.rejecting(t, 1, time.Minute)
				s.dashboard(t, order, 0, &guestAccount)
				if noticed {
					if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
						t.Fatal(err)
					}
					s.awaitRefund(t, id, "PENDING")
				}
				s.Provider.Advance(2 * time.Minute)
				s.Sandbox.ClearFaults()
				if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
					t.Fatal(err)
				}
				s.wantRejected(t, replica, order, id)
			}
		})
	}
}

// wantRejected checks that a refund counts as rejected by the bank, and records that it was returned by hand.
func (s *shop) wantRejected(t *testing.T, replica *reserve.Service, order moneytest.Confirm, id int64) {
	t.Helper()
	s.wantState(t, order.OrderID, "CANCELED")
	rejected := `select count(*) from refund where reservation_id = $1 and state = 'FAILED' and taken and account_by is null and amount = $2`
	if n := s.count(t, rejected, id, order.Amount); n != 1 {
		t.Errorf("%d rejected transfers, want 1", n)
	}
	got, err := replica.SettleOutside(s.ctx, outside(id, 0))
	if err != nil || got.Amount != order.Amount {
		t.Fatalf("got %+v, %v, want %d won", got, err, order.Amount)
	}
	s.awaitRefund(t, id, "COMPLETED")
}

// TestDashboardReturnsTheShareOfTheShop: the dashboard returns what the refund policy has left with the shop of a canceled stay, and the bank
// rejects the transfer. The guest is asked for another account, and gets it.
func TestDashboardReturnsTheShareOfTheShop(t *testing.T) {
	t.Parallel()
	for name, noticed := range map[string]bool{"known before the rejection": true, "known after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore": 30, "percent": 50}]`)
			b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
			s.refundsDone(t, id)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
			s.rejecting(t, 1, time.Minute)
			s.dashboard(t, order, 0, &guestAccount)
			replica := s.Replica(t)
			if noticed {
				if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
					t.Fatal(err)
				}
			}
			s.Provider.Advance(2 * time.Minute)
			if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, "FAILED")
			if err := replica.EnterRefundAccount(s.ctx, s.refundToken(t, id), guestAccount); err != nil {
				t.Fatal(err)
			}
			s.refundsDone(t, id)
			s.wantHeld(t, order, 0)
		})
	}
}

// TestReversalAfterRefundByHand: the bank reverses a deposit that an administrator has returned by hand. The account is closed, so
// no other deposit arrives there, and the reversal is listed.
func TestReversalAfterRefundByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	if _, err := s.Replica(t).SettleOutside(s.ctx, outside(id, 5000)); err != nil {
		t.Fatal(err)
	}
	s.reverse(t, order.OrderID)
	s.eventually(t, "the account is closed", func() bool { return s.Sandbox.Payments(order.OrderID)[0].Status == sandbox.StatusCanceled })
	if n := s.open(t, order.OrderID, "reversal"); n != 1 {
		t.Errorf("%d discrepancies of the reversal, want 1", n)
	}
}

// TestPartOfReversedDeposit: the bank reverses a deposit while a part of it waits for approval, or for the provider. The part is not
// sent: the request would close the account that waits for another deposit. Without one, the account is closed when it is overdue.
func TestPartOfReversedDeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	replica := s.limited(t, 1000)
	if result, err := replica.RefundPart(s.ctx, part(id, 2000)); err != nil || !result.Waits {
		t.Fatal(result, err)
	}
	s.reverse(t, order.OrderID)
	s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(id), lee); !errors.Is(err, reserve.ErrNotFound) {
		t.Errorf("approved: %v, want ErrNotFound", err)
	}
	if n := s.open(t, order.OrderID, "reversal"); n != 1 {
		t.Errorf("%d discrepancies of the reversal, want 1", n)
	}
	s.deposit(t, order.OrderID)
	s.wantState(t, order.OrderID, "DONE")
	s.wantHeld(t, order, order.Amount)
	if n := s.open(t, order.OrderID, ""); n != 0 {
		t.Errorf("%d discrepancies after the deposit arrived again, want 0", n)
	}

	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: 1})
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatal(err)
	}
	s.reverse(t, order.OrderID)
	s.awaitRefunds(t, id, "REFUSED", 2)
	s.Clock.Advance(time.Hour)
	s.await(t, order.OrderID, "CANCELED")
}

func (s *shop) awaitRefunds(t *testing.T, id int64, state string, n int) {
	t.Helper()
	s.eventually(t, "refunds are "+state, func() bool {
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state = $2`, id, state) == n
	})
}

// TestKeyIsTrustedDuringARefund: a callback blocks the key for a minute, and meanwhile the bank rejects a refund that keeps the
// stay. The key works again although the refund stays open.
func TestKeyIsTrustedDuringARefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	key := s.key(t, id)
	s.callback(t, order.OrderID, "CANCELED", s.Clock.Now(), "new")
	if s.key(t, id) != "" {
		t.Fatal("the key is not blocked")
	}
	s.rejecting(t, 1, 0)
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "FAILED")
	s.eventually(t, "the key works again", func() bool { return s.key(t, id) == key })
	s.retryPart(t, id)
	s.awaitRefund(t, id, "COMPLETED")
}

// TestRestBesideARejectedTransfer: the provider declines the rest of a canceled stay, and the bank rejects a part that the dashboard returns. The
// rest is not sent while that part is rejected: it would look rejected, too, and each retry would return it once more, from the share of the shop.
func TestRestBesideARejectedTransfer(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore": 30, "percent": 30}]`)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow, Delay: time.Minute, Times: 1})
	replica, won := s.Replica(t), 500
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "NOT_CANCELABLE_PAYMENT", Status: 403, Times: 1})
	s.Provider.Advance(time.Minute)
	s.awaitRefund(t, id, "FAILED")
	s.rejecting(t, 1, 0)
	s.dashboard(t, order, won, &guestAccount)
	s.eventually(t, "the bank has rejected the part", func() bool { return s.Sandbox.Bounced(order.OrderID) == won })
	if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantRefused(t, replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), By: hq}), "OTHER_TRANSFER_OPEN")
	}
	again := toss.CancelRequest{Reason: "재송금", Amount: &won, RefundAccount: &guestAccount}
	if _, err := replica.Payments.Cancel(s.ctx, widget, "again-"+order.OrderID, order.PaymentKey, again); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the part is repeated", func() bool { return s.Sandbox.Payments(order.OrderID)[0].VirtualAccount.RefundStatus == "COMPLETED" })
	if err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), By: hq}); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
	s.wantHeld(t, order, order.Amount-1000-won-(order.Amount-1000)*30/100)
}
