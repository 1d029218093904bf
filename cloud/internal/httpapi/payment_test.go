package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var (
	amountMismatch = reply{400, "PaymentAmountMismatchException", "결제 금액이 예약 금액과 일치하지 않습니다."}
	noOrder        = reply{404, "ResourceNotFoundException", "해당 주문을 찾을 수 없습니다."}
	paymentPending = reply{503, "PaymentPendingException", "결제 결과를 확인하고 있습니다."}
)

// asked returns the number of requests to the provider to charge an order.
func asked(s *servicetest.Stack, orderID any) (times int) {
	for _, call := range s.Sandbox.Ledger().Calls {
		if call.Method == http.MethodPost && call.OrderID == orderID {
			times++
		}
	}
	return times
}

func TestRegisterPayment(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	payer := map[string]any{"amount": 46000, "name": "홍길동", "mobileNum": "010-1234-5678"}
	says(t, "without a hold", c.Post("/payment", payer), holdExpired)
	c.Post("/reservation", holdBody(1, start, 90*time.Minute)).OK(t) // 30000 + 16000
	for _, amount := range []int{0, 45999, 46001, 45000, 90000} {
		payer["amount"] = amount
		says(t, "another amount", c.Post("/payment", payer), amountMismatch)
	}
	payer["amount"] = 46000
	var first, second struct{ OrderID string }
	c.Post("/payment", payer).OK(t).Into(t, &first)
	payer["name"], payer["email"] = "임꺽정", "lim@example.com"
	c.Post("/payment", payer).OK(t).Into(t, &second)
	if first.OrderID == second.OrderID {
		t.Error("the same order id again")
	}
	key := func(orderID string) string {
		key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: orderID, Amount: 46000, Method: "카드"})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	says(t, "the first order id is dead", c.Post("/payment/confirm", map[string]any{"paymentKey": key(first.OrderID), "orderId": first.OrderID, "amount": 46000}), noOrder)
	var receipt struct{ Email *string }
	c.Post("/payment/confirm", map[string]any{"paymentKey": key(second.OrderID), "orderId": second.OrderID, "amount": 46000}).OK(t).Into(t, &receipt)
	if receipt.Email == nil || *receipt.Email != "lim@example.com" {
		t.Errorf("e-mail %v: the data were not replaced", receipt.Email)
	}
	says(t, "after the purchase", c.Post("/payment", payer), holdExpired)

	// A customer cannot register an administrator's hold.
	admin := s.Admin(t, "hq", "hq-demo")
	admin.Post("/admin/reservation", holdBody(2, start, time.Hour)).OK(t)
	give(t, s, admin, "PAY_SESSIONID", cookie(t, s, admin, "ADMIN_PAY_SESSIONID"))
	payer["amount"] = 25000
	says(t, "an administrator's hold", admin.Post("/payment", payer), holdExpired)
	c.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	give(t, s, admin, "ADMIN_PAY_SESSIONID", cookie(t, s, c, "PAY_SESSIONID"))
	says(t, "a customer's hold", admin.Post("/admin/payment", map[string]any{}), holdExpired)
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start := slot(s, 3*time.Hour)

	t.Run("amount changed on the way", func(t *testing.T) {
		c := s.Client(t)
		confirm := order(t, s, c, 1, start, time.Hour, 30000, "카드")
		confirm["amount"] = 100
		says(t, "less", c.Post("/payment/confirm", confirm), amountMismatch)
		if times := asked(s, confirm["orderId"]); times != 0 {
			t.Errorf("the provider was asked %d times", times)
		}
		says(t, "the hold is kept", hold(t, s, 1, start, time.Hour), held)
		confirm["amount"] = 30000
		c.Post("/payment/confirm", confirm).OK(t)
		confirm["amount"] = 100
		says(t, "afterwards", c.Post("/payment/confirm", confirm), amountMismatch)
	})

	t.Run("refused", func(t *testing.T) {
		c := s.Client(t)
		confirm := order(t, s, c, 2, start, time.Hour, 25000, "카드")
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "INVALID_STOPPED_CARD"}); err != nil {
			t.Fatal(err)
		}
		answer := c.Post("/payment/confirm", confirm)
		says(t, "by the provider", answer, reply{400, "PaymentFailedException", "정지된 카드 입니다."})
		if answer.ErrorCode != "INVALID_STOPPED_CARD" || string(answer.Data) != "null" {
			t.Errorf("errorCode %q, data %s", answer.ErrorCode, answer.Data)
		}
		says(t, "the hold is kept", hold(t, s, 2, start, time.Hour), held)
		// A retry with another card has the same order and another paymentKey.
		key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: confirm["orderId"].(string), Amount: 25000, Method: "카드"})
		if err != nil {
			t.Fatal(err)
		}
		confirm["paymentKey"] = key
		c.Post("/payment/confirm", confirm).OK(t)
	})

	t.Run("from another browser", func(t *testing.T) {
		confirm := order(t, s, s.Client(t), 3, start, time.Hour, 22000, "간편결제")
		s.Client(t).Post("/payment/confirm", confirm).OK(t)
		again := map[string]any{"paymentKey": "another", "orderId": confirm["orderId"], "amount": 22000}
		says(t, "with another paymentKey", s.Client(t).Post("/payment/confirm", again), reply{400, "PaymentFailedException", "이미 처리된 결제 입니다."})
		for range 3 {
			s.Client(t).Post("/payment/confirm", confirm).OK(t)
		}
		if times := asked(s, confirm["orderId"]); times != 1 {
			t.Errorf("charged %d times", times)
		}
	})

	t.Run("the answer got lost", func(t *testing.T) {
		c := s.Client(t)
		confirm := order(t, s, c, 4, start, time.Hour, 20000, "카드")
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit}); err != nil {
			t.Fatal(err)
		}
		c.Post("/payment/confirm", confirm).OK(t) // the service looks up the order at the provider
		if times := asked(s, confirm["orderId"]); times != 1 {
			t.Errorf("charged %d times", times)
		}
	})

	t.Run("a callback overtakes the answer", func(t *testing.T) {
		c := s.Client(t)
		confirm := order(t, s, c, 6, start, time.Hour, 13000, "가상계좌")
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: time.Second}); err != nil {
			t.Fatal(err)
		}
		confirmed := make(chan servicetest.Answer)
		go func() { confirmed <- c.Post("/payment/confirm", confirm) }()
		for only(t, s, `select state from reservation where order_id = $1`, confirm["orderId"]) != "CONFIRMING" {
			time.Sleep(5 * time.Millisecond)
		}
		says(t, "the callback", s.Client(t).Post("/virtualaccount/webhook", callback(confirm["orderId"], "DONE", "early")), paymentPending)
		says(t, "the receipt", c.Get("/v2/receipt"), paymentPending)
		(<-confirmed).OK(t)
		c.Get("/v2/receipt").OK(t)
	})

	t.Run("unknown outcome", func(t *testing.T) {
		c := s.Client(t)
		confirm := order(t, s, c, 5, start, time.Hour, 15000, "카드")
		for _, f := range []sandbox.Fault{
			{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 500, Code: "FAILED_INTERNAL_SYSTEM_PROCESSING"},
			{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: -1},
		} {
			if err := s.Sandbox.SetFault(f); err != nil {
				t.Fatal(err)
			}
		}
		says(t, "the outcome is open", c.Post("/payment/confirm", confirm), paymentPending)
		// While the outcome is unknown, the hold does not expire and its slot is not free.
		s.Clock.Advance(11 * time.Minute)
		says(t, "its place", hold(t, s, 5, start, time.Hour), held)
		s.Sandbox.ClearFaults()
		s.Clock.Advance(time.Minute)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // a background job resolves the outcome
			answer := c.Post("/payment/confirm", confirm)
			if answer.HTTP == 200 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("not settled: %s", answer.Raw)
			}
		}
	})
	if charged := s.Sandbox.Ledger().Charged; charged != 30000+25000+22000+20000+15000 {
		t.Errorf("charged %d won", charged)
	}
}

