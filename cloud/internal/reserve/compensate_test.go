package reserve_test

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// stay buys a stay that has begun: the clock moves past its start.
func (s *shop) stay(t *testing.T, method string) (order string, id int64) {
	t.Helper()
	_, confirm, id := s.paid(t, method)
	s.Clock.Advance(s.start(t, id).Add(time.Minute).Sub(s.Clock.Now()))
	return confirm.OrderID, id
}

// inOneMonth moves the clock forward if another month begins within a day, in which a limit per month counts from zero.
func (s *shop) inOneMonth() {
	now := s.Clock.Now().In(booking.DefaultBranch().Zone)
	if now.Add(24*time.Hour).Month() != now.Month() {
		s.Clock.Advance(24 * time.Hour)
	}
}

// press records the result of a press as the agent reported it.
func (s *shop) press(t *testing.T, id int64, kind, state, outcome string) {
	t.Helper()
	s.Clock.Advance(time.Second)
	s.exec(t, `
		insert into door_request (id, branch_id, reservation_id, requested_by, kind, device, devices, state, created_at, granted_at, finished_at, outcomes)
		select $1, r.branch_id, r.id, 'customer', $3, d.device, array[d.device], $4, $5, $5, $5, jsonb_build_object(d.device, jsonb_build_object('outcome', $6::text))
		from reservation r join room m on m.id = r.room_id,
		     lateral (select case when $3 = 'room' then 'room_' || m.no else 'front_1' end as device) d
		where r.id = $2`, uuid.New(), id, kind, state, s.Clock.Now(), outcome)
}

func (s *shop) compensating(t *testing.T, settings string) {
	t.Helper()
	s.exec(t, `update branch set compensation = nullif($1::jsonb, 'null'::jsonb) where code = 'gangnam'`, settings)
}

// A guest whose door does not open gets money after the branch's delay, once, and stays.
func TestStuckDoorIsRefundedOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":3,"wonPerMinute":200}`)
	order, id := s.stay(t, sandbox.MethodCard)
	s.press(t, id, "room", "FAILED", "failed")
	replica := s.Replica(t)
	if err := replica.Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from compensation`); n != 0 {
		t.Fatal("compensated before the delay")
	}
	s.Clock.Advance(3 * time.Minute)
	if err := together(6, func(int) error { return s.Replica(t).Compensate(s.ctx) }); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
	s.wantState(t, order, "DONE")
	if n := s.count(t, `select coalesce(sum(amount), 0)::int from refund where reservation_id = $1`, id); n != 800 && n != 600 {
		t.Errorf("refunded %d won, want 200 for each minute", n)
	}
	s.press(t, id, "room", "FAILED", "failed")
	s.Clock.Advance(10 * time.Minute)
	if err := replica.Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from refund where reservation_id = $1`, id); n != 1 {
		t.Errorf("%d refunds, want 1", n)
	}
}

// The stay becomes longer if the next slots are free; otherwise, with another guest behind, money is returned.
func TestStuckDoorExtendsTheStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":2,"extendFirst":true,"wonPerMinute":300,"fullAfterMinutes":30}`)
	for _, taken := range []bool{false, true} {
		_, id := s.stay(t, sandbox.MethodCard)
		if taken {
			s.exec(t, `
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method)
				select branch_id, room_id, 'DONE', 'ADMIN', end_at + interval '10 minutes', end_at + interval '30 minutes',
				       tstzrange(end_at + interval '10 minutes', end_at + interval '40 minutes'), '관리자' from reservation where id = $1`, id)
		}
		key := s.key(t, id)
		var before time.Time
		if err := s.DB.Pool.QueryRow(s.ctx, `select end_at from reservation where id = $1`, id).Scan(&before); err != nil {
			t.Fatal(err)
		}
		s.press(t, id, "front", "FAILED", "failed")
		s.Clock.Advance(2*time.Minute + time.Second)
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		var end time.Time
		if err := s.DB.Pool.QueryRow(s.ctx, `select end_at from reservation where id = $1`, id).Scan(&end); err != nil {
			t.Fatal(err)
		}
		refunds := s.count(t, `select count(*) from refund where reservation_id = $1`, id)
		if longer := end.Sub(before); taken && (longer != 0 || refunds != 1) || !taken && (longer != 10*time.Minute || refunds != 0) {
			t.Errorf("next slot taken %t: longer by %s, %d refunds", taken, longer, refunds)
		}
		if got := s.key(t, id); got != key {
			t.Errorf("key %q, want %q", got, key)
		}
		s.refundsDone(t, id)
		for template, want := range map[string]bool{"stay-compensated": !taken, "reservation-moved": false} {
			if n := s.count(t, `select count(*) from message where template = $2 and reservation_id = $1`, id, template); (n == 1) != want {
				t.Errorf("next slot taken %t: %d messages %s, want one %t", taken, n, template, want)
			}
		}
	}
}

