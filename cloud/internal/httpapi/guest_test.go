package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Staff see the stays and notes of their branches. A blocked number can buy nothing until staff end the block; what it has
// bought, and what staff register for it, is not touched.
func TestGuestPage(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id := live(t, c.s, 1)
	path := "/v2/admin/reservations/" + id + "/guest"
	type guestPage struct {
		Name         *string
		MobileNum    string
		Reservations []struct{ ID, Branch string }
		Notes        []struct{ ID, Text, By, Branch string }
		Block        *struct{ Reason, By string }
	}
	show := func(client *servicetest.Client) (g guestPage) {
		t.Helper()
		client.Get(path).OK(t).Into(t, &g)
		return g
	}
	c.FrontDesk.Post(path+"/notes", map[string]string{"text": "창가 룸을 좋아해요"}).OK(t)
	g := show(c.Viewer)
	if g.Name == nil || *g.Name != "홍길동" || strings.ReplaceAll(g.MobileNum, "-", "") != "01012345678" || len(g.Reservations) != 1 || g.Reservations[0].ID != id || g.Reservations[0].Branch != "gangnam" || g.Block != nil {
		t.Fatalf("the guest is %+v", g)
	}
	if len(g.Notes) != 1 || g.Notes[0].Text != "창가 룸을 좋아해요" || g.Notes[0].By != "admin:gangnam-desk" || g.Notes[0].Branch != "gangnam" {
		t.Fatalf("the notes are %+v", g.Notes)
	}
	if seen := only(t, c.s, `select count(*)::text from audit where action = 'guest.view' and target = $1`, id); seen != "1" {
		t.Errorf("%s views are in the audit log, want 1", seen)
	}
	c.Manager.Delete(path+"/notes/"+g.Notes[0].ID, nil).OK(t)
	says(t, "a removed note", c.Manager.Delete(path+"/notes/"+g.Notes[0].ID, nil), reply{404, "ResourceNotFoundException", "해당 메모를 찾을 수 없습니다."})

	c.Manager.Put(path+"/block", map[string]string{"reason": "기물 파손"}).OK(t)
	if g := show(c.Manager); g.Block == nil || g.Block.Reason != "기물 파손" || g.Block.By != "admin:gangnam-manager" || len(g.Notes) != 0 {
		t.Fatalf("after the block: %+v", g)
	}
	buyer := c.s.Client(t)
	start := slot(c.s, 6*time.Hour)
	buyer.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	contact := map[string]any{"amount": 30000, "name": "홍길동", "mobileNum": "+82 10-1234-5678"}
	blocked := reply{403, "AuthorizationError", "이 휴대폰 번호로는 예약할 수 없습니다. 지점에 문의해 주세요."}
	says(t, "a blocked number", buyer.Post("/payment", contact), blocked)
	for _, notation := range []string{"821012345678", "0082 10 1234 5678", "(+82) 10 1234 5678", "10-1234-5678", "０１０－１２３４－５６７８"} {
		contact := map[string]any{"amount": 30000, "name": "홍길동", "mobileNum": notation}
		says(t, "a blocked number as "+notation, buyer.Post("/payment", contact), blocked)
	}
	register(t, c.Manager, 3, start)
	guest, extension := c.s.Client(t), struct{ Amount int }{}
	guest.Post("/v2/keys/"+ownerKey(t, c.s, id)+"/extension", map[string]string{"endDateTime": wire(c.start.Add(2 * time.Hour))}).OK(t).Into(t, &extension)
	guest.Post("/payment", map[string]any{"amount": extension.Amount, "name": "홍길동", "mobileNum": "010-1234-5678"}).OK(t)
	c.Manager.Delete(path+"/block", nil).OK(t)
	buyer.Post("/payment", contact).OK(t)
}

