package reserve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// part returns a request to refund a part of a reservation's payment.
func part(id int64, won int) reserve.PartRequest {
	request := reserve.PartRequest{ID: booking.ReservationID(id), Amount: won, Reason: "소음 보상", By: hq}
	request.Account = &guestAccount
	return request
}

// Several parts are returned while the key and the reservation stay; a cancellation returns the rest.
func TestPartRefunds(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, method := range []string{sandbox.MethodCard, sandbox.MethodVirtualAccount} {
		b, order, id := s.paid(t, method)
		replica, key := s.Replica(t), s.key(t, id)
		left := order.Amount
		for _, won := range []int{1000, 2500} {
			left -= won
			got, err := replica.RefundPart(s.ctx, part(id, won))
			if err != nil || got.Amount != won || got.Balance != left {
				t.Fatalf("%s: got %+v, %v; want a balance of %d", method, got, err, left)
			}
			s.refundsDone(t, id)
		}
		if got := s.key(t, id); got != key {
			t.Errorf("%s: key %q, want %q", method, got, key)
		}
		if _, err := replica.RefundPart(s.ctx, part(id, left+1)); !errors.Is(err, reserve.ErrExceedsBalance) {
			t.Errorf("%s: more than is left: %v", method, err)
		}
		if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
			t.Errorf("%s: reconciled: %+v", method, report)
		}
		s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
		s.await(t, order.OrderID, "CANCELED")
		if n := s.count(t, `select coalesce(sum(amount), 0)::int from refund where reservation_id = $1`, id); n != order.Amount {
			t.Errorf("%s: refunds of %d won, want %d", method, n, order.Amount)
		}
	}
}

// Everything is returned, and the stay remains.
func TestWholeRefundKeepsTheStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	replica, key := s.Replica(t), s.key(t, id)
	if got, err := replica.RefundPart(s.ctx, part(id, order.Amount)); err != nil || got.Balance != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "DONE")
	if got := s.key(t, id); got != key {
		t.Errorf("key %q, want %q", got, key)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("reconciled: %+v", report)
	}
	if _, err := replica.RefundPart(s.ctx, part(id, 1)); !errors.Is(err, reserve.ErrNothingToRefund) {
		t.Errorf("one more won: %v", err)
	}
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
}

// A part whose answer is lost, or that the provider answers with an error after it was made, is returned once.
func TestPartRefundWithALostAnswerIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, fault := range []sandbox.Fault{
		{Target: sandbox.TargetCancel, Kind: sandbox.FaultDropAfterCommit, Times: 2},
		{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Code: "FAILED_INTERNAL_SYSTEM_PROCESSING", Times: 2},
		{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 429, Code: "TOO_MANY_REQUESTS", Times: 2},
		{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 400, Code: "NEVER_HEARD_OF", Times: 2},
	} {
		_, order, id := s.paid(t, sandbox.MethodCard)
		s.fault(t, fault)
		request := part(id, 1500)
		request.IdempotencyKey = "lost"
		if _, err := s.Replica(t).RefundPart(s.ctx, request); !errors.Is(err, reserve.ErrPaymentPending) {
			t.Fatalf("%v: %v", fault, err)
		}
		s.refundsDone(t, id)
		if got, err := s.Replica(t).RefundPart(s.ctx, request); err != nil || got.Balance != order.Amount-1500 {
			t.Errorf("%v: repeated: %+v, %v", fault, got, err)
		}
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.count(t, `select count(*) from refund_request where body_hash = sha256(convert_to($1, 'UTF8'))`, "reserve.PartRequest "+string(body)); n != 0 {
			t.Errorf("%v: a copy of the database shows the account to those who try all candidates", fault)
		}
		request.Amount++
		if _, err := s.Replica(t).RefundPart(s.ctx, request); !errors.Is(err, reserve.ErrKeyReused) {
			t.Errorf("%v: another body: %v", fault, err)
		}
		if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount-1500 {
			t.Errorf("%v: the provider holds %d of %d", fault, p.BalanceAmount, order.Amount)
		}
	}
}

// overtaken are payments at a provider to whom another process sends each refund first.
type overtaken struct {
	reserve.Payments
	first func()
}

// Cancel implements reserve.Payments.
func (o overtaken) Cancel(ctx context.Context, keys toss.KeySet, idempotencyKey, paymentKey string, req toss.CancelRequest) (toss.Payment, error) {
	o.first()
	return o.Payments.Cancel(ctx, keys, idempotencyKey, paymentKey, req)
}

// The provider declines a part, and another process is the first to record it: the administrator receives the provider's reason. A
// payment by card needs no account.
func TestDeclinedPartRefundOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, _, id := s.paid(t, sandbox.MethodCard)
	replica, other := s.Replica(t), s.Replica(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE", Times: 2})
	replica.Payments = overtaken{replica.Payments, func() { _ = other.Settle(s.ctx, booking.ReservationID(id)) }}
	var refused *reserve.PaymentRefused
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); !errors.As(err, &refused) || refused.Code != "EXCEED_MAX_REFUND_DUE" {
		t.Errorf("got %v, want a refusal for EXCEED_MAX_REFUND_DUE", err)
	}
}

// The provider declines a part: nothing changes, and the next one succeeds.
func TestDeclinedPartRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodCard)
	replica := s.Replica(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE", Times: 1})
	var refused *reserve.PaymentRefused
	if _, err := replica.RefundPart(s.ctx, part(id, order.Amount)); !errors.As(err, &refused) {
		t.Fatalf("declined: %v", err)
	}
	s.wantState(t, order.OrderID, "DONE")
	if got, err := replica.RefundPart(s.ctx, part(id, order.Amount)); err != nil || got.Balance != 0 {
		t.Errorf("again: %+v, %v", got, err)
	}
}

