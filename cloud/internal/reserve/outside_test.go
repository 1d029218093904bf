package reserve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// outside returns a request to record that won were returned outside the provider; 0: everything that is owed.
func outside(id int64, won int) reserve.OutsideRequest {
	return reserve.OutsideRequest{ID: booking.ReservationID(id), Amount: won, Reason: "환불 불가", How: "계좌 이체", Reference: "4711", By: hq}
}

// TestSettleOutsideKnowsTheDashboard: the provider declines a refund, and its dashboard returns a part. An administrator can
// return the rest outside the provider and nothing more.
func TestSettleOutsideKnowsTheDashboard(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE"})
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 400, "PaymentFailedException")
	const won = 1000
	s.dashboard(t, order, won, nil)
	replica := s.Replica(t)
	if _, err := replica.SettleOutside(s.ctx, outside(id, order.Amount)); !errors.Is(err, reserve.ErrExceedsBalance) {
		t.Fatalf("settled more than the provider holds: %v", err)
	}
	got, err := replica.SettleOutside(s.ctx, outside(id, 0))
	if err != nil || got.Amount != order.Amount-won || got.Balance != 0 {
		t.Fatalf("got %+v, %v, want %d won", got, err, order.Amount-won)
	}
	s.wantState(t, order.OrderID, "CANCELED")
}

// TestSettleOutsideAfterTheTransfer: the bank rejects a refund, and the provider's dashboard repeats the transfer. Nothing is
// left to return outside the provider.
func TestSettleOutsideAfterTheTransfer(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError})
	s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
	s.awaitRefund(t, id, "FAILED")
	s.dashboard(t, order, 0, &guestAccount)
	s.nothingHeld(t)
	if _, err := s.Replica(t).SettleOutside(s.ctx, outside(id, 0)); err == nil {
		t.Fatal("settled a refund outside the provider that the bank transfers")
	}
	s.awaitRefund(t, id, "COMPLETED")
	if n := s.open(t, order.OrderID, ""); n != 0 {
		t.Errorf("%d discrepancies are open, want 0", n)
	}
}

// TestSettleOutsideNeedsAnAnswer: without the provider's answer about a payment nothing is recorded, unless a refund has been
// without an answer for 15 minutes.
func TestSettleOutsideNeedsAnAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	s.unreachable(t)
	replica := s.Replica(t)
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatalf("settled without an answer: %v", err)
	}
	s.wantState(t, order.OrderID, "DONE")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 503, "PaymentPendingException")
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatalf("settled a refund that may still succeed: %v", err)
	}
	s.exec(t, `update refund set created_at = created_at - interval '16 minutes' where reservation_id = $1`, id)
	if got, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil || got.Amount != order.Amount {
		t.Fatalf("got %+v, %v", got, err)
	}
	s.wantState(t, order.OrderID, "CANCELED")
	s.Sandbox.ClearFaults()
}

// TestRefundByHandLeavesWhatThePolicyKeeps: without an amount, a refund by hand records what is owed. The share that the refund policy
// left with the shop is not returned, whether the bank has rejected the refund or the provider has declined it.
func TestRefundByHandLeavesWhatThePolicyKeeps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method    string
		dashboard bool // the provider's dashboard has returned one half before
		state     string
	}{
		"rejected by the bank":     {method: sandbox.MethodVirtualAccount, state: "CANCELED"},
		"declined by the provider": {method: sandbox.MethodCard, dashboard: true, state: "CANCELING"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":75}]`)
			b, order, id := s.paid(t, c.method)
			keeps := order.Amount - order.Amount*75/100
			want := order.Amount - keeps
			if c.dashboard {
				s.dashboard(t, order, order.Amount/2, nil)
				want -= order.Amount / 2
			}
			s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
			if reply, err := b.Post(s.ctx, "/payment/cancel", refundAccount(cancelBody(id))); err != nil || reply.HTTP >= 500 {
				t.Fatal(err, reply.Raw)
			}
			s.awaitRefund(t, id, "FAILED")
			s.wantState(t, order.OrderID, c.state)
			got, err := s.Replica(t).SettleOutside(s.ctx, outside(id, 0))
			if err != nil || got.Amount != want {
				t.Errorf("recorded %+v, %v; want %d won", got, err, want)
			}
			s.wantState(t, order.OrderID, "CANCELED")
			if n := s.count(t, `select retained from payment where reservation_id = $1`, id); n != keeps {
				t.Errorf("%d won are retained, want %d", n, keeps)
			}
			s.wantRefunded(t, b, order.Amount-keeps)
			results, err := postgres.Prove(s.ctx, s.DB.Pool, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Violations > 0 {
					t.Errorf("%s: %+v", r.ID, r.Findings)
				}
			}
		})
	}
}

