package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var seoul = func() *time.Location {
	zone, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		panic(err)
	}
	return zone
}()

// slot returns the start of the ten-minute slot at the given duration from now.
func slot(s *servicetest.Stack, ahead time.Duration) time.Time {
	return s.Clock.Now().In(seoul).Add(ahead).Truncate(10 * time.Minute)
}

func wire(t time.Time) string { return t.In(seoul).Format("200601021504") }

// holdBody returns the request body of a hold for a room in gangnam.
func holdBody(room int, start time.Time, length time.Duration) map[string]any {
	return map[string]any{"branch": "gangnam", "room": room, "startDateTime": wire(start), "endDateTime": wire(start.Add(length))}
}

// order performs all steps of a purchase before the confirmation, and returns the body of the confirmation request.
func order(t *testing.T, s *servicetest.Stack, c *servicetest.Client, room int, start time.Time, length time.Duration, amount int, method string) map[string]any {
	t.Helper()
	return ordered(t, s, c, holdBody(room, start, length), amount, method)
}

// ordered is order for the body of a hold.
func ordered(t *testing.T, s *servicetest.Stack, c *servicetest.Client, hold map[string]any, amount int, method string) map[string]any {
	t.Helper()
	c.Post("/reservation", hold).OK(t)
	var registered struct {
		OrderID string `json:"orderId"`
	}
	c.Post("/payment", map[string]any{
		"amount": amount, "name": "홍길동", "mobileNum": "010-1234-5678", "email": "hong@example.com",
	}).OK(t).Into(t, &registered)
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: registered.OrderID, Amount: amount, Method: method, Bank: "20"})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"paymentKey": key, "orderId": registered.OrderID, "amount": amount}
}

func TestPurchaseByEachMethod(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for room, method := range map[int]string{1: "카드", 2: "간편결제", 3: "휴대폰"} {
		t.Run(method, func(t *testing.T) {
			c := s.Client(t)
			price := map[int]int{1: 30000, 2: 25000, 3: 22000}[room]
			start := slot(s, 3*time.Hour)
			confirm := order(t, s, c, room, start, time.Hour, price, method)
			var receipt map[string]any
			answer := c.Post("/payment/confirm", confirm).OK(t)
			answer.Into(t, &receipt)
			want := map[string]any{
				"branch": "gangnam", "roomNo": fmt.Sprint(room), "startDateTime": wire(start),
				"endDateTime":        wire(start.Add(50 * time.Minute)),
				"refundableDateTime": wire(start.Add(-30 * time.Minute)),
				"mobileNum":          "010-1234-5678", "email": "hong@example.com", "paymentMethod": method,
				"virtualaccountAccountNumber": nil, "virtualaccountBankName": nil, "virtualaccountAmount": nil,
				"virtualaccountCustomerName": nil, "virtualaccountDueDate": nil,
			}
			for field, value := range want {
				if got, ok := receipt[field]; !ok || got != value {
					t.Errorf("%s = %v, want %v", field, got, value)
				}
			}
			if again := c.Post("/payment/confirm", confirm).OK(t); string(again.Raw) != string(answer.Raw) {
				t.Errorf("confirmed again: %s, first %s", again.Raw, answer.Raw)
			}
			messages := awaitMessages(t, s, "01012345678", room)
			if messages[len(messages)-1].Variables["doorlockKey"] == "" {
				t.Error("the message holds no doorlockKey")
			}
		})
	}
	if charged := s.Sandbox.Ledger().Charged; charged != 77000 {
		t.Errorf("charged %d won", charged)
	}
}

// awaitMessages waits for the first message to a number and returns all messages to it.
func awaitMessages(t *testing.T, s *servicetest.Stack, to string, _ int) []sandbox.Message {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		if messages := s.Sandbox.Messages(to); len(messages) > 0 {
			return messages
		}
		if time.Now().After(deadline) {
			t.Fatal("no message arrived")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestVirtualAccountPurchase(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "가상계좌")
	var receipt struct {
		PaymentMethod string `json:"paymentMethod"`
		Account       string `json:"virtualaccountAccountNumber"`
		Bank          string `json:"virtualaccountBankName"`
		Amount        int    `json:"virtualaccountAmount"`
		Due           string `json:"virtualaccountDueDate"`
	}
	c.Post("/payment/confirm", confirm).OK(t).Into(t, &receipt)
	if receipt.PaymentMethod != "가상계좌" || receipt.Account == "" || receipt.Bank != "우리은행" || receipt.Amount != 30000 || receipt.Due == "" {
		t.Fatalf("receipt %+v", receipt)
	}
	delivery, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := delivery.First(t.Context()); err != nil || reply.Status != http.StatusOK {
		t.Fatalf("webhook: %+v, %v", reply, err)
	}
	c.Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	code := ""
	for deadline := time.Now().Add(time.Minute); code == "" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, m := range s.Sandbox.Messages("01012345678") {
			if m.Variables["code"] != "" {
				code = m.Variables["code"]
			}
		}
	}
	var records []map[string]any
	c.Post("/account/login", map[string]string{"type": "mobile", "id": "010-1234-5678", "code": code}).OK(t).Into(t, &records)
	if len(records) != 1 || records[0]["status"] != "DONE" || records[0]["method"] != "가상계좌" {
		t.Fatalf("records %v", records)
	}
	id := records[0]["id"]
	c.Post("/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}).Fails(t, 400, "IllegalArguemntError", "")
	c.Post("/payment/cancel", map[string]any{
		"id": id, "cancelReason": "변심", "refundReceiveAccountBank": "20",
		"refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동",
	}).OK(t)
	c.Get("/my-reservations").OK(t).Into(t, &records)
	if records[0]["status"] != "CANCELED" {
		t.Fatalf("records %v", records)
	}
	if ledger := s.Sandbox.Ledger(); ledger.Refunded != 30000 {
		t.Errorf("refunded %d won", ledger.Refunded)
	}
}
