package httpapi_test

import (
	"fmt"
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

// live is the id of the live reservation of a room.
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

	// An administrator's hold is beforePaymentTab, with five minutes; registered it is paid, by 관리자, for nothing.
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

	// What is over is not found any more.
	c.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	id = live(t, s, 3)
	c.Delete("/reservation", nil).OK(t)
	says(t, "released", admin.Get("/admin/reservation/"+id), noReservation)
	c.Post("/reservation", holdBody(3, start, time.Hour)).OK(t)
	id = live(t, s, 3)
	s.Clock.Advance(10 * time.Minute)
	says(t, "expired", admin.Get("/admin/reservation/"+id), noReservation)

	if looks := only(t, s, `select count(*)::text from audit where action = 'reservation.view' and actor = $1`, "admin:gangnam-manager"); looks == "0" {
		t.Error("nobody wrote down who looked")
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
	// Every status but those that are so is refused, and changes nothing.
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
	cancel(id, "DONE", account).OK(t)
	free(5)

	register(t, admin, 6, start)
	id = live(t, s, 6)
	onlyAs(id, "paid", "DONE")
	cancel(id, "paid", nil).OK(t)
	free(6)

	// While an account is being closed it counts as waiting for its deposit.
	later := start.Add(6 * time.Hour)
	c.Post("/payment/confirm", order(t, s, c, 1, later, time.Hour, 30000, "가상계좌")).OK(t)
	id = reservationAt(t, s, 1, later)
	for _, target := range []sandbox.FaultTarget{sandbox.TargetCancel, sandbox.TargetGet} {
		if err := s.Sandbox.SetFault(sandbox.Fault{Target: target, Kind: sandbox.FaultError, Status: 500, Times: -1}); err != nil {
			t.Fatal(err)
		}
	}
	says(t, "nobody knows", cancel(id, "waitingForDeposit", nil), paymentPending)
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

func TestMove(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t)) // room 1 is paid from start for an hour
	s, admin := c.s, c.Manager
	const minute = time.Minute
	start := slot(s, 3*time.Hour)
	id := live(t, s, 1)
	move := func(room int, from, length time.Duration) servicetest.Answer {
		t.Helper()
		return admin.Put("/admin/reservation/"+id, map[string]any{
			"room": fmt.Sprint(room), "startDateTime": wire(start.Add(from)), "endDateTime": wire(start.Add(from + length)), "reason": "고객 요청",
		})
	}
	// In the way: in room 2 a paid one, in room 3 a hold, room 5 is off.
	register(t, admin, 2, start)
	hold(t, s, 3, start, time.Hour).OK(t)
	admin.Patch("/admin/machines/gangnam/5", map[string]bool{"enabled": false}).OK(t)
	says(t, "taken", move(2, 0, time.Hour), taken)
	says(t, "into a margin", move(2, 60*minute, time.Hour), taken)
	says(t, "held", move(3, 30*minute, time.Hour), held)
	says(t, "disabled", move(5, 0, time.Hour), roomDisabled)
	says(t, "unknown room", move(7, 0, time.Hour), reply{404, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."})
	says(t, "over 5 hours", move(4, 0, 5*time.Hour+10*minute), tooLong)
	refuses(t, "the past", move(4, -4*time.Hour, time.Hour), "startDateTime")
	refuses(t, "backwards", move(4, 0, -time.Hour), "endDateTime")
	says(t, "unknown", admin.Put("/admin/reservation/999999", map[string]any{"room": "4", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour))}), noReservation)
	if moves := only(t, s, `select count(*)::text from reservation_move where $1`, true); moves != "0" {
		t.Errorf("%s refused moves were made", moves)
	}

	if answer := move(4, 0, 5*time.Hour).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	hold(t, s, 1, start, time.Hour).OK(t) // its old place is free
	says(t, "its new place", hold(t, s, 4, start.Add(4*time.Hour), time.Hour), taken)
	move(4, 10*minute, 20*minute).OK(t) // over itself
	move(2, 70*minute, time.Hour).OK(t) // next to another's margin
	var paid map[string]any
	admin.Get("/admin/reservation/"+id).OK(t).Into(t, &paid)
	if paid["paidTotalAmount"] != "30000" || paid["paidRoom"] != "2" || paid["paidStartDateTime"] != wire(start.Add(70*minute)) || paid["paidEndDateTime"] != wire(start.Add(120*minute)) {
		t.Errorf("moved: %v", paid)
	}
	move(1, 90*minute, 10*minute).OK(t)

	// Someone who looked before another change is told so; who says nothing of it is not.
	version := 0
	if err := s.DB.Pool.QueryRow(t.Context(), `select version from reservation where id = $1::bigint`, id).Scan(&version); err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"room": "4", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour)), "version": version - 1}
	says(t, "stale", admin.Put("/admin/reservation/"+id, body), reply{409, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."})
	body["version"] = version
	admin.Put("/admin/reservation/"+id, body).OK(t)

	holdID := live(t, s, 3)
	answer := admin.Put("/admin/reservation/"+holdID, map[string]any{"room": "6", "startDateTime": wire(start), "endDateTime": wire(start.Add(time.Hour))})
	says(t, "a hold", answer, reply{400, "IllegalArguemntError", "변경할 수 없는 예약입니다."})
	if moves := only(t, s, `select count(*)::text from audit where action = 'reservation.move' and target = $1`, id); moves != "5" {
		t.Errorf("%s of 5 moves are in the audit log", moves)
	}
}

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
		return only(t, s, `select doorlock_key::text from reservation where id = $1::bigint`, live(t, s, room))
	}
	contact := map[string]any{"name": "홍길동", "mobileNum": "010-5555-6666"}
	reserve(1, contact)
	contact["notify"] = false
	reserve(2, contact)
	contact["notify"] = true
	key := reserve(3, contact)
	reserve(4, map[string]any{"notify": true}) // nobody to tell
	reserve(5, nil)                            // no body at all
	mailed := reserve(6, map[string]any{"email": "guest@example.com", "notify": true})
	awaitMessage(t, s, "01055556666", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == key })
	awaitMessage(t, s, "guest@example.com", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == mailed })
	if messages := s.Sandbox.Messages("01055556666"); len(messages) != 1 {
		t.Errorf("%d messages for one that was wanted", len(messages))
	}
	// Members find it among their reservations.
	c := login(t, s, "01055556666", 1)
	var records []paymentRecord
	c.Get("/my-reservations").OK(t).Into(t, &records)
	if len(records) != 3 || records[0].Method != "관리자" || records[0].Amount != 0 || records[0].Status != "DONE" {
		t.Errorf("records %+v", records)
	}
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
	admin.Post("/admin/v2/virtual-accounts", body).OK(t).Into(t, &data) // the hold was kept
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

	// Nobody knows whether it was issued: it is found out.
	admin.Post("/admin/reservation", holdBody(3, start, time.Hour)).OK(t)
	for _, f := range []sandbox.Fault{
		{Target: sandbox.TargetVirtualAccounts, Kind: sandbox.FaultDropAfterCommit}, {Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: -1},
	} {
		if err := s.Sandbox.SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	says(t, "unclear", admin.Post("/admin/v2/virtual-accounts", body), paymentPending)
	s.Sandbox.ClearFaults()
	s.Clock.Advance(time.Minute)
	for deadline := time.Now().Add(20 * time.Second); detail(t, admin, live(t, s, 3)).BookingStatus != "waitingForDeposit"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not found out")
		}
	}

	// Without a deposit it is cancelled after ten minutes.
	admin.Post("/admin/reservation", holdBody(2, start, time.Hour)).OK(t)
	admin.Post("/admin/v2/virtual-accounts", body).OK(t)
	s.Clock.Advance(10*time.Minute + time.Second)
	for deadline := time.Now().Add(20 * time.Second); hold(t, s, 2, start, time.Hour).HTTP != 200; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the slot is not free")
		}
	}
}

