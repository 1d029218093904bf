package reserve_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestLostConfirmAnswers loses the provider's response after each of thirty charges: there are thirty reservations and
// thirty charges.
func TestLostConfirmAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, servicetest.ManyConnections)
	const purchases = 30
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit, Times: purchases})
	ended := make(chan error, 1)
	s.Clock.Stop(s.Clock.Now()) // no attempt becomes so old that it is repeated
	go func() {
		ended <- together(purchases, func(int) error {
			_, err := s.buyer().Buy(s.ctx, s.wish(sandbox.MethodCard))
			return err
		})
	}()
	for s.charges() < purchases && len(ended) == 0 {
		time.Sleep(10 * time.Millisecond) // the sandbox reports no event for a charge
	}
	s.Clock.Resume() // a look-up without an answer is repeated
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if done := s.count(t, `select count(*) from reservation where state = 'DONE'`); done != purchases {
		t.Errorf("%d reservations", done)
	}
	for _, p := range s.Sandbox.Payments("") {
		if calls, captured := moneytest.Confirms(s.Sandbox, p.OrderID); calls != 1 || captured != 1 {
			t.Errorf("order %s: %d confirmations sent, %d charges", p.OrderID, calls, captured)
		}
	}
}

// charges returns the number of payments that the provider has executed.
func (s *shop) charges() (n int) {
	for _, p := range s.Sandbox.Payments("") {
		if p.ApprovedAt != nil {
			n++
		}
	}
	return n
}

// TestParallelConfirms sends fifty requests for one order to two replicas of a slow provider: one charge, equal responses.
func TestParallelConfirms(t *testing.T) {
	t.Parallel()
	s := open(t)
	other := open(t, func(set *config.Settings) {
		set.Database.URL, set.Sandbox.Addr = s.DB.Pool.Config().ConnString(), s.Settings.Sandbox.Addr
		set.MQTT.BrokerURL = "mqtt://127.0.0.1:9" // only one service on a database may have the embedded broker
	})
	other.Sandbox = s.Sandbox
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: 500 * time.Millisecond})
	answers := make([]string, 50)
	err := together(len(answers), func(i int) error {
		browser := *b
		if i%2 == 1 {
			browser.API = other.URL
		}
		reply, err := browser.Post(s.ctx, "/payment/confirm", order)
		answers[i] = fmt.Sprint(reply.HTTP, reply.Raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a != answers[0] || a[:3] != "200" {
			t.Fatalf("answers differ or fail: %s\n%s", answers[0], a)
		}
	}
	if calls, captured := moneytest.Confirms(s.Sandbox, order.OrderID); calls != 1 || captured != 1 {
		t.Errorf("%d confirmations sent, %d charges", calls, captured)
	}
}

// TestRefusedKeepsHold: a refusal keeps the hold, and the next card on the same hold succeeds. Fifty concurrent requests
// receive the same refusal.
func TestRefusedKeepsHold(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodCard)
	if err := s.Sandbox.Decline(order.PaymentKey, "REJECT_CARD_COMPANY"); err != nil {
		t.Fatal(err)
	}
	refused := s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	if refused.ErrorCode != "REJECT_CARD_COMPANY" {
		t.Errorf("code %q", refused.ErrorCode)
	}
	s.wantState(t, order.OrderID, "HOLD")
	stranger := s.buyer()
	if err := stranger.Hold(s.ctx, w); err == nil {
		t.Error("the hold of a refused payment was given to a stranger")
	}
	reply := s.answer(t, b, "/payment", map[string]any{"amount": order.Amount, "name": "홍길동", "mobileNum": w.Mobile}, 200, "")
	if string(reply.Data) == "" {
		t.Fatal("no order")
	}
	var again string
	if err := s.DB.Pool.QueryRow(s.ctx, `select order_id from reservation where state = 'HOLD'`).Scan(&again); err != nil {
		t.Fatal(err)
	}
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: again, Amount: order.Amount, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/confirm", moneytest.Confirm{PaymentKey: key, OrderID: again, Amount: order.Amount}, 200, "")
	s.answer(t, b, "/payment/confirm", order, 404, "ResourceNotFoundException")
}

