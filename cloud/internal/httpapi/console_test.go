package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// The head quarters adds administrators, changes what they may do, and keeps them out: at once.
func TestAdministratorsInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const all, secret = "/v2/admin/administrators", "a good long password"
	add := func(id, password, role string, branches ...string) servicetest.Answer {
		return hq.Post(all, map[string]any{"id": id, "password": password, "role": role, "branches": branches})
	}
	add("jamsil-manager", secret, "manager", "jamsil").OK(t)
	add("jamsil-manager", secret, "manager", "jamsil").Fails(t, 409, "ResourceAlreadyExistException", "이미 사용 중인 아이디입니다.")
	add("a-manager", secret, "manager", "busan").Fails(t, 404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다.")
	for what, answer := range map[string]servicetest.Answer{
		"short password": add("a-manager", "short", "manager", "jamsil"), "odd id": add("A Manager", secret, "manager", "jamsil"),
		"odd role": add("a-manager", secret, "owner", "jamsil"), "no branch": add("a-manager", secret, "manager"), "hq with a branch": add("a-manager", secret, "hq", "jamsil"),
	} {
		refuses(t, what, answer)
	}

	jamsil := s.Admin(t, "jamsil-manager", secret)
	rooms := func(branch string) servicetest.Answer {
		return jamsil.Patch("/admin/machines/"+branch+"/1", map[string]bool{"enabled": true})
	}
	rooms("jamsil").OK(t)
	says(t, "another branch", rooms("hongdae"), outOfScope)
	hq.Put(all+"/jamsil-manager", map[string]any{"role": "manager", "branches": []string{"jamsil", "hongdae"}}).OK(t)
	rooms("hongdae").OK(t)
	hq.Put(all+"/jamsil-manager", map[string]any{"role": "viewer", "branches": []string{"jamsil"}}).OK(t)
	says(t, "a viewer", rooms("jamsil"), notAuthorized)
	hq.Patch(all+"/jamsil-manager", map[string]bool{"disabled": true}).OK(t)
	says(t, "kept out", rooms("jamsil"), noSuchSession)
	login := map[string]string{"id": "jamsil-manager", "password": secret}
	jamsil.Post("/admin/login", login).Fails(t, 401, "AuthenticationError", "")
	hq.Patch(all+"/jamsil-manager", map[string]bool{"disabled": false}).OK(t)
	jamsil.Post("/admin/login", login).OK(t)
	hq.Delete(all+"/jamsil-manager/sessions", nil).OK(t)
	says(t, "logged out everywhere", jamsil.Get("/v2/me"), noSuchSession)
	hq.Post(all+"/jamsil-manager/password", map[string]string{"password": secret + "!"}).OK(t)
	jamsil.Post("/admin/login", login).Fails(t, 401, "AuthenticationError", "")

	var list struct {
		Administrators []struct {
			ID, Role       string
			Branches       []string
			Disabled, TOTP bool
		}
	}
	hq.Get(all).OK(t).Into(t, &list)
	i := slices.IndexFunc(list.Administrators, func(a struct {
		ID, Role       string
		Branches       []string
		Disabled, TOTP bool
	}) bool {
		return a.ID == "jamsil-manager"
	})
	if len(list.Administrators) != 3 || i < 0 || list.Administrators[i].Role != "viewer" || !slices.Equal(list.Administrators[i].Branches, []string{"jamsil"}) || list.Administrators[i].Disabled {
		t.Errorf("administrators %+v", list.Administrators)
	}

	nobody := reply{404, "ResourceNotFoundException", "해당 관리자를 찾을 수 없습니다."}
	says(t, "nobody's rights", hq.Put(all+"/nobody", map[string]any{"role": "hq"}), nobody)
	says(t, "nobody", hq.Patch(all+"/nobody", map[string]bool{"disabled": true}), nobody)
	says(t, "nobody's password", hq.Post(all+"/nobody/password", map[string]string{"password": secret}), nobody)
	own := reply{400, "IllegalArguemntError", "자신의 권한은 스스로 바꿀 수 없습니다."}
	says(t, "one's own rights", hq.Put(all+"/hq", map[string]any{"role": "viewer", "branches": []string{"jamsil"}}), own)
	says(t, "oneself", hq.Patch(all+"/hq", map[string]bool{"disabled": true}), own)
	for action, n := range map[string]string{"administrator.add": "1", "administrator.change": "2", "administrator.disable": "1", "administrator.enable": "1"} {
		if got := only(t, s, `select count(*)::text from audit where action = $1 and actor = 'admin:hq'`, action); got != n {
			t.Errorf("%s %s in the audit log, want %s", got, action, n)
		}
	}
}