// A guest who got in by any means, or whose failure the agent did not report, gets nothing.
func TestNoCompensationAfterAnEntry(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":1,"wonPerMinute":100}`)
	entries := map[string]func(id int64){
		"opened later":    func(id int64) { s.press(t, id, "room", "SUCCESS", "opened") },
		"outcome unknown": func(id int64) { s.press(t, id, "room", "UNKNOWN", "") },
		"by PIN": func(id int64) {
			s.exec(t, `
				insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
				select a.username, 'j', r.id, r.branch_id, r.id, 'room_' || m.no, $2, 'opened', '', 'pin', '', '', $2
				from reservation r join room m on m.id = r.room_id join agent_credential a on a.branch_id = r.branch_id
				where r.id = $1 limit 1`, id, s.Clock.Now().Add(time.Second))
		},
		"opened by staff": func(id int64) {
			s.press(t, id, "room", "SUCCESS", "opened")
			s.exec(t, `update door_request set reservation_id = null, requested_by = 'admin:hq' where reservation_id = $1 and state = 'SUCCESS'`, id)
		},
		"the contact opened": func(id int64) {
			s.exec(t, `
				insert into door_event (branch_id, device, kind, at) select r.branch_id, 'room_' || m.no, 'door-opened', $2
				from reservation r join room m on m.id = r.room_id where r.id = $1`, id, s.Clock.Now().Add(time.Second))
		},
	}
	for name, enter := range entries {
		_, id := s.stay(t, sandbox.MethodCard)
		s.press(t, id, "room", "FAILED", "failed")
		enter(id)
		s.Clock.Advance(5 * time.Minute)
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		if n := s.count(t, `select count(*) from compensation where reservation_id = $1`, id); n != 0 {
			t.Errorf("%s: compensated", name)
		}
	}
	_, id := s.stay(t, sandbox.MethodCard)
	s.press(t, id, "room", "FAILED", "dropped")
	s.Clock.Advance(5 * time.Minute)
	if err := s.Replica(t).Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from compensation where reservation_id = $1`, id); n != 0 {
		t.Error("compensated without a failure that the agent reported")
	}
}

// A press for the front drives two front doors, of which one is broken. If the room has no lock, the guest has entered through the other one; if it
// has one, a press for the room would show it.
func TestNoCompensationAfterTheOtherFrontDoor(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":1,"wonPerMinute":100}`)
	for _, test := range []struct {
		lock, other string
		by          string // who presses
		want        int
	}{
		{"none", "opened", "guest", 0},
		{"none", "opened", "staff", 0},
		{"none", "unknown", "guest", 0},
		{"none", "failed", "guest", 1},
		{"fitted", "opened", "guest", 1},
	} {
		_, id := s.stay(t, sandbox.MethodCard)
		s.exec(t, `update room set lock = $2 where id = (select room_id from reservation where id = $1)`, id, test.lock)
		if test.by == "staff" {
			s.press(t, id, "front", "FAILED", "failed")
		}
		s.press(t, id, "front", "FAILED", "failed")
		s.exec(t, `
			update door_request set device = 'front', devices = '{front_1,front_2}', outcomes = outcomes || jsonb_build_object('front_2', jsonb_build_object('outcome', $2::text)),
			       reservation_id = case when $3 then reservation_id end
			where id = (select id from door_request where reservation_id = $1 order by created_at desc limit 1)`, id, test.other, test.by == "guest")
		s.Clock.Advance(5 * time.Minute)
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		if n := s.count(t, `select count(*) from compensation where reservation_id = $1`, id); n != test.want {
			t.Errorf("%+v: got %d compensations", test, n)
		}
	}
}