func TestCancelPayment(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start := slot(s, 3*time.Hour)
	buy := func(room, price int, method, mobile, email string) map[string]any {
		t.Helper()
		c := s.Client(t)
		c.Post("/reservation", holdBody(room, start, time.Hour)).OK(t)
		var registered struct{ OrderID string }
		c.Post("/payment", map[string]any{"amount": price, "name": "홍길동", "mobileNum": mobile, "email": email}).OK(t).Into(t, &registered)
		key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: registered.OrderID, Amount: price, Method: method, Bank: "88"})
		if err != nil {
			t.Fatal(err)
		}
		confirm := map[string]any{"paymentKey": key, "orderId": registered.OrderID, "amount": price}
		c.Post("/payment/confirm", confirm).OK(t)
		return confirm
	}
	buy(1, 30000, "카드", "01012345678", "")
	buy(2, 25000, "카드", "01099998888", "hong@example.com")
	buy(3, 22000, "가상계좌", "010-1234-5678", "")
	deposited := buy(4, 20000, "가상계좌", "+82 10-1234-5678", "")
	if delivery, err := s.Sandbox.Deposit(deposited["orderId"].(string)); err != nil {
		t.Fatal(err)
	} else if reply, err := delivery.First(t.Context()); err != nil || reply.Status != 200 {
		t.Fatalf("callback: %+v, %v", reply, err)
	}
	buy(5, 15000, "카드", "01012345678", "")

	c := login(t, s, "01012345678")
	id := func(room int) int {
		var number int
		if err := s.DB.Pool.QueryRow(t.Context(), `select r.id from reservation r join room m on m.id = r.room_id where m.no = $1 and r.method is not null order by r.id desc limit 1`, room).Scan(&number); err != nil {
			t.Fatal(err)
		}
		return number
	}
	cancel := func(client *servicetest.Client, room int, account ...string) servicetest.Answer {
		t.Helper()
		body := map[string]any{"id": id(room), "cancelReason": "일정이 바뀌었습니다"}
		for i, field := range []string{"refundReceiveAccountBank", "refundReceiveAccountNumber", "refundReceiveAccountHolderName"} {
			if i < len(account) {
				body[field] = account[i]
			}
		}
		return client.Post("/payment/cancel", body)
	}

	// Four of the payments belong to this customer. The notation of the phone number does not matter.
	var records []paymentRecord
	c.Get("/my-reservations").OK(t).Into(t, &records)
	var rooms []string
	for _, r := range records {
		rooms = append(rooms, r.RoomNo)
	}
	equal(t, "newest first", rooms, []string{"5", "4", "3", "1"})
	account := only(t, s, `select account_number from payment where reservation_id = $1`, id(3))
	due := only(t, s, `select to_char(account_due_at at time zone 'Asia/Seoul', 'YYYY-MM-DD"T"HH24:MI:SS') from payment where reservation_id = $1`, id(3))
	paid := only(t, s, `select to_char(paid_at at time zone 'Asia/Seoul', 'YYYYMMDDHH24MI') from reservation where id = $1`, id(1))
	equal(t, "card", records[3], paymentRecord{ID: id(1), Status: "DONE", Method: "카드", Branch: "gangnam", RoomNo: "1", StartDateTime: wire(start),
		EndDateTime: wire(start.Add(50 * time.Minute)), Amount: 30000, PaymentDoneDateTime: paid})
	issued := only(t, s, `select to_char(attempted_at at time zone 'Asia/Seoul', 'YYYYMMDDHH24MI') from payment where reservation_id = $1`, id(3))
	bank := "신한은행"
	equal(t, "waiting", records[2], paymentRecord{ID: id(3), Status: "WAITING_FOR_DEPOSIT", Method: "가상계좌", Branch: "gangnam", RoomNo: "3", StartDateTime: wire(start),
		EndDateTime: wire(start.Add(50 * time.Minute)), Amount: 22000, PaymentDoneDateTime: issued,
		VirtualaccountBankName: &bank, VirtualaccountAccountNumber: &account, VirtualaccountDueDate: &due})

	says(t, "of another client", cancel(c, 2), reply{403, "AuthorizationException", "해당 예약에 대한 권한이 없습니다."})
	says(t, "unknown", c.Post("/payment/cancel", map[string]any{"id": 999999, "cancelReason": "a"}), noReservation)
	hold(t, s, 6, start, time.Hour).OK(t)
	says(t, "a hold", c.Post("/payment/cancel", map[string]any{"id": number(t, s, 6), "cancelReason": "a"}), noReservation)

	cancel(c, 1).OK(t)
	cancel(c, 1).OK(t)             // a repeated cancellation changes nothing
	cancel(c, 5, "", "", "").OK(t) // empty refund fields are ignored
	cancel(c, 3).OK(t)             // no deposit yet, so no refund account is required
	refuses(t, "no account", cancel(c, 4), "refundReceiveAccountBank", "refundReceiveAccountNumber", "refundReceiveAccountHolderName")
	refuses(t, "half an account", cancel(c, 4, "88", "1002123456789"), "refundReceiveAccountHolderName")
	refuses(t, "an unknown bank", cancel(c, 4, "00", "1002123456789", "홍길동"), "refundReceiveAccountBank")
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "INVALID_REFUND_ACCOUNT_NUMBER"}); err != nil {
		t.Fatal(err)
	}
	answer := cancel(c, 4, "88", "1", "홍길동")
	if answer.HTTP != 400 || answer.ErrorType != "PaymentFailedException" || answer.ErrorCode != "INVALID_REFUND_ACCOUNT_NUMBER" {
		t.Errorf("refused: %s", answer.Raw)
	}
	c.Get("/my-reservations").OK(t).Into(t, &records)
	if records[1].Status != "DONE" {
		t.Errorf("after a refusal it is %s", records[1].Status)
	}
	cancel(c, 4, "88", "1002-123-456789", "홍길동").OK(t)
	c.Get("/my-reservations").OK(t).Into(t, &records)
	for _, r := range records {
		if r.Status != "CANCELED" {
			t.Errorf("room %s is %s", r.RoomNo, r.Status)
		}
	}
	for room := 1; room <= 5; room++ {
		if room != 2 {
			hold(t, s, room, start, time.Hour).OK(t) // the slot is free again
		}
	}
	if ledger := s.Sandbox.Ledger(); ledger.Refunded != 30000+20000+15000 {
		t.Errorf("refunded %d won", ledger.Refunded)
	}

	// If the outcome of a cancellation is unknown, the key is invalid at once and the refund continues automatically.
	for _, f := range []sandbox.Fault{
		{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Code: "FAILED_INTERNAL_SYSTEM_PROCESSING", Times: 2},
		{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: 2},
	} {
		if err := s.Sandbox.SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	start = start.Add(3 * time.Hour)
	buy(6, 13000, "카드", "01012345678", "")
	says(t, "by the customer", cancel(c, 6), paymentPending)
	buy(1, 30000, "카드", "01012345678", "")
	admin := s.Admin(t, "hq", "hq-demo")
	says(t, "by an administrator", admin.Delete("/admin/reservation/"+fmt.Sprint(id(1))+"?bookingStatus=paid", nil), paymentPending)
	c.Get("/my-reservations").OK(t).Into(t, &records)
	if records[0].Status != "DONE" || records[1].Status != "DONE" { // the refund is still in progress
		t.Errorf("during the refund they are %s and %s", records[0].Status, records[1].Status)
	}
	var look v1
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &look)
	equal(t, "until the money is out its place is taken", look.Paid, slices.Concat(slots(1, start, start.Add(time.Hour)), slots(6, start, start.Add(time.Hour))))
	for deadline := time.Now().Add(time.Minute); s.Sandbox.Ledger().Refunded != 30000+20000+15000+13000+30000; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("refunded %d won", s.Sandbox.Ledger().Refunded)
		}
		s.Clock.Advance(time.Second)
	}

	// The e-mail address matches the other reservation, ignoring case.
	other := s.Client(t)
	other.Post("/account/code", map[string]string{"type": "email", "id": "hong@example.com"}).OK(t)
	other.Post("/account/login", map[string]string{"type": "email", "id": "HONG@example.com", "code": awaitCode(t, s, "hong@example.com", 1)}).OK(t)
	cancel(other, 2).OK(t)
}