func TestOwnAccount(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	const me = "/v2/admin/account"
	manager, elsewhere := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "gangnam-manager", "gangnam-demo")
	var account struct {
		TOTP     bool
		Sessions []struct {
			ID      string
			Current bool
		}
	}
	manager.Get(me).OK(t).Into(t, &account)
	if account.TOTP || len(account.Sessions) != 2 {
		t.Fatalf("account %+v", account)
	}
	for _, session := range account.Sessions {
		if !session.Current {
			manager.Delete(me+"/sessions/"+session.ID, nil).OK(t)
		}
	}
	says(t, "the other session", elsewhere.Get("/v2/me"), noSuchSession)

	// A second step: each code once.
	wrong := reply{401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."}
	wrongCode := reply{401, "AuthenticationError", "2단계 인증 번호가 올바르지 않습니다."}
	says(t, "not begun", manager.Put(me+"/totp", map[string]string{"code": "123456"}), reply{400, "IllegalArguemntError", "2단계 인증 설정을 먼저 시작해 주세요."})
	says(t, "without the password", manager.Post(me+"/totp", map[string]string{"password": "guess"}), wrong)
	var step struct{ Secret, URL, QR string }
	manager.Post(me+"/totp", map[string]string{"password": "gangnam-demo"}).OK(t).Into(t, &step)
	if !strings.HasPrefix(step.URL, "otpauth://totp/") || step.QR == "" {
		t.Errorf("step %+v", step)
	}
	code := func() string {
		t.Helper()
		s.Clock.Advance(time.Minute)
		code, err := totp.GenerateCode(step.Secret, s.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	bad := func(code string) string { return string('0'+('9'-code[0])) + code[1:] }
	first := code()
	says(t, "a wrong code", manager.Put(me+"/totp", map[string]string{"code": bad(first)}), wrongCode)
	manager.Put(me+"/totp", map[string]string{"code": first}).OK(t)
	login := map[string]string{"id": "gangnam-manager", "password": "gangnam-demo"}
	says(t, "no code", elsewhere.Post("/admin/login", login), reply{401, "SecondFactorRequired", "2단계 인증 번호를 입력해 주세요."})
	login["code"] = first
	says(t, "a code that was used", elsewhere.Post("/admin/login", login), wrongCode)
	login["code"] = code()
	elsewhere.Post("/admin/login", login).OK(t)
	says(t, "turned off with a wrong code", manager.Delete(me+"/totp", map[string]string{"code": bad(code())}), wrongCode)
	manager.Delete(me+"/totp", map[string]string{"code": code()}).OK(t)
	delete(login, "code")
	elsewhere.Post("/admin/login", login).OK(t)
	manager.Post(me+"/totp", map[string]string{"password": "gangnam-demo"}).OK(t).Into(t, &step)
	manager.Put(me+"/totp", map[string]string{"code": code()}).OK(t)
	s.Admin(t, "hq", "hq-demo").Delete("/v2/admin/administrators/gangnam-manager/totp", nil).OK(t)
	elsewhere.Post("/admin/login", login).OK(t)

	change := func(old, next string) servicetest.Answer {
		return manager.Post(me+"/password", map[string]string{"password": old, "newPassword": next})
	}
	says(t, "not the password", change("guess", "a good long password"), wrong)
	refuses(t, "too short", change("gangnam-demo", "short"))
	change("gangnam-demo", "a good long password").OK(t)
	says(t, "the other session", elsewhere.Get("/v2/me"), noSuchSession)
	manager.Get("/v2/me").OK(t)
	says(t, "the old password", s.Client(t).Post("/admin/login", login), wrong)
	says(t, "no such session", manager.Delete(me+"/sessions/none", nil), reply{404, "ResourceNotFoundException", "해당 세션을 찾을 수 없습니다."})
}

func TestSettingsInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const branch = "/v2/admin/branches/hongdae/"
	read := func() (settings map[string]any) {
		t.Helper()
		hq.Get(branch+"settings").OK(t).Into(t, &settings)
		return settings
	}
	wednesday := someday()
	hold := func(from time.Time, room int) servicetest.Answer {
		body := holdBody(room, from, time.Hour)
		body["branch"] = "hongdae"
		return s.Client(t).Post("/reservation", body)
	}
	refuses(t, "at eight", hold(wednesday.Add(-4*time.Hour), 1), "startDateTime")
	settings, stale := read(), read()
	week := settings["week"].([]any)
	week[wednesday.Weekday()] = map[string]any{"closed": false, "open": []any{map[string]any{"from": "08:00", "to": "24:00"}}, "breaks": []any{}}
	settings["phone"] = "02-1234-5678"
	hq.Put(branch+"settings", settings).OK(t)
	hold(wednesday.Add(-4*time.Hour), 1).OK(t)
	hold(wednesday.Add(3*time.Hour), 1).OK(t) // the break is gone
	says(t, "read before", hq.Put(branch+"settings", stale), reply{409, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."})
	now := read()
	settings["revision"] = now["revision"]
	for name, value := range map[string]any{
		"week": []any{}, "closures": []any{map[string]any{"from": "2026-12-31", "to": "2026-12-30", "reason": ""}}, "bookingHorizonDays": 0,
		"openHolidays": []any{"2026-13-01"}, "removedHolidays": []any{"christmas"}, "extraHolidays": []any{map[string]any{"date": "2026-1-1", "name": "a"}},
		"nameKo": strings.Repeat("가", 101), "address": strings.Repeat("가", 201), "phone": strings.Repeat("1", 31),
	} {
		changed := read()
		changed[name] = value
		refuses(t, name, hq.Put(branch+"settings", changed), name)
	}
	for what, span := range map[string][2]string{"backwards": {"12:00", "11:00"}, "off the grid": {"10:05", "11:00"}, "past the day": {"10:00", "24:10"}, "no time": {"ten", "11:00"}} {
		changed := read()
		changed["week"].([]any)[3].(map[string]any)["open"] = []any{map[string]any{"from": span[0], "to": span[1]}}
		refuses(t, what, hq.Put(branch+"settings", changed), "open")
	}
	if after := read(); after["revision"] != now["revision"] || after["phone"] != "02-1234-5678" {
		t.Errorf("after refusals: %v", after)
	}

	// Prices, and a new room.
	price := func(room string, body map[string]any) servicetest.Answer { return hq.Put(branch+"rooms/"+room, body) }
	price("1", map[string]any{"machine": "새 베드", "grade": "Stella", "min60": 50000}).OK(t)
	price("9", map[string]any{"machine": "큰 베드", "min30": 9000}).OK(t)
	var look v2
	hq.Get("/v2/branches/hongdae/reservations?"+dayOf(wednesday, 1)).OK(t).Into(t, &look)
	if first := look.Rooms[0]; first.RoomNo != "1" || *first.Pricing.Min60 != 50000 || first.Pricing.Min30 != nil || *first.Grade != "Stella" || len(look.Rooms) != 4 {
		t.Errorf("rooms %+v", look.Rooms)
	}
	refuses(t, "too cheap", price("1", map[string]any{"min60": 99}), "price")
	refuses(t, "no grade", price("1", map[string]any{"grade": "Best"}), "grade")
	refuses(t, "no number", price("0", map[string]any{}), "room")

	// Channels.
	channel := map[string]any{"partner": "스페이스달력", "roomNo": "2", "feedUrl": "https://partner.example/2.ics"}
	hq.Post(branch+"channels", channel).OK(t)
	hq.Post(branch+"channels", channel).Fails(t, 409, "ResourceAlreadyExistException", "이미 등록된 채널입니다.")
	channel["feedUrl"] = "http://10.0.0.1/2.ics"
	refuses(t, "not https", hq.Post(branch+"channels", channel), "feedUrl")
	id := read()["channels"].([]any)[0].(map[string]any)["id"].(string)
	hq.Patch(branch+"channels/"+id, map[string]bool{"enabled": false}).OK(t)
	var link struct{ URL string }
	hq.Post(branch+"channels/"+id+"/export", nil).OK(t).Into(t, &link)
	if !strings.Contains(link.URL, "/ical/hongdae/1.ics?token=") {
		t.Errorf("link %s", link.URL)
	}
	if on := read()["channels"].([]any)[0].(map[string]any); on["enabled"] != false || on["hasExport"] != true {
		t.Errorf("channel %v", on)
	}
}

// A refund that the bank could not carry out is sent again, to another account; a difference between the books is closed
// by a person.
func TestMoneyInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	c := s.Client(t)
	start := slot(s, 6*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	d, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	delivered(t, d, err)
	id := live(t, s, 1)
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}); err != nil {
		t.Fatal(err)
	}
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동"}
	manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", account).OK(t)
	type money struct {
		Payments    []struct{ ID, State string }
		Refunds     []struct{ ReservationID, State string }
		Differences []struct {
			ID         string
			ResolvedAt *string
		}
	}
	page := "/v2/admin/branches/gangnam/money?yearMonth=" + s.Clock.Now().In(seoul).Format("2006-01")
	await := func(what string, ok func(money) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			var m money
			manager.Get(page).OK(t).Into(t, &m)
			if ok(m) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, m)
			}
			s.Clock.Advance(5 * time.Second)
		}
	}
	await("failed at the bank", func(m money) bool {
		return len(m.Refunds) == 1 && m.Refunds[0].State == "FAILED" && m.Refunds[0].ReservationID == id
	})
	refuses(t, "half an account", manager.Post("/v2/admin/reservations/"+id+"/refund", map[string]string{"refundReceiveAccountBank": "20"}), "refundReceiveAccountNumber")
	account["refundReceiveAccountNumber"] = "1002999999999"
	if answer := manager.Post("/v2/admin/reservations/"+id+"/refund", account); answer.HTTP != 200 && answer.HTTP != 400 {
		t.Fatalf("sent again: %s", answer.Raw)
	}

	if _, err := s.DB.Pool.Exec(t.Context(), `insert into reconciliation_difference (order_id, kind, detail) values ($1, 'test', '30000 won at the provider, 0 here')`, confirm["orderId"]); err != nil {
		t.Fatal(err)
	}
	difference := only(t, s, `select id::text from reconciliation_difference where kind = $1`, "test")
	await("a difference", func(m money) bool {
		return slices.ContainsFunc(m.Differences, func(d struct {
			ID         string
			ResolvedAt *string
		}) bool {
			return d.ID == difference && d.ResolvedAt == nil
		})
	})
	hq.Post("/v2/admin/differences/"+difference+"/resolution", map[string]string{"resolution": "상점관리자에서 환불함"}).OK(t)
	if note := only(t, s, `select resolution from reconciliation_difference where id = $1::bigint and resolved_at is not null`, difference); note != "상점관리자에서 환불함" {
		t.Errorf("resolution %q", note)
	}
}