// While the branch is offline, its guests enter by PIN, and the entries arrive with the connection. Nothing is returned until then.
func TestCompensationWaitsForTheJournal(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":1,"wonPerMinute":100}`)
	_, id := s.stay(t, sandbox.MethodCard)
	s.press(t, id, "room", "FAILED", "failed")
	online := func(is bool) {
		t.Helper()
		s.exec(t, `
			insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory, presence_since)
			select id, '1', $2, $2, $1, '{}', $2 from branch where code = 'gangnam'
			on conflict (branch_id) do update set online = $1, presence_since = $2`, is, s.Clock.Now())
	}
	compensated := func() int {
		t.Helper()
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		return s.count(t, `select count(*) from compensation where reservation_id = $1`, id)
	}
	online(false)
	s.Clock.Advance(time.Second)
	entered := s.Clock.Now()
	s.Clock.Advance(5 * time.Minute)
	if compensated() != 0 {
		t.Error("compensated while the branch was offline")
	}
	online(true)
	s.Clock.Advance(time.Second)
	if compensated() != 0 {
		t.Error("compensated before the agent had reported its journal")
	}
	s.exec(t, `
		insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
		select a.username, 'j', r.id, r.branch_id, r.id, 'room_' || m.no, $2, 'opened', '', 'pin', '', '', $3
		from reservation r join room m on m.id = r.room_id join agent_credential a on a.branch_id = r.branch_id
		where r.id = $1 limit 1`, id, entered, s.Clock.Now())
	s.Clock.Advance(2 * time.Minute)
	if compensated() != 0 {
		t.Error("compensated although the guest was inside")
	}
}

// A phone number gets at most so many compensations in a month.
func TestCompensationLimitPerPhone(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.inOneMonth()
	s.compensating(t, `{"afterMinutes":1,"wonPerMinute":100,"perPhonePerMonth":1}`)
	for i := range 3 {
		_, id := s.stay(t, sandbox.MethodCard)
		s.exec(t, `update reservation set mobile = '010-9999-0000' where id = $1`, id)
		s.press(t, id, "room", "FAILED", "failed")
		s.Clock.Advance(2 * time.Minute)
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.refundsDone(t, id)
		if n := s.count(t, `select count(*) from refund where reservation_id = $1`, id); (n == 1) != (i == 0) {
			t.Errorf("stay %d: %d refunds", i, n)
		}
	}
}

// stuckTransfer compensates a stay that was paid by bank transfer, so that its refund needs the guest's account.
func (s *shop) stuckTransfer(t *testing.T) (order string, id int64) {
	t.Helper()
	s.compensating(t, `{"afterMinutes":1,"wonPerMinute":500}`)
	order, id = s.stay(t, sandbox.MethodVirtualAccount)
	s.press(t, id, "room", "FAILED", "failed")
	s.Clock.Advance(2 * time.Minute)
	if err := s.Replica(t).Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	return order, id
}

// A refund that needs the guest's account: the link in the message works once.
func TestRefundLink(t *testing.T) {
	t.Parallel()
	s := open(t)
	order, id := s.stuckTransfer(t)
	token := s.refundToken(t, id)
	b := s.buyer()
	reply, err := b.Do(s.ctx, "GET", "/v2/refund-accounts/"+token, nil)
	if err != nil || reply.HTTP != 200 || !strings.Contains(reply.Raw, `"expiresAt"`) {
		t.Fatalf("%v %s", err, reply.Raw)
	}
	account := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	for name, bad := range map[string]map[string]string{
		"no bank": {"refundAccount": "1", "refundHolder": "a"}, "unknown bank": {"refundBankCode": "00", "refundAccount": "1", "refundHolder": "a"},
		"letters": {"refundBankCode": "20", "refundAccount": "x", "refundHolder": "a"}, "nothing": {},
	} {
		if reply, err := b.Post(s.ctx, "/v2/refund-accounts/"+token, bad); err != nil || reply.HTTP != 400 {
			t.Errorf("%s: %v %s", name, err, reply.Raw)
		}
	}
	statuses := make([]int, 8)
	err = together(len(statuses), func(i int) error {
		reply, err := s.buyer().Post(s.ctx, "/v2/refund-accounts/"+token, account)
		statuses[i] = reply.HTTP
		return err
	})
	if count := fmt.Sprint(statuses); err != nil || strings.Count(count, "200") != 1 || strings.Count(count, "404") != 7 {
		t.Errorf("%v %v, want one 200 and seven 404", err, statuses)
	}
	s.refundsDone(t, id)
	s.wantState(t, order, "DONE")
	if reply, err := b.Do(s.ctx, "GET", "/v2/refund-accounts/"+token, nil); err != nil || reply.HTTP != 404 {
		t.Errorf("used: %v %s", err, reply.Raw)
	}
	if n := s.count(t, `select count(*) from refund_link where token_hash = $1`, []byte(token)); n != 0 {
		t.Error("the token is stored in the clear")
	}
	if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Error(err)
	}
}