// 16 administrators refund the same reservation at once: never more than was paid.
func TestConcurrentPartRefunds(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodCard)
	won := order.Amount/3 + 1
	var returned atomic.Int64
	err := together(16, func(i int) error {
		request := part(id, won)
		request.IdempotencyKey = fmt.Sprint("part-", i)
		switch err := refundKnown(s.ctx, s.Replica(t), request); {
		case errors.Is(err, reserve.ErrRefundOpen), errors.Is(err, reserve.ErrExceedsBalance):
			return nil
		case err != nil:
			return err
		}
		returned.Add(int64(won))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	n := s.count(t, `select returned from payment where reservation_id = $1`, id)
	if n > order.Amount || n == 0 || n != int(returned.Load()) {
		t.Errorf("%d of %d won returned, %d reported", n, order.Amount, returned.Load())
	}
}

// refundKnown requests a refund until its outcome is known. On a busy machine the provider's answer may take longer than a
// request waits, and the database longer than a statement may.
func refundKnown(ctx context.Context, s *reserve.Service, request reserve.PartRequest) error {
	for {
		_, err := s.RefundPart(ctx, request)
		if err == nil || !errors.Is(err, reserve.ErrPaymentPending) && !postgres.IsUnavailable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond): // a client's pause between two attempts
		}
	}
}

// wantMessage waits for the message about a cancellation and compares its amount; 0 is a message without one.
func (s *shop) wantMessage(t *testing.T, id int64, won int) {
	t.Helper()
	var mobile string
	if err := s.DB.Pool.QueryRow(s.ctx, `select mobile from reservation where id = $1`, id).Scan(&mobile); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "a message about the cancellation", func() bool {
		for _, m := range s.Sandbox.Messages(mobile) {
			switch m.Template {
			case string(notify.ReservationCanceled):
				return m.Variables["amount"] == notify.Won(won)
			case string(notify.ReservationUnrefunded):
				return won == 0
			}
		}
		return false
	})
}

// refundsDone waits until every refund of a reservation is completed.
func (s *shop) refundsDone(t *testing.T, id int64) {
	t.Helper()
	s.eventually(t, "refunds are completed", func() bool {
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state <> 'COMPLETED'`, id) == 0
	})
}

func (s *shop) start(t *testing.T, id int64) (start time.Time) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(s.ctx, `select start_at from reservation where id = $1`, id).Scan(&start); err != nil {
		t.Fatal(err)
	}
	return start
}

// TestPartSettledByAnotherReplica: another replica settles a refund of a part first, and the look-up after it does not find the
// payment yet. The administrator learns that the part was returned, otherwise it would be returned once more. (Seed 11992 of
// moneysim.)
func TestPartSettledByAnotherReplica(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, _, id := s.paid(t, sandbox.MethodCard)
	replica, other := s.Replica(t), s.Replica(t)
	replica.Payments = &outrun{Payments: replica.Payments, first: func() {}, then: func() {
		if err := other.Settle(s.ctx, booking.ReservationID(id)); err != nil {
			t.Error(err)
		}
		s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Code: "NOT_FOUND_PAYMENT"})
	}}
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Errorf("got %v for a part that was returned", err)
	}
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'COMPLETED'`, id); n != 1 {
		t.Errorf("%d parts returned, want 1", n)
	}
}

// TestLookUpDuringCancellationAfterPart: a look-up that began before a cancellation is answered while the refund of the rest has no answer.
// The part that the provider reports was returned before, so nothing is listed for an administrator.
func TestLookUpDuringCancellationAfterPart(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	replica := s.Replica(t)
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	held := &heldLookup{Payments: replica.Payments, answered: make(chan struct{}), release: make(chan struct{})}
	replica.Payments = held
	done := make(chan error, 1)
	go func() { done <- replica.Settle(s.ctx, booking.ReservationID(id)) }()
	<-held.answered
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: -1})
	s.answer(t, b, "/payment/cancel", cancelBody(id), 503, "PaymentPendingException")
	s.wantState(t, order.OrderID, "CANCELING")
	close(held.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.Sandbox.ClearFaults()
	s.await(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'status'`, order.OrderID); n != 0 {
		t.Error("a known part is listed as a discrepancy")
	}
}

// lateLookup is a payment provider whose first look-up is sent after release.
type lateLookup struct {
	reserve.Payments
	asked, release chan struct{}
	once           sync.Once
}

func (l *lateLookup) PaymentByOrder(ctx context.Context, keys toss.KeySet, orderID string) (toss.Payment, error) {
	l.once.Do(func() {
		close(l.asked)
		<-l.release
	})
	return l.Payments.PaymentByOrder(ctx, keys, orderID)
}

// TestLookUpBeforeAnswerOfCancellation: a look-up shows the refund of a cancellation, which keeps a part by the policy, before the service
// has its answer. Nothing is listed for an administrator.
func TestLookUpBeforeAnswerOfCancellation(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":67}]`)
	b, order, id := s.paid(t, sandbox.MethodCard)
	replica := s.Replica(t)
	late := &lateLookup{Payments: replica.Payments, asked: make(chan struct{}), release: make(chan struct{})}
	replica.Payments = late
	done := make(chan error, 1)
	go func() { done <- replica.Settle(s.ctx, booking.ReservationID(id)) }()
	<-late.asked
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultDropAfterCommit})
	s.answer(t, b, "/payment/cancel", cancelBody(id), 503, "PaymentPendingException")
	s.wantState(t, order.OrderID, "CANCELING")
	close(late.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.await(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'status'`, order.OrderID); n != 0 {
		t.Error("the refund of the cancellation is listed as a discrepancy")
	}
}
