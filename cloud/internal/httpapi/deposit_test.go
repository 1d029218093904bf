package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// secretOf returns the secret that the provider and the service share for the callbacks of an order.
func secretOf(t *testing.T, s *servicetest.Stack, orderID any) string {
	t.Helper()
	for _, p := range s.Sandbox.Payments(orderID.(string)) {
		if p.Secret != nil {
			return *p.Secret
		}
	}
	t.Fatalf("order %s has no secret", orderID)
	return ""
}

// callback returns the body of a deposit callback.
func callback(orderID any, status, secret string) map[string]any {
	return map[string]any{
		"createdAt": time.Now().Format("2006-01-02T15:04:05.000000"), "orderId": orderID, "status": status, "secret": secret,
		"transactionKey": "9FF15E1A29D0E77C218F57262BFA4986",
	}
}

// delivered waits until the service has accepted a callback.
func delivered(t *testing.T, d *sandbox.Delivery, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := d.First(t.Context())
	if err != nil || reply.Status != 200 {
		t.Fatalf("callback: %+v, %v", reply, err)
	}
	var envelope map[string]any
	if err := json.Unmarshal(reply.Body, &envelope); err != nil || envelope["data"] != nil || envelope["status"] != "success" {
		t.Errorf("callback answered with %s", reply.Body)
	}
}

func TestDeposit(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "가상계좌")
	orderID := confirm["orderId"]
	answer := c.Post("/payment/confirm", confirm).OK(t)
	var receipt struct {
		PaymentMethod, VirtualaccountAccountNumber, VirtualaccountBankName, VirtualaccountCustomerName, VirtualaccountDueDate string
		VirtualaccountAmount                                                                                                  int
	}
	answer.Into(t, &receipt)
	if receipt.PaymentMethod != "가상계좌" || receipt.VirtualaccountAccountNumber == "" || receipt.VirtualaccountBankName != "우리은행" ||
		receipt.VirtualaccountAmount != 30000 || receipt.VirtualaccountCustomerName == "" {
		t.Errorf("receipt %+v", receipt)
	}
	due, err := time.ParseInLocation("2006-01-02T15:04:05", receipt.VirtualaccountDueDate, seoul)
	if left := due.Sub(s.Clock.Now()); err != nil || left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("due in %s, %v", left, err)
	}
	if again := c.Post("/payment/confirm", confirm).OK(t); string(again.Raw) != string(answer.Raw) {
		t.Errorf("confirmed again: %s, first %s", again.Raw, answer.Raw)
	}
	state := func() string { return only(t, s, `select state from reservation where order_id = $1`, orderID) }
	key := func() string {
		return ownerKey(t, s, only(t, s, `select id::text from reservation where order_id = $1`, orderID))
	}
	if state() != "WAITING_FOR_DEPOSIT" || key() != "" {
		t.Fatalf("%s with key %q before the deposit", state(), key())
	}

	// Callbacks that do not prove a deposit.
	send := func(body any) servicetest.Answer { return s.Client(t).Post("/virtualaccount/webhook", body) }
	wrongSecret := reply{403, "AuthorizationException", "웹훅 인증에 실패했습니다."}
	says(t, "wrong secret", send(callback(orderID, "DONE", "guessed")), wrongSecret)
	says(t, "no secret", send(callback(orderID, "DONE", "")), wrongSecret)
	says(t, "unknown order", send(callback("ord-unknown", "DONE", "guessed")), noOrder)
	secret := secretOf(t, s, orderID)
	send(callback(orderID, "DONE", secret)).OK(t) // accepted, but the status check at the provider finds no deposit
	if state() != "WAITING_FOR_DEPOSIT" || key() != "" {
		t.Fatalf("%s with key %q after a false callback", state(), key())
	}
	noStatus := callback(orderID, "DONE", secret)
	delete(noStatus, "status")
	says(t, "no status", send(noStatus), missingField("상태", "status"))
	send(map[string]any{"eventType": "PAYOUT_STATUS_CHANGED", "data": map[string]any{}}).OK(t) // an event type that the service ignores

	d, err := s.Sandbox.Deposit(orderID.(string))
	delivered(t, d, err)
	first := key()
	if state() != "DONE" || first == "" {
		t.Fatalf("%s with key %q after the deposit", state(), first)
	}
	// A repeated callback, in either format of the provider, changes nothing.
	before := only(t, s, `select version::text from reservation where order_id = $1`, orderID)
	header := http.Header{"Content-Type": {"application/json"}, "Tosspayments-Webhook-Transmission-Id": {"whtrans_1"}}
	for range 2 {
		s.Client(t).Send("POST", "/virtualaccount/webhook", callback(orderID, "DONE", secret), header).Envelope(t).OK(t)
	}
	send(map[string]any{"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-11-25T12:00:00.000000", "data": map[string]any{"orderId": orderID, "status": "DONE", "paymentKey": confirm["paymentKey"]}}).OK(t)
	if now := only(t, s, `select version::text from reservation where order_id = $1`, orderID); now != before || key() != first {
		t.Errorf("version %s, before %s; key %s, before %s", now, before, key(), first)
	}
	awaitMessage(t, s, "01012345678", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == first })

	// If the bank reverses the deposit, the key becomes invalid and the reservation waits for a deposit again.
	d, err = s.Sandbox.Reverse(orderID.(string))
	delivered(t, d, err)
	if state() != "WAITING_FOR_DEPOSIT" || key() != "" {
		t.Fatalf("%s with key %q after the reversal", state(), key())
	}
	says(t, "its door", c.Post("/door/v2/unlock", unlockBody("front", first)), reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."})
	d, err = s.Sandbox.Deposit(orderID.(string))
	delivered(t, d, err)
	if state() != "DONE" || key() == "" {
		t.Errorf("%s with key %q after the second deposit", state(), key())
	}
}

// awaitMessage waits for a message to a number.
func awaitMessage(t *testing.T, s *servicetest.Stack, to string, is func(sandbox.Message) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		for _, m := range s.Sandbox.Messages(to) {
			if is(m) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no such message to %s among %+v", to, s.Sandbox.Messages(to))
		}
	}
}

// If no deposit arrives within ten minutes, the account is closed at the provider and the slot is free.
func TestDepositOverdue(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start := slot(s, 3*time.Hour)
	c := s.Client(t)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	paid := order(t, s, c, 2, start, time.Hour, 25000, "가상계좌")
	c.Post("/payment/confirm", paid).OK(t)

	s.Clock.Advance(9 * time.Minute)
	says(t, "before it is due", hold(t, s, 1, start, time.Hour), taken)
	// The second deposit arrives, but the status check that its callback triggers fails.
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sandbox.Deposit(paid["orderId"].(string)); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Minute + time.Second)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if hold(t, s, 1, start, time.Hour).HTTP == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the slot is not free")
		}
	}
	if state := only(t, s, `select state from reservation where order_id = $1`, confirm["orderId"]); state != "CANCELED" {
		t.Errorf("overdue: %s", state)
	}
	if payments := s.Sandbox.Payments(confirm["orderId"].(string)); payments[0].Status != sandbox.StatusCanceled && payments[0].Status != sandbox.StatusExpired {
		t.Errorf("at the provider it is %s", payments[0].Status)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		state := only(t, s, `select state from reservation where order_id = $1`, paid["orderId"])
		if state == "DONE" {
			break
		}
		if state == "CANCELED" || time.Now().After(deadline) {
			t.Fatalf("the one whose money came in is %s", state)
		}
	}
	if _, err := s.Sandbox.Deposit(confirm["orderId"].(string)); err == nil {
		t.Error("the closed account takes a deposit")
	}
}