// After a correction of the contact only the new one has a refund link that works.
func TestRefundLinkFollowsTheContact(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, id := s.stuckTransfer(t)
	wrong := s.refundToken(t, id)
	right := "010-9999-8888"
	by := account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "hq", Role: account.HQ}
	if err := s.Replica(t).CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(id), Mobile: &right, Reason: "wrong number", By: by}); err != nil {
		t.Fatal(err)
	}
	fresh := s.refundToken(t, id)
	for token, status := range map[string]int{wrong: 404, fresh: 200} {
		if reply, err := s.buyer().Do(s.ctx, "GET", "/v2/refund-accounts/"+token, nil); err != nil || reply.HTTP != status {
			t.Errorf("%v %s, want %d", err, reply.Raw, status)
		}
	}
	body := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	for i, token := range []string{wrong, fresh} {
		if reply, err := s.buyer().Post(s.ctx, "/v2/refund-accounts/"+token, body); err != nil || reply.HTTP != []int{404, 200}[i] {
			t.Errorf("%v %s", err, reply.Raw)
		}
	}
	s.refundsDone(t, id)
}

// refundToken waits for the message with a refund link and returns its token.
func (s *shop) refundToken(t *testing.T, id int64) (token string) {
	t.Helper()
	var mobile string
	if err := s.DB.Pool.QueryRow(s.ctx, `select mobile from reservation where id = $1`, id).Scan(&mobile); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "a message with a refund link", func() bool {
		for _, m := range s.Sandbox.Messages(mobile) {
			if m.Template == "refund-account" {
				link, err := url.Parse(m.Variables["link"])
				token = path.Base(link.Path)
				return err == nil
			}
		}
		return false
	})
	return token
}

// The time without entry counts until the end of the whole stay, which a paid extension has moved.
func TestStuckDoorOfExtendedStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":3,"wonPerMinute":100}`)
	for name, c := range map[string]struct {
		failedAt time.Duration // after the end of the payment of the stay
		asked    time.Duration // after the failure
		want     int
	}{
		"during the extension":  {5 * time.Minute, 3 * time.Minute, 300},
		"across the extension":  {-2 * time.Minute, 10 * time.Minute, 1000},
		"until the stay's end":  {25 * time.Minute, 10 * time.Minute, 500},
		"before the stay's end": {-20 * time.Minute, 5 * time.Minute, 500},
	} {
		g := s.guest(t, sandbox.MethodCard)
		g.extend(t, s, g.end().Add(30*time.Minute))
		s.Clock.Stop(g.end().Add(c.failedAt - time.Second)) // the press advances the clock by a second
		s.press(t, g.id, "room", "FAILED", "failed")
		s.Clock.Advance(c.asked)
		if err := s.Replica(t).Compensate(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.refundsDone(t, g.id)
		if won := s.count(t, `select coalesce(sum(amount), 0)::int from refund where reservation_id = $1`, g.id); won != c.want {
			t.Errorf("%s: refunded %d won, want %d", name, won, c.want)
		}
	}
}

// A compensation that exceeds the first payment continues with those of the extensions, each by its own method.
func TestStuckDoorReturnsExtensions(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct{ settings, method string }{
		"everything": {`{"afterMinutes":3,"fullAfterMinutes":3}`, sandbox.MethodCard},
		"by minutes": {`{"afterMinutes":3,"wonPerMinute":90000}`, sandbox.MethodCard},
		"by deposit": {`{"afterMinutes":3,"fullAfterMinutes":3}`, sandbox.MethodVirtualAccount},
	} {
		s.compensating(t, c.settings)
		g := s.guest(t, sandbox.MethodCard)
		order := g.hold(t, s, g.end().Add(30*time.Minute))
		s.pay(t, g.Buyer, order, c.method)
		if c.method == sandbox.MethodVirtualAccount {
			s.deposit(t, order.OrderID)
		}
		extension := s.wantState(t, order.OrderID, "DONE")
		s.Clock.Advance(g.wish.Start.Sub(s.Clock.Now()))
		s.press(t, g.id, "room", "FAILED", "failed")
		s.Clock.Advance(3 * time.Minute)
		if err := together(3, func(int) error { return s.Replica(t).Compensate(s.ctx) }); err != nil {
			t.Fatal(err)
		}
		if c.method == sandbox.MethodVirtualAccount {
			if err := s.Replica(t).EnterRefundAccount(s.ctx, s.refundToken(t, extension), guestAccount); err != nil {
				t.Fatal(err)
			}
		}
		for id, won := range map[int64]int{g.id: g.order.Amount, extension: order.Amount} {
			s.refundsDone(t, id)
			if got := s.count(t, `select coalesce(sum(amount), 0)::int from refund where reservation_id = $1`, id); got != won {
				t.Errorf("%s: refunded %d won of reservation %d, want %d", name, got, id, won)
			}
			if n := s.count(t, `select count(*) from reservation where id = $1 and state = 'DONE'`, id); n != 1 {
				t.Errorf("%s: reservation %d has ended", name, id)
			}
		}
		if got := s.count(t, `select amount from compensation where reservation_id = $1`, g.id); got != g.order.Amount+order.Amount {
			t.Errorf("%s: compensated with %d won, want %d", name, got, g.order.Amount+order.Amount)
		}
	}
	s.balanced(t)
}

