package reserve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// forgery is a forged request and the expected response. A forged callback that passes the checks is answered with 200, but
// only the provider's answer can confirm a payment.
type forgery struct {
	name   string
	path   string
	body   any // a json.RawMessage is sent unchanged
	status int
}

// TestForgeries sends forged callbacks, amounts, orders and payment keys: nothing is charged and nothing changes.
func TestForgeries(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, waiting, _ := s.bought(t, sandbox.MethodVirtualAccount)
	_, otherWaiting, _ := s.bought(t, sandbox.MethodVirtualAccount)
	_, done, _ := s.bought(t, sandbox.MethodCard)
	_, cancelled, _ := s.bought(t, sandbox.MethodVirtualAccount)
	overdue := s.wantState(t, cancelled.OrderID, "WAITING_FOR_DEPOSIT")
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/admin/reservation/%d?bookingStatus=waitingForDeposit", overdue)
	if reply, err := admin.Do(s.ctx, http.MethodDelete, path, nil); err != nil || reply.HTTP != 200 {
		t.Fatal(reply, err)
	}
	_, cheap, _ := s.order(t, sandbox.MethodCard)
	_, dear, _ := s.order(t, sandbox.MethodCard)
	secret := s.secret(t, waiting.OrderID)

	callback := func(secret any, order, status string) map[string]any {
		return map[string]any{"createdAt": "2026-11-21T15:04:10.000000", "secret": secret, "status": status, "transactionKey": "TX", "orderId": order}
	}
	changed := func(order string, data map[string]any) map[string]any {
		data["orderId"] = order
		return map[string]any{"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-11-21T15:04:10.000000", "data": data}
	}
	confirm := func(key, order string, amount any) map[string]any {
		return map[string]any{"paymentKey": key, "orderId": order, "amount": amount}
	}
	const hook, pay = "/virtualaccount/webhook", "/payment/confirm"
	cases := []forgery{
		{"wrong secret", hook, callback("ps_000000000000", waiting.OrderID, "DONE"), 403},
		{"empty secret", hook, callback("", waiting.OrderID, "DONE"), 403},
		{"null secret", hook, callback(nil, waiting.OrderID, "DONE"), 403},
		{"number for a secret", hook, callback(1, waiting.OrderID, "DONE"), 403},
		{"list for a secret", hook, callback([]string{secret}, waiting.OrderID, "DONE"), 403},
		{"part of the secret", hook, callback(secret[:len(secret)-1], waiting.OrderID, "DONE"), 403},
		{"more than the secret", hook, callback(secret+"0", waiting.OrderID, "DONE"), 403},
		{"secret in capitals", hook, callback(strings.ToUpper(secret), waiting.OrderID, "DONE"), 403},
		{"another order's secret", hook, callback(s.secret(t, otherWaiting.OrderID), waiting.OrderID, "DONE"), 403},
		{"no secret", hook, map[string]any{"status": "DONE", "orderId": waiting.OrderID}, 403},
		{"unknown order", hook, callback(secret, "ord-unknown", "DONE"), 404},
		{"order of a held purchase", hook, callback(secret, dear.OrderID, "DONE"), 403},
		{"right secret, DONE before the deposit", hook, callback(secret, waiting.OrderID, "DONE"), 200},
		{"right secret, unknown status", hook, callback(secret, waiting.OrderID, "PAID_TWICE"), 200},
		{"old DONE after a cancellation", hook, callback(s.secret(t, cancelled.OrderID), cancelled.OrderID, "DONE"), 200},
		{"CANCELED for a paid card", hook, callback(s.secret(t, done.OrderID), done.OrderID, "CANCELED"), 200},
		{"unsigned DONE with a whole payment", hook, changed(waiting.OrderID, map[string]any{"status": "DONE", "totalAmount": waiting.Amount, "balanceAmount": waiting.Amount}), 200},
		{"unsigned CANCELED for a paid card", hook, changed(done.OrderID, map[string]any{"status": "CANCELED", "balanceAmount": 0}), 200},
		{"unsigned DONE of a held purchase", hook, changed(dear.OrderID, map[string]any{"status": "DONE"}), 403},
		{"unsigned unknown order", hook, changed("ord-unknown", map[string]any{"status": "DONE"}), 404},
		{"not JSON", hook, "secret=" + secret, 400},
		{"a list", hook, "[]", 400},
		{"nothing", hook, "{}", 400},
		{"a megabyte", hook, `{"orderId":"` + strings.Repeat("x", 1<<20) + `"}`, 413},

		{"one won less", pay, confirm(dear.PaymentKey, dear.OrderID, dear.Amount-1), 400},
		{"one won more", pay, confirm(dear.PaymentKey, dear.OrderID, dear.Amount+1), 400},
		{"nothing to pay", pay, confirm(dear.PaymentKey, dear.OrderID, 0), 400},
		{"paid to the customer", pay, confirm(dear.PaymentKey, dear.OrderID, -dear.Amount), 400},
		{"half a won", pay, confirm(dear.PaymentKey, dear.OrderID, float64(dear.Amount)+0.5), 400},
		{"amount as text", pay, confirm(dear.PaymentKey, dear.OrderID, fmt.Sprint(dear.Amount)), 400},
		{"amount with an exponent", pay, fmt.Sprintf(`{"paymentKey":%q,"orderId":%q,"amount":1e3}`, dear.PaymentKey, dear.OrderID), 400},
		{"amount beyond exactness", pay, confirm(dear.PaymentKey, dear.OrderID, 1<<53+1), 400},
		{"no amount", pay, map[string]any{"paymentKey": dear.PaymentKey, "orderId": dear.OrderID}, 400},
		{"the other order's amount", pay, confirm(dear.PaymentKey, dear.OrderID, cheap.Amount), 400},
		{"payment of another order", pay, confirm(cheap.PaymentKey, dear.OrderID, dear.Amount), 400},
		{"payment that was used", pay, confirm(done.PaymentKey, dear.OrderID, dear.Amount), 400},
		{"payment that was not made", pay, confirm("tgyeolda0120261121000000", dear.OrderID, dear.Amount), 400},
		{"path for a payment", pay, confirm("../../payments/"+done.PaymentKey, dear.OrderID, dear.Amount), 400},
		{"unknown order confirmed", pay, confirm(dear.PaymentKey, "ord-unknown", dear.Amount), 404},
		{"another key for a paid order", pay, confirm(dear.PaymentKey, done.OrderID, done.Amount), 400},
		{"another amount for a paid order", pay, confirm(done.PaymentKey, done.OrderID, done.Amount-1), 400},
	}
	before, ledger := s.snapshot(t), s.Sandbox.Ledger()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := s.buyer()
			body := c.body
			if text, ok := body.(string); ok {
				body = json.RawMessage(text)
			}
			status, err := s.forge(b, c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			if status != c.status {
				t.Errorf("answer %d, want %d", status, c.status)
			}
			if after := s.snapshot(t); after != before {
				t.Errorf("it changed something:\n%s\nbefore:\n%s", after, before)
			}
			if now := s.Sandbox.Ledger(); now.Charged != ledger.Charged || now.Refunded != ledger.Refunded {
				t.Errorf("money moved: charged %d, refunded %d", now.Charged, now.Refunded)
			}
		})
	}
	// The genuine requests still succeed.
	for _, order := range []moneytest.Confirm{cheap, dear} {
		s.answer(t, s.buyer(), pay, order, 200, "")
	}
	s.deposit(t, waiting.OrderID)
	s.wantState(t, waiting.OrderID, "DONE")
}

