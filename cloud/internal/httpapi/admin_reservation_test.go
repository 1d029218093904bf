package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var wrongStatus = reply{400, "IllegalArguemntError", "bookingStatus 값이 올바르지 않습니다."}

type bookingDetail struct {
	DataType, BookingStatus                  string
	BookingTtl                               int
	BookingBranchEng, BookingBranchKor       string
	BookingRoom, BookingMachine              string
	BookingStartDateTime, BookingEndDateTime string
	BookingAmount, BookingName               *string
	BookingMobileNum, BookingEmail           *string
	BookingVirtualaccountBankName            *string
	BookingVirtualaccountAccountNumber       *string
	BookingVirtualaccountDueDate             *string
}

func detail(t *testing.T, c *servicetest.Client, id string) (d bookingDetail) {
	t.Helper()
	c.Get("/admin/reservation/"+id).OK(t).Into(t, &d)
	return d
}

// live returns the id of the live reservation of a room.
func live(t *testing.T, s *servicetest.Stack, room int) string {
	t.Helper()
	return only(t, s, `
		select r.id::text from reservation r join room m on m.id = r.room_id join branch b on b.id = r.branch_id
		where b.code = 'gangnam' and m.no = $1 and r.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')`, room)
}

func TestAdminDetail(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	c := s.Client(t)
	c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	id := live(t, s, 1)
	want := bookingDetail{
		DataType: "booking", BookingStatus: "beforePaymentTab", BookingBranchEng: "gangnam", BookingBranchKor: "열다 강남점", BookingRoom: "1",
		BookingMachine: "아쿠아 스파 베드 A1", BookingStartDateTime: wire(start), BookingEndDateTime: wire(start.Add(50 * time.Minute)),
	}
	ttl := func(t *testing.T, d *bookingDetail, low, high int) {
		t.Helper()
		if d.BookingTtl < low || d.BookingTtl > high {
			t.Errorf("bookingTtl is %d", d.BookingTtl)
		}
		d.BookingTtl = 0
	}
	got := detail(t, admin, id)
	ttl(t, &got, 580, 600)
	equal(t, "beforePaymentTab", got, want)

	var registered struct{ OrderID string }
	c.Post("/payment", map[string]any{"amount": 30000, "name": "홍길동", "mobileNum": "010-1234-5678", "email": "hong@example.com"}).OK(t).Into(t, &registered)
	want.BookingStatus, want.BookingAmount, want.BookingName = "paymentTab", new("30000"), new("홍길동")
	want.BookingMobileNum, want.BookingEmail = new("010-1234-5678"), new("hong@example.com")
	got = detail(t, admin, id)
	ttl(t, &got, 580, 600)
	equal(t, "paymentTab", got, want)

	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: registered.OrderID, Amount: 30000, Method: "가상계좌", Bank: "88"})
	if err != nil {
		t.Fatal(err)
	}
	c.Post("/payment/confirm", map[string]any{"paymentKey": key, "orderId": registered.OrderID, "amount": 30000}).OK(t)
	want.BookingStatus, want.BookingVirtualaccountBankName = "waitingForDeposit", new("신한은행")
	want.BookingVirtualaccountAccountNumber = new(only(t, s, `select account_number from payment where reservation_id = $1::bigint`, id))
	want.BookingVirtualaccountDueDate = new(only(t, s, `select to_char(account_due_at at time zone 'Asia/Seoul', 'YYYY-MM-DD"T"HH24:MI:SS') from payment where reservation_id = $1::bigint`, id))
	got = detail(t, admin, id)
	ttl(t, &got, 580, 600)
	equal(t, "waitingForDeposit", got, want)

	d, err := s.Sandbox.Deposit(registered.OrderID)
	delivered(t, d, err)
	var paid map[string]any
	admin.Get("/admin/reservation/"+id).OK(t).Into(t, &paid)
	equal(t, "paid", paid, map[string]any{
		"dataType": "paid", "paidName": "홍길동", "paidMobileNum": "010-1234-5678", "paidEmail": "hong@example.com",
		"paidStartDateTime": wire(start), "paidEndDateTime": wire(start.Add(50 * time.Minute)), "paidBranchEng": "gangnam", "paidBranchKor": "열다 강남점",
		"paidRoom": "1", "paidMachine": "아쿠아 스파 베드 A1", "paidTotalAmount": "30000", "paidMethod": "가상계좌",
		"paidDateTime": only(t, s, `select to_char(paid_at at time zone 'Asia/Seoul', 'YYYYMMDDHH24MI') from reservation where id = $1::bigint`, id),
	})

	// An administrator's hold is beforePaymentTab and lasts five minutes. After its registration it is paid, with the
	// amount 0 and the method 관리자.
	admin.Post("/admin/reservation", holdBody(2, start, time.Hour)).OK(t)
	id = live(t, s, 2)
	got = detail(t, admin, id)
	ttl(t, &got, 280, 300)
	equal(t, "an administrator's hold", got, bookingDetail{
		DataType: "booking", BookingStatus: "beforePaymentTab", BookingBranchEng: "gangnam", BookingBranchKor: "열다 강남점", BookingRoom: "2",
		BookingMachine: "아쿠아 스파 베드 A2", BookingStartDateTime: wire(start), BookingEndDateTime: wire(start.Add(50 * time.Minute)),
	})
	admin.Post("/admin/payment", map[string]any{"reason": "점검"}).OK(t)
	admin.Get("/admin/reservation/"+id).OK(t).Into(t, &paid)
	if paid["paidMethod"] != "관리자" || paid["paidTotalAmount"] != "0" || paid["paidName"] != "" || paid["paidMobileNum"] != "" || paid["paidEmail"] != nil {
		t.Errorf("registered: %v", paid)
	}

	// A partner's reservation has neither an amount nor a method.
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, created_by, created_at)
		select b.id, r.id, 'DONE', 'PARTNER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), '네이버 손님', '010-7777-8888', 'sandbox', $3
		from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = 4`, start, start.Add(time.Hour), start.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	admin.Get("/admin/reservation/"+live(t, s, 4)).OK(t).Into(t, &paid)
	if paid["paidDateTime"] != wire(start.Add(-24*time.Hour)) || paid["paidTotalAmount"] != "0" || paid["paidMethod"] != "" {
		t.Errorf("a partner's: %v", paid)
	}

	// A released or expired hold is not found.
	c.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	id = live(t, s, 3)
	c.Delete("/reservation", nil).OK(t)
	says(t, "released", admin.Get("/admin/reservation/"+id), noReservation)
	c.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	id = live(t, s, 3)
	s.Clock.Advance(10 * time.Minute)
	says(t, "expired", admin.Get("/admin/reservation/"+id), noReservation)

	if looks := only(t, s, `select count(*)::text from audit where action = 'reservation.view' and actor = $1`, "admin:gangnam-manager"); looks == "0" {
		t.Error("the audit log does not name the administrator who read the record")
	}
}

func TestAdminCancel(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	cancel := func(id, status string, body any) servicetest.Answer {
		t.Helper()
		return admin.Delete("/admin/reservation/"+id+"?bookingStatus="+status, body)
	}
	statuses := []string{"beforePaymentTab", "paymentTab", "waitingForDeposit", "paid", "DONE"}
	// onlyAs checks that a cancellation with any status other than the given ones is rejected.
	onlyAs := func(id string, so ...string) {
		t.Helper()
		for _, status := range append([]string{"", "PAID", "canceled", "CANCELED", "WAITING_FOR_DEPOSIT"}, statuses...) {
			is := false
			for _, s := range so {
				is = is || s == status
			}
			if !is {
				says(t, "as "+status, cancel(id, status, nil), wrongStatus)
			}
		}
		says(t, "without a status", admin.Delete("/admin/reservation/"+id, nil), wrongStatus)
	}
	free := func(room int) {
		t.Helper()
		hold(t, s, room, start, time.Hour).OK(t)
	}

	c := s.Client(t)
	c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	id := live(t, s, 1)
	onlyAs(id, "beforePaymentTab")
	if answer := cancel(id, "beforePaymentTab", nil).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	says(t, "again", cancel(id, "beforePaymentTab", nil), noReservation)
	says(t, "its purchase", c.Post("/payment", map[string]any{"amount": 30000, "name": "a", "mobileNum": "010-1234-5678"}), holdExpired)
	free(1)

	confirm := order(t, s, c, 2, start, time.Hour, 25000, "카드")
	id = live(t, s, 2)
	onlyAs(id, "paymentTab")
	cancel(id, "paymentTab", nil).OK(t)
	says(t, "its confirmation", c.Post("/payment/confirm", confirm), holdExpired)
	free(2)

	c.Post("/payment/confirm", order(t, s, c, 3, start, time.Hour, 22000, "가상계좌")).OK(t)
	id = live(t, s, 3)
	onlyAs(id, "waitingForDeposit")
	cancel(id, "waitingForDeposit", nil).OK(t)
	free(3)
	says(t, "what is cancelled already", cancel(id, "waitingForDeposit", nil), wrongStatus)

	c.Post("/payment/confirm", order(t, s, c, 4, start, time.Hour, 20000, "카드")).OK(t)
	id = live(t, s, 4)
	onlyAs(id, "paid", "DONE")
	s.Clock.Advance(2*time.Hour + 45*time.Minute) // the customer's deadline does not bind staff
	cancel(id, "paid", nil).OK(t)
	free(4)

	confirm = order(t, s, c, 5, start, time.Hour, 15000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	d, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	delivered(t, d, err)
	id = live(t, s, 5)
	refuses(t, "no refund account", cancel(id, "paid", nil), "refundReceiveAccountBank", "refundReceiveAccountNumber", "refundReceiveAccountHolderName")
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동"}
	refuses(t, "in the query", admin.Delete("/admin/reservation/"+id+"?bookingStatus=paid&refundReceiveAccountBank=20&refundReceiveAccountNumber=1&refundReceiveAccountHolderName=a", nil), "refundReceiveAccountBank")
	account["reason"] = "guest-request"
	cancel(id, "DONE", account).OK(t)
	why := func(want string) {
		t.Helper()
		if reason := only(t, s, `select detail ->> 'reason' from audit where action = 'reservation.cancel' and target = $1`, id); reason != want {
			t.Errorf("the audit log has the reason %q, want %q", reason, want)
		}
	}
	why("guest-request")
	free(5)

	register(t, admin, 6, start)
	id = live(t, s, 6)
	onlyAs(id, "paid", "DONE")
	cancel(id, "paid", nil).OK(t)
	free(6)

	// While the provider is closing the account, the reservation is still waiting for its deposit.
	later := start.Add(6 * time.Hour)
	c.Post("/payment/confirm", order(t, s, c, 1, later, time.Hour, 30000, "가상계좌")).OK(t)
	id = reservationAt(t, s, 1, later)
	for _, target := range []sandbox.FaultTarget{sandbox.TargetCancel, sandbox.TargetGet} {
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: target, Kind: sandbox.FaultError, Status: 500, Times: -1}); err != nil {
			t.Fatal(err)
		}
	}
	says(t, "unknown outcome", cancel(id, "waitingForDeposit", nil), paymentPending)
	var look v1
	c.Get("/reservations?"+hourOf("gangnam", later)).OK(t).Into(t, &look)
	equal(t, "booking", look.Booking, slots(1, later, later.Add(time.Hour)))
	equal(t, "paid", look.Paid, []string{})
	if d := detail(t, admin, id); d.BookingStatus != "waitingForDeposit" {
		t.Errorf("detail %+v", d)
	}
	s.Sandbox.ClearFaults()

	says(t, "unknown", cancel("999999", "paid", nil), noReservation)
	if ledger := s.Sandbox.Ledger(); ledger.Refunded != 20000+15000 {
		t.Errorf("refunded %d won", ledger.Refunded)
	}
	if deeds := only(t, s, `
		select count(*)::text from audit a join branch b on b.id = a.branch_id
		where a.action = 'reservation.cancel' and a.actor = $1 and b.code = 'gangnam'`, "admin:gangnam-manager"); deeds != "7" {
		t.Errorf("%s of 7 cancellations are in the audit log", deeds)
	}
}