// A manager whose branches were all withdrawn finds neither reservations nor rooms nor guests: no branch is not every branch.
func TestManagerWithoutBranches(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	search := "/v2/admin/reservations?" + url.Values{"query": {"01012345678"}}.Encode()
	rooms := "/v2/admin/reservations?query=gangnam"
	for _, path := range []string{search, rooms} {
		if answer := c.Manager.Get(path).OK(t); !strings.Contains(string(answer.Raw), `"branch":"gangnam"`) {
			t.Fatalf("the manager of gangnam finds nothing with %s: %s", path, answer.Raw)
		}
		if answer := c.HQ.Get(path).OK(t); !strings.Contains(string(answer.Raw), `"branch":"gangnam"`) {
			t.Errorf("the headquarters finds nothing with %s: %s", path, answer.Raw)
		}
	}
	if _, err := c.s.DB.Pool.Exec(t.Context(), `delete from administrator_branch`); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{search, rooms} {
		if answer := c.Manager.Get(path).OK(t); strings.Contains(string(answer.Raw), "gangnam") {
			t.Errorf("without branches, the manager finds with %s: %s", path, answer.Raw)
		}
	}
	c.Manager.Get("/v2/admin/reservations/"+live(t, c.s, 1)+"/guest").Fails(t, http.StatusForbidden, "AuthorizationException", "")
	var me struct{ BranchList []string }
	c.Manager.Get("/v2/me").OK(t).Into(t, &me)
	if me.BranchList == nil || len(me.BranchList) > 0 {
		t.Errorf("branches of the manager %v, want an empty list", me.BranchList)
	}
	c.HQ.Get("/v2/me").OK(t).Into(t, &me)
	if !slices.Equal(me.BranchList, []string{"gangnam", "hongdae", "jamsil"}) {
		t.Errorf("branches of the headquarters: %v", me.BranchList)
	}
}

// A partner's booking has no method of payment. It is a stay of its guest, keeps the notes about the guest, and is shown on its day after it was
// cancelled, as long as it is the one that the partner has reported.
func TestGuestOfAPartner(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	start := someday()
	enter := func(id string, room string) string {
		t.Helper()
		var entered struct{ ID string }
		manager.Post("/v2/admin/branches/gangnam/partner-bookings", map[string]any{
			"partner": "place", "externalId": id, "roomNo": room, "startDateTime": wire(start), "endDateTime": wire(start.Add(5 * time.Hour)), "name": "김민지", "mobileNum": "01088880001",
		}).OK(t).Into(t, &entered)
		return entered.ID
	}
	kept, dropped := enter("p-1", "2"), enter("p-2", "3")
	canceled := func() (ids []string) {
		t.Helper()
		var day struct{ Canceled []struct{ ID string } }
		manager.Get("/v2/admin/branches/gangnam/timeline?date="+start.Format(time.DateOnly)).OK(t).Into(t, &day)
		for _, r := range day.Canceled {
			ids = append(ids, r.ID)
		}
		return ids
	}
	check := func(when string, want ...string) {
		t.Helper()
		var guest struct {
			Name         *string
			Reservations []struct{ ID string }
		}
		manager.Get("/v2/admin/reservations/"+kept+"/guest").OK(t).Into(t, &guest)
		if len(guest.Reservations) != 2 || guest.Name == nil || *guest.Name != "김민지" {
			t.Errorf("%s: the guest is %+v, want two stays", when, guest)
		}
		if got := canceled(); !slices.Equal(got, want) {
			t.Errorf("%s: the reservations %v are cancelled, want %v", when, got, want)
		}
	}
	check("booked")
	// Staff drop a booking in conflict, whose former version gave way to it.
	if _, err := s.DB.Pool.Exec(t.Context(), `
		with conflict as (update reservation set state = 'CONFLICT', blocked_key = null where id = $1 returning *)
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, mobile_key, canceled_at, created_by)
		select branch_id, room_id, 'CANCELED', 'PARTNER', start_at, end_at, occupied, mobile_key, now(), created_by from conflict`, dropped); err != nil {
		t.Fatal(err)
	}
	manager.Delete("/admin/reservation/"+dropped+"?bookingStatus=conflict", nil).OK(t)
	check("dropped", dropped)
	manager.Delete("/admin/reservation/"+kept+"?bookingStatus=paid", nil).OK(t)
	check("both cancelled", kept, dropped)

	manager.Post("/v2/admin/reservations/"+kept+"/guest/notes", map[string]string{"text": "조용한 룸"}).OK(t)
	keep := postgres.Retention{Paid: 24 * time.Hour, Other: 24 * time.Hour}
	for _, at := range []struct {
		now   time.Time
		notes string
	}{{start.Add(25 * time.Hour), "1"}, {start.Add(31 * time.Hour), "0"}} {
		if _, err := postgres.Anonymise(t.Context(), s.DB.Pool, keep, []byte("empty"), at.now, 100); err != nil {
			t.Fatal(err)
		}
		if notes := only(t, s, `select count(*)::text from guest_note`); notes != at.notes {
			t.Errorf("%s: %s notes, want %s", at.now, notes, at.notes)
		}
	}
}