// forge sends a body, which may be invalid JSON.
func (s *shop) forge(b *moneytest.Buyer, path string, body any) (int, error) {
	content, ok := body.(json.RawMessage)
	if !ok {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, b.API+path, strings.NewReader(string(content)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := b.HTTP.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// secret returns the secret that authenticates the callbacks of an order.
func (s *shop) secret(t *testing.T, order string) string {
	t.Helper()
	payments := s.Sandbox.Payments(order)
	if len(payments) != 1 || payments[0].Secret == nil {
		t.Fatalf("order %s has no secret", order)
	}
	return *payments[0].Secret
}

// snapshot returns everything that a forgery could change, as text.
func (s *shop) snapshot(t *testing.T) (text string) {
	t.Helper()
	err := s.DB.Pool.QueryRow(s.ctx, `
		select string_agg(concat_ws(' ', r.id, state, amount, method, k.hash, order_id, paid_at, canceled_at), chr(10) order by r.id)
		from reservation r left join access_key k on k.reservation_id = r.id and k.revoked_at is null`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRepeatedCallbacks delivers one event twenty times concurrently, with and without a transmission id: it counts once.
func TestRepeatedCallbacks(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodVirtualAccount)
	s.deposit(t, order.OrderID)
	id := s.wantState(t, order.OrderID, "DONE")
	stored := s.count(t, `select count(*) from webhook_event`)
	callback := map[string]any{
		"createdAt": "2026-11-21T15:04:10.000000", "secret": s.secret(t, order.OrderID), "status": "DONE", "transactionKey": "TX", "orderId": order.OrderID,
	}
	err := together(20, func(int) error {
		reply, err := s.buyer().Post(s.ctx, "/virtualaccount/webhook", callback)
		if err != nil {
			return err
		}
		return reply.OK()
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from webhook_event`); n != stored+1 {
		t.Errorf("%d callbacks stored for one event", n-stored)
	}
	if n := s.count(t, `select count(*) from ledger where reservation_id = $1 and kind = 'deposit.done'`, id); n != 1 {
		t.Errorf("deposited %d times", n)
	}
}

// TestCallbackBeforeAnswer: a callback that arrives before the payment is stored is rejected, so the provider repeats it.
func TestCallbackBeforeAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: -1})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	delivery, err := s.Sandbox.Deposit(order.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := delivery.First(s.ctx); err != nil || reply.Status != 503 {
		t.Fatalf("callback: %+v, %v", reply, err)
	}
	s.Sandbox.ClearFaults()
	s.await(t, order.OrderID, "DONE")
}

// TestPaymentInAnotherCurrency pays with a widget that the guest has changed to a currency of less worth: the same number is another amount, so it
// is returned, for a virtual account before it is deposited.
func TestPaymentInAnotherCurrency(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, method := range []string{sandbox.MethodCard, sandbox.MethodVirtualAccount} {
		b, order, _ := s.order(t, method)
		var err error
		if order.PaymentKey, err = s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Currency: "VND", Method: method, Bank: "20"}); err != nil {
			t.Fatal(err)
		}
		s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
		id := s.await(t, order.OrderID, "CANCELED")
		if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'amount' and detail like '%VND%'`, order.OrderID); n != 1 {
			t.Errorf("%s: %d discrepancies of the amount name the currency, want 1", method, n)
		}
		if n := s.count(t, `select count(*) from access_key where reservation_id = $1`, id); n != 0 {
			t.Errorf("%s: it has %d keys, want none", method, n)
		}
	}
	if l := s.Sandbox.Ledger(); l.Charged != l.Refunded {
		t.Errorf("the provider holds %d, want everything returned", l.Charged-l.Refunded)
	}
}
