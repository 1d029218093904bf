package reserve_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
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
			var list []struct{ Refunded int }
			reply, err := b.Do(s.ctx, http.MethodGet, "/my-reservations", nil)
			if err == nil {
				err = json.Unmarshal(reply.Data, &list)
			}
			if err != nil || len(list) != 1 || list[0].Refunded != order.Amount-keeps {
				t.Errorf("the guest's list has %+v (%v), want one payment with %d won refunded", list, err, order.Amount-keeps)
			}
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