// What is kept about one person can be handed over, and taken out of everything that is over.
func TestPersonalData(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest(t, s)
	hq := s.Admin(t, "hq", "hq-demo")
	contact := map[string]string{"contact": "+82 10-1234-5678"}
	var data struct{ Reservations []map[string]any }
	hq.Post("/v2/admin/personal-data/export", contact).OK(t).Into(t, &data)
	if len(data.Reservations) != 1 || data.Reservations[0]["name"] != "홍길동" {
		t.Fatalf("data %+v", data)
	}
	var erased struct{ Reservations, Kept int }
	hq.Post("/v2/admin/personal-data/erase", contact).OK(t).Into(t, &erased)
	equal(t, "still to come", erased, struct{ Reservations, Kept int }{0, 1})
	s.Clock.Advance(48 * time.Hour)
	hq = s.Admin(t, "hq", "hq-demo")
	hq.Post("/v2/admin/personal-data/erase", contact).OK(t).Into(t, &erased)
	equal(t, "over", erased, struct{ Reservations, Kept int }{1, 0})
	hq.Post("/v2/admin/personal-data/export", contact).OK(t).Into(t, &data)
	if len(data.Reservations) != 0 {
		t.Errorf("afterwards %+v", data)
	}
	refuses(t, "not a contact", hq.Post("/v2/admin/personal-data/erase", map[string]string{"contact": "0101"}), "contact")
	if names := only(t, s, `select count(*)::text from reservation where name is not null and $1`, true); names != "0" {
		t.Errorf("%s reservations still have a name", names)
	}
}