type conflict struct{ Type, Status, StatusDescription, Room, Name, MobileNum, StartTime, EndTime, OrderID string }

// A room is switched off only when nothing that is still to come, or goes on, is reserved in it.
func TestSwitchRoom(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := slot(s, 3*time.Hour)
	after := func(i int) time.Time { return start.Add(time.Duration(i) * 2 * time.Hour) }
	turn := func(room int, on bool) servicetest.Answer {
		return admin.Patch(fmt.Sprintf("/admin/machines/gangnam/%d", room), map[string]bool{"enabled": on})
	}
	// All five types in room 1, in order of time.
	partner := func(state string, from time.Time, name string) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, created_by, amount)
			select b.id, r.id, $1, 'PARTNER', $2, $3, tstzrange($2, $3::timestamptz + interval '10 minutes'), $4, '010-7777-8888', 'sandbox', 0
			from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = 1`, state, from, from.Add(time.Hour), name); err != nil {
			t.Fatal(err)
		}
	}
	partner("DONE", start.Add(-24*time.Hour), "어제") // over
	partner("CANCELED", after(0), "취소")
	c := s.Client(t)
	c.Post("/payment/confirm", order(t, s, c, 1, after(0), time.Hour, 30000, "카드")).OK(t)
	c.Post("/payment/confirm", order(t, s, c, 1, after(1), time.Hour, 30000, "가상계좌")).OK(t)
	hold(t, s, 1, after(2), time.Hour).OK(t)
	order(t, s, s.Client(t), 1, after(3), time.Hour, 30000, "카드")
	register(t, admin, 1, after(4))
	admin.Post("/admin/reservation", holdBody(1, after(5), time.Hour)).OK(t)
	partner("DONE", after(6), "네이버 손님")

	answer := turn(1, false)
	says(t, "off", answer, reply{409, "SettingConflictException", "해당 룸에 예약이 존재하여 비활성화할 수 없습니다."})
	var data struct{ Conflicts []conflict }
	answer.Into(t, &data)
	period := func(i int) (string, string) {
		const layout = "2006/01/02 15:04"
		return after(i).In(seoul).Format(layout), after(i).Add(time.Hour).In(seoul).Format(layout)
	}
	orderID := func(i int) string {
		return only(t, s, `select coalesce(order_id, '') from reservation where start_at = $1 and state <> 'CANCELED'`, after(i))
	}
	var want []conflict
	for i, w := range []conflict{
		{Type: "PAID", Status: "DONE", StatusDescription: "결제 완료", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "WAITING_DEPOSIT", Status: "WAITING_FOR_DEPOSIT", StatusDescription: "입금 대기", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "BOOKING", Status: "beforePaymentTab", StatusDescription: "예약 진행 중"},
		{Type: "BOOKING", Status: "paymentTab", StatusDescription: "결제 진행 중", Name: "홍길동", MobileNum: "010-1234-5678"},
		{Type: "ADMIN_BOOKING", Status: "DONE", StatusDescription: "관리자 예약", Name: "홍길동", MobileNum: "010-8765-4321"},
		{Type: "ADMIN_BOOKING", Status: "beforePaymentTab", StatusDescription: "관리자 예약 진행 중"},
		{Type: "PARTNER_BOOKING", Status: "CONFIRMED", StatusDescription: "외부 채널 예약", Name: "네이버 손님", MobileNum: "010-7777-8888"},
	} {
		w.Room, w.OrderID = "1", orderID(i)
		w.StartTime, w.EndTime = period(i)
		want = append(want, w)
	}
	equal(t, "conflicts", data.Conflicts, want)
	var slots v1
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "it stays on", slots.DisabledRooms, []string{})

	if answer := turn(6, false).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	turn(6, false).OK(t) // it is off already
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "off", slots.DisabledRooms, []string{"6"})
	says(t, "a disabled room", hold(t, s, 6, start, time.Hour), roomDisabled)
	turn(6, true).OK(t)
	c.Get("/reservations?"+hourOf("gangnam", start)).OK(t).Into(t, &slots)
	equal(t, "on again", slots.DisabledRooms, []string{})
	hold(t, s, 6, start, time.Hour).OK(t)
}