func TestConfirmOfExpiredHold(t *testing.T) {
	t.Parallel()
	s := open(t)
	t.Run("free: taken again", func(t *testing.T) {
		b, order, _ := s.order(t, sandbox.MethodCard)
		s.exec(t, `update reservation set expires_at = now() - interval '1 minute' where order_id = $1`, order.OrderID)
		s.answer(t, b, "/payment/confirm", order, 200, "")
	})
	t.Run("free and marked: taken again", func(t *testing.T) {
		b, order, _ := s.order(t, sandbox.MethodCard)
		s.exec(t, `update reservation set state = 'EXPIRED' where order_id = $1`, order.OrderID)
		s.answer(t, b, "/payment/confirm", order, 200, "")
	})
	t.Run("taken by another", func(t *testing.T) {
		b, order, w := s.order(t, sandbox.MethodCard)
		s.exec(t, `update reservation set expires_at = now() - interval '1 minute' where order_id = $1`, order.OrderID)
		if err := s.buyer().Hold(s.ctx, w); err != nil {
			t.Fatal(err)
		}
		s.neverAsked(t, b, order, 401, "ResourceTimeOutException")
	})
	t.Run("room switched off", func(t *testing.T) {
		b, order, w := s.order(t, sandbox.MethodCard)
		s.exec(t, `update reservation set expires_at = now() - interval '1 minute' where order_id = $1`, order.OrderID)
		s.exec(t, `update room set enabled = false where no = $1`, w.Room)
		defer s.exec(t, `update room set enabled = true where no = $1`, w.Room)
		s.neverAsked(t, b, order, 401, "ResourceTimeOutException")
	})
	t.Run("given back", func(t *testing.T) {
		b, order, _ := s.order(t, sandbox.MethodCard)
		if reply, err := b.Do(s.ctx, http.MethodDelete, "/reservation", nil); err != nil || reply.HTTP != 200 {
			t.Fatal(reply, err)
		}
		s.neverAsked(t, b, order, 401, "ResourceTimeOutException")
	})
}

// neverAsked confirms an order that must be refused without a request to the provider.
func (s *shop) neverAsked(t *testing.T, b *moneytest.Buyer, order moneytest.Confirm, status int, errorType string) {
	t.Helper()
	s.answer(t, b, "/payment/confirm", order, status, errorType)
	if calls, captured := moneytest.Confirms(s.Sandbox, order.OrderID); calls != 0 || captured != 0 {
		t.Errorf("the provider was asked %d times and charged %d", calls, captured)
	}
}

// TestUnclearConfirm: after an unreadable or unlisted response, the look-up decides the outcome. No payment is charged
// twice or lost.
func TestUnclearConfirm(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{
		"500":          {Kind: sandbox.FaultError, Status: 500},
		"502":          {Kind: sandbox.FaultError, Status: 502, Code: "BAD_GATEWAY"},
		"429":          {Kind: sandbox.FaultError, Status: 429, Code: "TOO_MANY_REQUESTS"},
		"409":          {Kind: sandbox.FaultError, Status: 409, Code: "IDEMPOTENT_REQUEST_PROCESSING"},
		"unknown code": {Kind: sandbox.FaultError, Status: 400, Code: "NEVER_HEARD_OF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			b, order, w := s.order(t, sandbox.MethodCard)
			fault.Target = sandbox.TargetConfirm
			s.fault(t, fault)
			s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
			s.wantState(t, order.OrderID, "CONFIRMING")
			s.Clock.Advance(15 * time.Minute) // past the hold's TTL: the reservation must keep its slot
			if err := s.buyer().Hold(s.ctx, w); err == nil {
				t.Error("the slot was sold while money might still come")
			}
			s.await(t, order.OrderID, "DONE")
			s.answer(t, b, "/payment/confirm", order, 200, "")
		})
	}
	t.Run("cannot be asked either", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		b, order, _ := s.order(t, sandbox.MethodCard)
		s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
		s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: -1})
		s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
		s.answer(t, b, "/payment/cancel", map[string]any{"id": 1, "cancelReason": "변심"}, 401, "AuthenticationError")
		s.Sandbox.ClearFaults()
		s.Clock.Advance(time.Minute)
		s.await(t, order.OrderID, "DONE")
	})
}