// TestListShowsRefunds: the customer's list has the money that came back, of a part and of the rest.
func TestListShowsRefunds(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	buyer := s.Client(t)
	buyer.Post("/payment/confirm", order(t, s, buyer, 1, slot(s, 6*time.Hour), time.Hour, 30000, "카드")).OK(t)
	guest := login(t, s, "01012345678")
	refunded := func(want int) {
		t.Helper()
		var list []struct{ Amount, Refunded int }
		eventually(t, fmt.Sprintf("the list has a refund of %d won", want), func() bool {
			list = nil
			guest.Get("/my-reservations").OK(t).Into(t, &list)
			return len(list) == 1 && list[0].Amount == 30000 && list[0].Refunded == want
		})
	}
	refunded(0)
	s.Admin(t, "hq", "hq-demo").Post("/v2/admin/reservations/"+live(t, s, 1)+"/refunds", map[string]any{"amount": 10000, "reason": "소음"}).OK(t)
	refunded(10000)
	guest.Post("/payment/cancel", map[string]any{"id": number(t, s, 1), "cancelReason": "일정"}).OK(t)
	refunded(30000)
}

type paymentRecord struct {
	ID                                                  int
	Status, Method, Branch, RoomNo                      string
	StartDateTime, EndDateTime, PaymentDoneDateTime     string
	Amount                                              int
	VirtualaccountBankName, VirtualaccountAccountNumber *string
	VirtualaccountDueDate                               *string
}

// number returns the id of the newest reservation of a room.
func number(t *testing.T, s *servicetest.Stack, room int) (id int) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(t.Context(), `select max(r.id) from reservation r join room m on m.id = r.room_id where m.no = $1`, room).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}
