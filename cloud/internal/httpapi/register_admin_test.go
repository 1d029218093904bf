package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func TestRegistration(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	says(t, "without a hold", admin.Post("/admin/payment", map[string]any{}), holdExpired)
	reserve := func(room int, body any) string {
		t.Helper()
		answer := admin.Post("/admin/reservation", holdBody(room, start, time.Hour)).OK(t)
		cookieHas(t, answer, "ADMIN_PAY_SESSIONID", "; Path=/; Max-Age=300; HttpOnly; SameSite=Lax")
		if answer := admin.Post("/admin/payment", body).OK(t); string(answer.Data) != "null" {
			t.Errorf("data %s", answer.Data)
		}
		if cookie(t, s, admin, "ADMIN_PAY_SESSIONID") != "" {
			t.Error("the cookie of the hold stays")
		}
		return ownerKey(t, s, live(t, s, room))
	}
	contact := map[string]any{"name": "홍길동", "mobileNum": "010-5555-6666"}
	reserve(1, contact)
	contact["notify"] = false
	reserve(2, contact)
	contact["notify"] = true
	key := reserve(3, contact)
	reserve(4, map[string]any{"notify": true}) // no contact to notify
	reserve(5, nil)                            // without a body
	mailed := reserve(6, map[string]any{"email": "guest@example.com", "notify": true})
	awaitMessage(t, s, "01055556666", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == key })
	awaitMessage(t, s, "guest@example.com", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == mailed })
	if n := only(t, s, `select count(*)::text from message where reservation_id = $1::bigint`, live(t, s, 4)); n != "0" {
		t.Errorf("%s messages to no contact, want 0: each one would fail and raise an alert", n)
	}
	if messages := s.Sandbox.Messages("01055556666"); len(messages) != 1 {
		t.Errorf("%d messages for one that was wanted", len(messages))
	}
	// A customer who logs in with this number sees the reservation.
	c := login(t, s, "01055556666")
	var records []paymentRecord
	c.Get("/my-reservations").OK(t).Into(t, &records)
	if len(records) != 3 || records[0].Method != "관리자" || records[0].Amount != 0 || records[0].Status != "DONE" {
		t.Errorf("records %+v", records)
	}
}

// All tabs of a browser share the cookie of the hold. A form that shows an earlier hold registers nothing.
func TestRegistrationNamesItsHold(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	admin.Post("/admin/reservation", holdBody(1, start, time.Hour)).OK(t)
	admin.Post("/admin/reservation", holdBody(2, start, time.Hour)).OK(t) // in another tab
	account := map[string]any{"amount": 12000, "orderName": "강남점 1번 룸", "name": "홍길동", "mobileNum": "010-5555-6666", "bankCode": "20"}
	for name, shown := range map[string]any{
		"another room": holdBody(1, start, time.Hour), "another start": holdBody(2, start.Add(10*time.Minute), 50*time.Minute),
		"another end": holdBody(2, start, 50*time.Minute),
	} {
		says(t, name, admin.Post("/admin/payment", map[string]any{"name": "홍길동", "held": shown}), holdExpired)
		account["held"] = shown
		says(t, name+", account", admin.Post("/admin/v2/virtual-accounts", account), holdExpired)
	}
	admin.Post("/admin/payment", map[string]any{"name": "홍길동", "held": map[string]any{}}).Fails(t, 400, "IllegalArguemntError", "")
	admin.Post("/admin/payment", map[string]any{"name": "홍길동", "held": holdBody(2, start, time.Hour)}).OK(t)
	admin.Post("/admin/reservation", holdBody(3, start, time.Hour)).OK(t)
	account["held"] = holdBody(3, start, time.Hour)
	admin.Post("/admin/v2/virtual-accounts", account).OK(t)
}

func TestAdminVirtualAccount(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	body := map[string]any{"amount": 12000, "orderName": "강남점 1번 룸", "name": "홍길동", "mobileNum": "010-5555-6666", "bankCode": "20"}
	says(t, "without a hold", admin.Post("/admin/v2/virtual-accounts", body), holdExpired)

	admin.Post("/admin/reservation", holdBody(1, start, time.Hour)).OK(t)
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetVirtualAccounts, Kind: sandbox.FaultError, Code: "INVALID_BANK"}); err != nil {
		t.Fatal(err)
	}
	if answer := admin.Post("/admin/v2/virtual-accounts", body); answer.HTTP != 400 || answer.ErrorType != "PaymentFailedException" || answer.ErrorCode != "INVALID_BANK" {
		t.Errorf("refused: %s", answer.Raw)
	}
	var data map[string]any
	admin.Post("/admin/v2/virtual-accounts", body).OK(t).Into(t, &data) // the hold exists as before
	equal(t, "data", data, map[string]any{"dataType": "virtualaccount"})
	id := live(t, s, 1)
	got := detail(t, admin, id)
	if got.BookingStatus != "waitingForDeposit" || *got.BookingAmount != "12000" || *got.BookingVirtualaccountBankName != "우리은행" || got.BookingTtl < 580 || got.BookingTtl > 600 {
		t.Errorf("detail %+v", got)
	}
	awaitMessage(t, s, "01055556666", func(m sandbox.Message) bool {
		return m.Variables["accountNumber"] == *got.BookingVirtualaccountAccountNumber
	})
	says(t, "the hold has been used", admin.Post("/admin/v2/virtual-accounts", body), holdExpired)
	orderID := only(t, s, `select order_id from reservation where id = $1::bigint`, id)
	d, err := s.Sandbox.Deposit(orderID)
	delivered(t, d, err)
	var paid map[string]any
	admin.Get("/admin/reservation/"+id).OK(t).Into(t, &paid)
	if paid["dataType"] != "paid" || paid["paidMethod"] != "가상계좌" || paid["paidTotalAmount"] != "12000" {
		t.Errorf("paid %v", paid)
	}

	// If it is unknown whether the account was issued, a background job finds out.
	admin.Post("/admin/reservation", holdBody(3, start, time.Hour)).OK(t)
	for _, f := range []sandbox.Fault{
		{Target: sandbox.TargetVirtualAccounts, Kind: sandbox.FaultDropAfterCommit}, {Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: -1},
	} {
		if err := s.Sandbox.SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	says(t, "unclear", admin.Post("/admin/v2/virtual-accounts", body), paymentPending)
	says(t, "still unclear", admin.Post("/admin/v2/virtual-accounts", body), paymentPending)
	says(t, "without payment, unclear", admin.Post("/admin/payment", map[string]any{"name": "홍길동"}), paymentPending)
	s.Sandbox.ClearFaults()
	s.Clock.Advance(time.Minute)
	for deadline := time.Now().Add(time.Minute); detail(t, admin, live(t, s, 3)).BookingStatus != "waitingForDeposit"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not found out")
		}
	}

	// Without a deposit, the reservation is cancelled after ten minutes.
	admin.Post("/admin/reservation", holdBody(2, start, time.Hour)).OK(t)
	admin.Post("/admin/v2/virtual-accounts", body).OK(t)
	s.Clock.Advance(10*time.Minute + time.Second)
	for deadline := time.Now().Add(time.Minute); hold(t, s, 2, start, time.Hour).HTTP != 200; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the slot is not free")
		}
	}
}