// TestSessionEndsUnderConfirmation: if the widget's session expires before the charge, the hold is released and nothing is
// charged.
func TestSessionEndsUnderConfirmation(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 500})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	if err := s.Sandbox.Decline(order.PaymentKey, ""); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Minute)
	s.await(t, order.OrderID, "HOLD")
}

// TestOvertakenAnswer delays the response of a look-up ("waiting") until the deposit has been applied: the older response
// must not undo the newer one.
func TestOvertakenAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodVirtualAccount)
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	replica := s.Replica(t)
	held := &heldLookup{Payments: replica.Payments, answered: make(chan struct{}), release: make(chan struct{})}
	replica.Payments = held
	settled := make(chan error, 1)
	go func() { settled <- replica.Settle(s.ctx, booking.ReservationID(id)) }()
	<-held.answered
	delivery, err := s.Sandbox.Deposit(order.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := delivery.First(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "DONE")
	close(held.release)
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "DONE")
	if n := s.count(t, `select count(*) from reconciliation_difference`); n != 0 {
		t.Errorf("%d discrepancies, want 0", n)
	}
}

// TestConfirmAgainAfterCancel: repeating a confirmation returns the same body after the reservation was cancelled.
func TestConfirmAgainAfterCancel(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodCard)
	first := s.answer(t, b, "/payment/confirm", order, 200, "")
	id := s.wantState(t, order.OrderID, "DONE")
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	if again := s.answer(t, b, "/payment/confirm", order, 200, ""); again.Raw != first.Raw {
		t.Errorf("confirmed again: %s, first %s", again.Raw, first.Raw)
	}
}

// TestConfirmAgainWhileTheFirstStillAsks: a settled outcome is returned at once, although the first request still waits for
// the provider.
func TestConfirmAgainWhileTheFirstStillAsks(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
	replica := s.Replica(t)
	held := &heldLookup{Payments: replica.Payments, answered: make(chan struct{}), release: make(chan struct{})}
	replica.Payments = held
	request := reserve.ConfirmRequest{PaymentKey: order.PaymentKey, OrderID: order.OrderID, Amount: order.Amount}
	first := make(chan error, 1)
	go func() {
		_, err := replica.Confirm(s.ctx, request)
		first <- err
	}()
	<-held.answered
	id := s.wantState(t, order.OrderID, "CONFIRMING")
	if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	receipt, err := replica.Confirm(s.ctx, request)
	if err != nil || receipt.State != booking.Done {
		t.Errorf("state %s: %v", receipt.State, err)
	}
	close(held.release)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}

// heldLookup delays the first response of a look-up.
type heldLookup struct {
	reserve.Payments
	answered, release chan struct{}
	held              bool
}

func (h *heldLookup) PaymentByOrder(ctx context.Context, keys toss.KeySet, orderID string) (toss.Payment, error) {
	payment, err := h.Payments.PaymentByOrder(ctx, keys, orderID)
	if !h.held {
		h.held = true
		close(h.answered)
		<-h.release
	}
	return payment, err
}

// TestConfirmAsksTheProviderOnce: a purchase whose charge was answered leaves no job that asks the provider about it again.
func TestConfirmAsksTheProviderOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	if _, err := s.buyer().Buy(s.ctx, s.wish(sandbox.MethodCard)); err != nil {
		t.Fatal(err)
	}
	if jobs := s.count(t, `select count(*) from river_job where kind = 'settle'`); jobs != 0 {
		t.Errorf("%d jobs look up the payment, want none", jobs)
	}
}