// The live connection wants a WebSocket.
func TestLiveNeedsAWebSocket(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	if answer := hq.Get("/v2/admin/live?branch=gangnam&date=2026-11-25"); answer.HTTP != http.StatusBadRequest {
		t.Errorf("without an upgrade: %d", answer.HTTP)
	}
	says(t, "an unknown branch", hq.Get("/v2/admin/live?branch=busan&date=2026-11-25"), noSuchPlace)
}

// A day at a branch in one call, what is found of a reservation, its record, and that looking at it is written down.
func TestDayInTheConsole(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	start := slot(c.s, 3*time.Hour)
	register(t, c.Manager, 2, start.Add(2*time.Hour))
	const branch = "/v2/admin/branches/gangnam/"
	type item struct {
		ID, RoomNo, Start, End, Source, State, BookingStatus string
		Branch                                               string
		Name, MobileNum, Method                              *string
		Amount, Version                                      int
	}
	var day struct {
		Date, Status   string
		Rooms          []struct{ RoomNo string }
		Reservations   []item
		Closed, Breaks []struct{ Start, End string }
	}
	c.Viewer.Get(branch+"timeline?date="+start.In(seoul).Format("2006-01-02")).OK(t).Into(t, &day)
	i := slices.IndexFunc(day.Reservations, func(r item) bool { return r.RoomNo == "1" })
	if i < 0 || len(day.Rooms) != 6 || day.Rooms[0].RoomNo != "1" || len(day.Closed)+len(day.Breaks) != 0 {
		t.Fatalf("day %+v", day)
	}
	first := day.Reservations[i]
	equal(t, "a reservation", first, item{
		ID: live(t, c.s, 1), RoomNo: "1", Start: wire(start), End: wire(start.Add(time.Hour)), Source: "CUSTOMER", State: "DONE", BookingStatus: "paid",
		Name: new("홍길동"), MobileNum: new("010-****-5678"), Method: new("카드"), Amount: 30000, Version: first.Version,
	})

	var found struct{ Reservations []item }
	orderID := only(t, c.s, `select order_id from reservation where id = $1::bigint`, first.ID)
	for _, query := range []string{"홍길", "1234-5678", "5678", orderID, first.ID, "HONG@example.com"} {
		c.Viewer.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &found)
		if !slices.ContainsFunc(found.Reservations, func(r item) bool { return r.ID == first.ID && r.Branch == "gangnam" }) {
			t.Errorf("%q finds %+v", query, found.Reservations)
		}
		c.Other.Get("/v2/admin/reservations?"+url.Values{"query": {query}}.Encode()).OK(t).Into(t, &found)
		if len(found.Reservations) != 0 {
			t.Errorf("%q finds %+v for the manager of another branch", query, found.Reservations)
		}
	}

	var record struct {
		MobileNum, Email, OrderID, KeyLink *string
		Movable, Cancelable                bool
		NeedsRefundAccount                 bool
		History                            []struct{ Kind string }
	}
	answer := c.Viewer.Get("/v2/admin/reservations/" + first.ID).OK(t)
	answer.Into(t, &record)
	key := only(t, c.s, `select doorlock_key::text from reservation where id = $1::bigint`, first.ID)
	if *record.MobileNum != "010-1234-5678" || *record.OrderID != orderID || !strings.HasSuffix(*record.KeyLink, key) ||
		!record.Movable || !record.Cancelable || record.NeedsRefundAccount || record.History[0].Kind != "created" {
		t.Errorf("record %s", answer.Raw)
	}
	says(t, "no record", c.HQ.Get("/v2/admin/reservations/999999"), noReservation)

	var log struct {
		Entries []struct{ Actor, Action, Target string }
	}
	c.Viewer.Get(branch+"audit?action=reservation&actor=gangnam-viewer").OK(t).Into(t, &log)
	if len(log.Entries) != 1 || log.Entries[0].Actor != "admin:gangnam-viewer" || log.Entries[0].Target != first.ID {
		t.Errorf("audit log %+v", log)
	}

	var messages struct {
		Messages []struct{ ID, Template, To, State string }
	}
	c.Manager.Post("/v2/admin/reservations/"+first.ID+"/key-message", nil).OK(t)
	c.Manager.Get(branch+"messages?limit=1").OK(t).Into(t, &messages)
	newest := messages.Messages[0]
	if newest.To != "010-****-5678" || newest.Template != "reservation-confirmed" {
		t.Errorf("messages %+v", messages)
	}
	c.Manager.Get(branch+"messages?before="+newest.ID).OK(t).Into(t, &messages)
	if slices.ContainsFunc(messages.Messages, func(m struct{ ID, Template, To, State string }) bool {
		return m.ID >= newest.ID && len(m.ID) == len(newest.ID)
	}) {
		t.Errorf("before %s: %+v", newest.ID, messages)
	}
	for name, bad := range map[string]string{"before": "0", "limit": "201"} {
		refuses(t, name, c.Manager.Get(branch+"messages?"+name+"="+bad), name)
		refuses(t, name, c.Manager.Get(branch+"audit?"+name+"="+bad), name)
	}
}