// A link that has expired accepts no account. A corrected contact receives another one, and an administrator can enter the account.
func TestExpiredRefundLink(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, id := s.stuckTransfer(t)
	token := s.refundToken(t, id)
	path := "/v2/refund-accounts/" + token
	body := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	var expires time.Time
	if err := s.DB.Pool.QueryRow(s.ctx, `select expires_at from refund_link order by expires_at desc limit $1`, 1).Scan(&expires); err != nil {
		t.Fatal(err)
	}
	s.Clock.Stop(expires.Add(-time.Second))
	if reply, err := s.buyer().Do(s.ctx, "GET", path, nil); err != nil || reply.HTTP != 200 {
		t.Fatalf("a second before: %v %s", err, reply.Raw)
	}
	s.Clock.Stop(expires)
	for method, content := range map[string]any{"GET": nil, "POST": body} {
		if reply, err := s.buyer().Do(s.ctx, method, path, content); err != nil || reply.HTTP != 404 {
			t.Errorf("%s: %v %s, want 404", method, err, reply.Raw)
		}
	}
	if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
}

// An expired link is replaced when the contact is corrected.
func TestExpiredRefundLinkIsReplaced(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, id := s.stuckTransfer(t)
	s.Clock.Advance(15 * 24 * time.Hour)
	right := "010-9999-7777"
	if err := s.Replica(t).CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(id), Mobile: &right, Reason: "wrong number", By: hq}); err != nil {
		t.Fatal(err)
	}
	if err := s.Replica(t).EnterRefundAccount(s.ctx, s.refundToken(t, id), guestAccount); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
}

// A corrected contact of a stay holds for its extensions: the previous contact has no link that works.
func TestContactOfExtensionIsCorrected(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":3,"fullAfterMinutes":3}`)
	g := s.guest(t, sandbox.MethodCard)
	order := g.hold(t, s, g.end().Add(30*time.Minute))
	s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
	s.deposit(t, order.OrderID)
	extension := s.wantState(t, order.OrderID, "DONE")
	s.Clock.Advance(g.wish.Start.Sub(s.Clock.Now()))
	s.press(t, g.id, "room", "FAILED", "failed")
	s.Clock.Advance(3 * time.Minute)
	if err := s.Replica(t).Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	wrong, right := s.refundToken(t, extension), "010-9999-6666"
	if err := s.Replica(t).CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(g.id), Mobile: &right, Reason: "wrong number", By: hq}); err != nil {
		t.Fatal(err)
	}
	if err := s.Replica(t).EnterRefundAccount(s.ctx, wrong, guestAccount); !errors.Is(err, reserve.ErrNoRefundLink) {
		t.Fatalf("the link of the previous contact: %v, want %v", err, reserve.ErrNoRefundLink)
	}
	if n := s.count(t, `select count(*) from reservation where (id = $1 or extends = $1) and mobile is distinct from '010-9999-6666'`, g.id); n != 0 {
		t.Fatalf("%d reservations of the stay have the previous contact, want none", n)
	}
	if err := s.Replica(t).EnterRefundAccount(s.ctx, s.refundToken(t, extension), guestAccount); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, extension)
}

// TestNoTimeAfterAnEarlyEnd: a guest who could not enter and has ended the stay has left, so money is returned and the stay gets no longer.
func TestNoTimeAfterAnEarlyEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.compensating(t, `{"afterMinutes":3,"extendFirst":true,"wonPerMinute":300}`)
	_, id := s.stay(t, sandbox.MethodCard)
	s.Clock.Stop(s.start(t, id).Add(time.Minute))
	s.press(t, id, "room", "FAILED", "failed")
	ended, err := s.Replica(t).EndStay(s.ctx, booking.ReservationID(id))
	if err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(3*time.Minute + time.Second)
	if err := s.Replica(t).Compensate(s.ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from reservation where id = $1 and end_at = $2`, id, ended.FreedFrom); n != 1 {
		t.Error("the stay that the guest has ended is longer")
	}
	if n := s.count(t, `select count(*) from compensation where reservation_id = $1 and kind = 'refunded' and amount > 0`, id); n != 1 {
		t.Error("the guest received no money")
	}
}