// wantRefunded checks the won that a guest has back, as the guest's list of one payment and the books show them.
func (s *shop) wantRefunded(t *testing.T, b *moneytest.Buyer, won int) {
	t.Helper()
	var list []struct {
		ID       booking.ReservationID
		Refunded int
	}
	reply, err := b.Do(s.ctx, http.MethodGet, "/my-reservations", nil)
	if err == nil {
		err = json.Unmarshal(reply.Data, &list)
	}
	if err != nil || len(list) != 1 || list[0].Refunded != won {
		t.Fatalf("the guest's list has %+v (%v), want one payment with %d won refunded", list, err, won)
	}
	r, err := postgres.Reservation(s.ctx, s.DB.Pool, list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	span := booking.Interval{Start: s.Clock.Now().Add(-24 * time.Hour), End: s.Clock.Now().Add(24 * time.Hour)}
	totals, err := postgres.MoneyTotals(s.ctx, s.DB.Pool, r.Branch, span)
	if err != nil || totals.Refunded+totals.Outside != won || totals.Net() != r.Amount-won {
		t.Errorf("the totals are %+v (%v), want %d won refunded", totals, err, won)
	}
	err = postgres.EachPaid(s.ctx, s.DB.Pool, r.Branch, span, func(p postgres.PaidReservation) error {
		if p.Received != r.Amount || p.Returned != won {
			t.Errorf("exported: %d won received and %d returned, want %d and %d", p.Received, p.Returned, r.Amount, won)
		}
		return nil
	})
	rows, settling := postgres.SettlementRows(s.ctx, s.DB.Pool, []string{"gangnam"}, s.Clock.Now().In(booking.DefaultBranch().Zone).Format("2006-01"))
	refunded := 0
	for _, row := range rows {
		refunded += row.Refunded
	}
	if err != nil || settling != nil || refunded != won {
		t.Errorf("the settlement has %+v (%v, %v), want %d won refunded", rows, err, settling, won)
	}
}

// TestLessByHandThanTheBankHasRejected: an administrator returns by hand less than the bank has rejected. Until the rest is returned, too, the
// guest's list, the books and the cash receipt show it as kept.
func TestLessByHandThanTheBankHasRejected(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.wishing(t, sandbox.MethodVirtualAccount, personal)
	replica := s.Replica(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	s.cancelStay(t, b, id)
	s.awaitRefund(t, id, "FAILED")
	const won = 4000
	if got, err := replica.SettleOutside(s.ctx, outside(id, won)); err != nil || got.Balance != order.Amount-won {
		t.Fatalf("got %+v, %v, want %d won left", got, err, order.Amount-won)
	}
	s.wantRefunded(t, b, won)
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount-won)
	if _, err := replica.RefundPart(s.ctx, part(id, 1)); !errors.Is(err, reserve.ErrNothingToRefund) {
		t.Errorf("the provider is to return what it does not hold: %v", err)
	}
	if got, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil || got.Amount != order.Amount-won {
		t.Fatalf("got %+v, %v, want the rest of %d won", got, err, order.Amount-won)
	}
	s.wantRefunded(t, b, order.Amount)
	s.awaitReceipt(t, replica, id, money.ReceiptCanceled, 0)
}

// TestTransferAfterARejectedOneByHand: the bank rejects the refund of a deposit of which the policy keeps a share, an administrator returns it
// by hand, and then the dashboard, or the service, returns a part of the share. The provider still shows a rejected transfer, so the part looks
// rejected, too. Sending it again would return it once more, from the share.
func TestTransferAfterARejectedOneByHand(t *testing.T) {
	t.Parallel()
	for _, dashboard := range []bool{true, false} {
		t.Run(fmt.Sprint("dashboard ", dashboard), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":50}]`)
			b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.rejecting(t, 1, 0)
			s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
			s.awaitRefund(t, id, "FAILED")
			replica := s.Replica(t)
			if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil {
				t.Fatal(err)
			}
			held := s.Sandbox.Payments(order.OrderID)[0].BalanceAmount
			if dashboard {
				held -= 1000
				s.dashboard(t, order, 1000, &guestAccount)
				if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
					t.Fatal(err)
				}
				s.awaitRefund(t, id, "FAILED")
				account := guestAccount
				err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &account, By: hq})
				wantRefused(t, err, "OTHER_TRANSFER_OPEN")
				if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil {
					t.Errorf("the part cannot be recorded by hand: %v", err)
				}
			} else {
				_, err := replica.RefundPart(s.ctx, part(id, 1000))
				wantRefused(t, err, "OTHER_TRANSFER_OPEN")
			}
			if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != held {
				t.Errorf("the provider holds %d won, want %d", p.BalanceAmount, held)
			}
		})
	}
}

// TestDashboardReturnsAfterAnAdministrator: money that an administrator has returned by hand is returned once more in the provider's dashboard. The
// shop has lost it, so a person has to know. Returning there what was not returned by hand is no loss.
func TestDashboardReturnsAfterAnAdministrator(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	for byHand, want := range map[int]int{0: 1, 3000: 0} {
		_, order, id := s.paid(t, sandbox.MethodCard)
		if _, err := replica.SettleOutside(s.ctx, outside(id, byHand)); err != nil {
			t.Fatal(err)
		}
		s.dashboard(t, order, 4000, nil)
		for range 2 { // the second one finds no difference
			s.reconcile(t, replica)
		}
		if n := s.open(t, order.OrderID, "amount"); n != want {
			t.Errorf("%d won by hand: %d open discrepancies, want %d", byHand, n, want)
		}
	}
}

// TestErasureAfterARefundByHand: an administrator has returned a part by hand, and the guest is erased. That it was by hand remains known, without the
// evidence: otherwise the proof of the day reports the rest, and the list of refunds shows one of the provider.
func TestErasureAfterARefundByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, _, id := s.paid(t, sandbox.MethodCard)
	if _, err := s.Replica(t).SettleOutside(s.ctx, outside(id, 3000)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := postgres.Erase(s.ctx, s.DB.Pool, booking.NormalizePhone(s.mobile(t, id)), []byte("empty"), s.Clock.Now()); err != nil || n != 1 {
		t.Fatalf("erased %d reservations, want 1 (%v)", n, err)
	}
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and settled_outside = '{}'`, id); n != 1 {
		t.Errorf("%d refunds by hand without evidence, want 1", n)
	}
	results, err := postgres.Prove(s.ctx, s.DB.Pool, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, f := range r.Findings {
			t.Errorf("proof %s: %s: %s", r.ID, f.Subject, f.Detail)
		}
	}
}