// What hangs on a branch: its doors, sensors and agent, also before there is one.
func TestDevicesInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const branch = "/v2/admin/branches/gangnam/"
	var devices struct {
		Online      bool
		Sensors     []string
		Doors       []struct{ Device string }
		Credentials []struct {
			Username  string
			RevokedAt *string
		}
	}
	manager.Get(branch+"devices").OK(t).Into(t, &devices)
	if devices.Online || devices.Sensors == nil || devices.Doors == nil || len(devices.Credentials) != 1 {
		t.Errorf("without an agent: %+v", devices)
	}
	a := connectAgent(t, s, "gangnam", protocol.Inventory{Sensors: []string{"로비"}, Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront}}})
	waitOnline(t, a)
	for deadline := time.Now().Add(10 * time.Second); !devices.Online; time.Sleep(20 * time.Millisecond) {
		manager.Get(branch+"devices").OK(t).Into(t, &devices)
		if time.Now().After(deadline) {
			t.Fatalf("with an agent: %+v", devices)
		}
	}
	equal(t, "sensors", devices.Sensors, []string{"로비"})
	var doors struct {
		Online bool
		Doors  []struct{ Device, Kind string }
	}
	manager.Get(branch+"doors").OK(t).Into(t, &doors)
	if len(doors.Doors) != 8 || doors.Doors[0].Device != "front_1" || doors.Doors[2].Device != "room_1" {
		t.Errorf("doors %+v", doors)
	}
	if err := a.Publish(protocol.Telemetry{Readings: []protocol.Reading{{Location: "로비", Celsius: 21.5, RelativeHumidity: 40}}}); err != nil {
		t.Fatal(err)
	}
	type reading struct {
		At                string
		Celsius, Humidity float64
	}
	var climate struct {
		Sensors []struct {
			Location string
			Latest   *reading
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(climate.Sensors) == 0 || climate.Sensors[0].Latest == nil; time.Sleep(20 * time.Millisecond) {
		manager.Get(branch+"climate").OK(t).Into(t, &climate)
		if time.Now().After(deadline) {
			t.Fatalf("climate %+v", climate)
		}
	}
	var history struct{ Readings []reading }
	manager.Get(branch+"sensors?hours=1&"+url.Values{"location": {"로비"}}.Encode()).OK(t).Into(t, &history)
	if len(history.Readings) != 1 || history.Readings[0].Celsius != 21.5 {
		t.Errorf("history %+v", history)
	}
	refuses(t, "91 days", manager.Get(branch+"sensors?hours=2161&location=a"), "hours")

	manager.Delete("/v2/admin/agents/agent-gangnam", nil).OK(t)
	manager.Get(branch+"devices").OK(t).Into(t, &devices)
	if devices.Credentials[0].RevokedAt == nil {
		t.Error("the credential still stands")
	}
	says(t, "somebody else's agent", manager.Delete("/v2/admin/agents/agent-hongdae", nil), outOfScope)
	manager.Post(branch+"exports", map[string]string{"what": "audit"}).OK(t)
	if n := only(t, s, `select count(*)::text from audit where action in ('agent.revoke', 'export.audit') and $1`, true); n != "2" {
		t.Errorf("%s of 2 deeds are in the audit log", n)
	}
}