// An erasure and the end of retention remove notes and blocks; an export contains them.
func TestGuestIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	path := "/v2/admin/reservations/" + live(t, c.s, 1) + "/guest"
	c.Manager.Post(path+"/notes", map[string]string{"text": "조용한 룸"}).OK(t)
	c.Manager.Put(path+"/block", map[string]string{"reason": "노쇼 반복"}).OK(t)
	contact := map[string]string{"contact": "010-1234-5678"}
	exported := c.HQ.Post("/v2/admin/personal-data/export", contact).OK(t)
	if text := string(exported.Raw); !strings.Contains(text, "조용한 룸") || !strings.Contains(text, "노쇼 반복") {
		t.Errorf("the export is %s", text)
	}
	handover := "/v2/admin/branches/gangnam/handover"
	c.Manager.Post(handover, map[string]string{"text": "010-1234-5678 님께 전화"}).OK(t)
	c.Manager.Post(handover, map[string]string{"text": "손님 전화 +82 (0)10 1234 5678"}).OK(t)
	c.Manager.Post(handover, map[string]string{"text": "0082 10 1234 5678 확인"}).OK(t)
	c.Manager.Post(handover, map[string]string{"text": "０１０１２３４５６７８ 확인"}).OK(t)
	c.Manager.Post(handover, map[string]string{"text": "수건 주문 a@b.co"}).OK(t)
	c.HQ.Post("/v2/admin/personal-data/erase", map[string]string{"contact": "@"}).Fails(t, 400, "IllegalArguemntError", "")
	c.HQ.Post("/v2/admin/personal-data/erase", contact).OK(t)
	if n := only(t, c.s, `select ((select count(*) from guest_note) + (select count(*) from guest_block) + 10 * (select count(*) from handover))::text`); n != "10" {
		t.Errorf("notes, blocks and ten times the handover notes: %s, want 10", n)
	}
}

// A guest entered the number and the address of a stranger, who received the messages until staff corrected them. The stranger's export has
// the messages, and after an erasure the stranger is not named any more.
func TestFormerContactIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id := live(t, c.s, 1)
	const sent = `select count(*)::text from message where reservation_id = $1 and to_mobile = '010-1234-5678' and state = 'SENT'`
	until(t, "the confirmation is sent", func() bool { return only(t, c.s, sent, id) == "1" })
	c.HQ.Patch("/v2/admin/reservations/"+id+"/contact", map[string]string{"mobileNum": "010-7777-1111", "email": "new@example.org", "reason": "번호 오타"}).OK(t)
	exported := string(c.HQ.Post("/v2/admin/personal-data/export", map[string]string{"contact": "010-1234-5678"}).OK(t).Raw)
	if !strings.Contains(exported, "reservation-confirmed") || !strings.Contains(exported, `"reservations":[]`) {
		t.Errorf("the export is %s, want the message and no reservation", exported)
	}
	for _, contact := range []string{"010-1234-5678", "hong@example.com"} {
		c.HQ.Post("/v2/admin/personal-data/erase", map[string]string{"contact": contact}).OK(t)
	}
	const named = `select count(*)::text from message where reservation_id is not null and (to_mobile like '%5678' or to_email = 'hong@example.com')`
	if n := only(t, c.s, named); n != "0" {
		t.Errorf("%s messages name the stranger, want none", n)
	}
	if mobile := only(t, c.s, `select mobile from reservation where id = $1`, id); mobile != "010-7777-1111" {
		t.Errorf("phone number of the reservation: %s, want the corrected one", mobile)
	}
}

// A note for the next shift is open until a member of staff has done it; the first one stays.
func TestHandover(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	path := "/v2/admin/branches/gangnam/handover"
	var added struct{ ID string }
	c.FrontDesk.Post(path, map[string]string{"text": "3번 룸 전구 교체"}).OK(t).Into(t, &added)
	c.Manager.Post(path, map[string]string{"text": "수건 주문"}).OK(t)
	c.Manager.Patch(path+"/"+added.ID, map[string]bool{"done": true}).OK(t)
	c.HQ.Patch(path+"/"+added.ID, map[string]bool{"done": true}).OK(t)
	var list struct {
		Notes []struct {
			ID, Text, By string
			DoneBy       *string
		}
	}
	c.Viewer.Get(path).OK(t).Into(t, &list)
	if len(list.Notes) != 2 || list.Notes[0].DoneBy != nil || list.Notes[1].ID != added.ID || list.Notes[1].By != "admin:gangnam-desk" ||
		list.Notes[1].DoneBy == nil || *list.Notes[1].DoneBy != "admin:gangnam-manager" {
		t.Fatalf("the notes are %+v", list.Notes)
	}
	c.Manager.Patch(path+"/"+added.ID, map[string]bool{"done": false}).OK(t)
	c.Viewer.Get(path).OK(t).Into(t, &list)
	if list.Notes[0].DoneBy != nil || list.Notes[1].DoneBy != nil {
		t.Errorf("after it was opened again: %+v", list.Notes)
	}
}
