package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type companion struct{ ID, Label, Key, URL string }

// running returns the id and the key of the reservation of newCast, moved so that its doors can be opened now.
func (c *cast) running(t *testing.T) (id, key string) {
	t.Helper()
	id = live(t, c.s, 1)
	c.s.Clock.Stop(c.start.Add(5 * time.Minute))
	return id, ownerKey(t, c.s, id)
}

func press(c *servicetest.Client, key string) servicetest.Answer {
	return c.Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": key})
}

var unknownKey = reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}

// TestPhoneOfABranchWithoutOne: the guest of a branch without a number calls that of the company.
func TestPhoneOfABranchWithoutOne(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.Legal.Phone = "02-1234-5678" })
	c := newCast(t, s)
	_, key := c.running(t)
	const settingsPath = "/v2/admin/branches/gangnam/settings"
	var settings map[string]any
	c.HQ.Get(settingsPath).OK(t).Into(t, &settings)
	settings["phone"] = ""
	c.HQ.Put(settingsPath, settings).OK(t)
	var facts struct{ Phone string }
	c.Nobody.Get("/v2/keys/"+key).OK(t).Into(t, &facts)
	var why struct {
		Next []struct {
			Action string
			Phone  *string
		}
	}
	c.Nobody.Get("/v2/keys/"+key+"/why?branch=hongdae&door=front").OK(t).Into(t, &why)
	if facts.Phone != "02-1234-5678" || len(why.Next) == 0 || why.Next[0].Phone == nil || *why.Next[0].Phone != facts.Phone {
		t.Errorf("got %+v and %+v", facts, why)
	}
}

func TestCompanions(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	id, key := c.running(t)
	path := "/v2/keys/" + key + "/companions"
	var first companion
	c.Nobody.Post(path, map[string]string{"label": "동생"}).OK(t).Into(t, &first)
	if first.Label != "동생" || !strings.HasSuffix(first.URL, "/k/"+first.Key) || first.ID == "" {
		t.Fatalf("companion %+v", first)
	}
	var facts struct{ Kind string }
	c.Nobody.Get("/v2/keys/"+first.Key).OK(t).Into(t, &facts)
	if facts.Kind != "companion" {
		t.Errorf("kind %q", facts.Kind)
	}
	press(c.Nobody, first.Key).OK(t)
	var doors struct {
		Events []struct{ Companion string }
	}
	c.Manager.Get("/v2/admin/branches/gangnam/doors").OK(t).Into(t, &doors)
	if len(doors.Events) != 1 || doors.Events[0].Companion != "동생" {
		t.Errorf("door history %+v", doors)
	}

	// A companion's key administers nothing.
	notOwner := reply{403, "AuthorizationException", "예약자의 열쇠로만 동행 열쇠를 관리할 수 있습니다."}
	theirs := "/v2/keys/" + first.Key + "/companions"
	says(t, "list", c.Nobody.Get(theirs), notOwner)
	says(t, "add", c.Nobody.Post(theirs, map[string]string{"label": "x"}), notOwner)
	says(t, "revoke", c.Nobody.Delete(theirs+"/"+first.ID, nil), notOwner)

	ownerOnly := reply{403, "AuthorizationException", "예약자의 열쇠로만 이용 시간을 바꿀 수 있습니다."}
	says(t, "extend", c.Nobody.Post("/v2/keys/"+first.Key+"/extension", map[string]string{"endDateTime": wire(s.Clock.Now().Add(2 * time.Hour))}), ownerOnly)
	says(t, "end", c.Nobody.Post("/v2/keys/"+first.Key+"/end", nil), ownerOnly)

	for _, label := range []string{"", "   ", strings.Repeat("가", 31), "a\x00b", "a\nb", "\u200eab"} {
		c.Nobody.Post(path, map[string]string{"label": label}).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	}
	for range 7 {
		c.Nobody.Post(path, map[string]string{"label": "친구"}).OK(t)
	}
	says(t, "the ninth", c.Nobody.Post(path, map[string]string{"label": "친구"}), reply{409, "ResourceConflictException", "동행 열쇠는 최대 8개까지 만들 수 있습니다."})

	c.Nobody.Delete(path+"/"+first.ID, nil).OK(t)
	gone := reply{404, "ResourceNotFoundException", "해당 동행 열쇠를 찾을 수 없습니다."}
	says(t, "revoked twice", c.Nobody.Delete(path+"/"+first.ID, nil), gone)
	says(t, "no number", c.Nobody.Delete(path+"/x", nil), gone)
	says(t, "a revoked key", press(c.Nobody, first.Key), unknownKey)
	says(t, "a revoked key's page", c.Nobody.Get("/v2/keys/"+first.Key), unknownKey)

	var list struct {
		Companions []companion
		Max        int
	}
	c.Nobody.Get(path).OK(t).Into(t, &list)
	if len(list.Companions) != 7 || list.Max != 8 || list.Companions[0].Key == "" {
		t.Errorf("companions %+v", list)
	}
	staff := "/v2/admin/reservations/" + id + "/companions/" + list.Companions[0].ID
	says(t, "another branch", c.Other.Delete(staff, nil), outOfScope)
	c.Manager.Delete(staff, nil).OK(t)
	says(t, "revoked by staff", press(c.Nobody, list.Companions[0].Key), unknownKey)
	var why struct{ Code, Message string }
	c.Nobody.Get("/v2/keys/"+list.Companions[0].Key+"/why?lang=ko").OK(t).Into(t, &why)
	if want := "이 동행 열쇠는 취소됐어요. 예약자에게 새 링크를 받아 주세요."; why.Code != "revoked" || why.Message != want {
		t.Errorf("a key that staff revoked: got %+v, want %q", why, want)
	}

	var record struct {
		Keys []struct{ Kind, Label, RevokedAs string }
	}
	c.Viewer.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record)
	if len(record.Keys) != 9 || record.Keys[0].Kind != "owner" || record.Keys[1].RevokedAs != "revoked" {
		t.Errorf("keys %+v", record.Keys)
	}
	if n := only(t, s, `select count(*)::text from audit where action like 'reservation.companion-%' and target = $1`, id); n != "10" {
		t.Errorf("%s audit entries, want 10", n)
	}
	s.Clock.Advance(time.Hour)
	says(t, "after the stay", c.Nobody.Post(path, map[string]string{"label": "늦은 친구"}), reply{410, "ResourceValidTimePassedException", "도어락 해제 가능 시간이 아닙니다."})
}

func TestKeyIsRotated(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	id, old := c.running(t)
	var friend companion
	c.Nobody.Post("/v2/keys/"+old+"/companions", map[string]string{"label": "동생"}).OK(t).Into(t, &friend)
	path := "/v2/admin/reservations/" + id + "/key"
	reason := map[string]string{"reason": "휴대폰을 잃어버렸어요"}
	says(t, "a viewer", c.Viewer.Post(path, reason), notAuthorized)
	says(t, "another branch", c.Other.Post(path, reason), outOfScope)
	says(t, "no reservation", c.HQ.Post("/v2/admin/reservations/999999/key", reason), noReservation)
	c.Manager.Post(path, map[string]string{"reason": " "}).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	if ownerKey(t, s, id) != old {
		t.Fatal("a rejected request changed the key")
	}
	var rotated struct{ Sent bool }
	c.Manager.Post(path, reason).OK(t).Into(t, &rotated)
	fresh := ownerKey(t, s, id)
	if !rotated.Sent || fresh == old || fresh == "" {
		t.Fatalf("sent %t, key %q", rotated.Sent, fresh)
	}
	awaitMessage(t, s, "01012345678", func(m sandbox.Message) bool {
		return m.Template == "key-changed" && m.Variables["doorlockKey"] == fresh
	})
	says(t, "the old key", press(c.Nobody, old), unknownKey)
	press(c.Nobody, fresh).OK(t)
	press(c.Nobody, friend.Key).OK(t)
	var keys struct {
		Keys []struct{ DoorlockKey string }
	}
	c.Customer.Get("/v2/my-keys").OK(t).Into(t, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].DoorlockKey != fresh {
		t.Errorf("my keys %+v", keys)
	}
	c.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	says(t, "a cancelled reservation", c.Manager.Post(path, reason), reply{400, "IllegalArguemntError", "열쇠가 없는 예약입니다. 결제가 끝난 예약만 열쇠를 바꿀 수 있습니다."})
}

// The messages with the key of an extended stay name its whole time. A guest who reads the end of the first payment leaves early.
func TestMessagesWithTheKeyOfAnExtendedStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	id, key := c.running(t)
	end := c.start.Add(2 * time.Hour)
	extend(t, s, c.Nobody, key, end)
	_, want := notify.Period(notify.Korean, c.start.In(seoul), end)
	sent := func(template string) {
		t.Helper()
		fresh := ownerKey(t, s, id)
		var got string
		awaitMessage(t, s, "01012345678", func(m sandbox.Message) bool {
			got = m.Variables["time"]
			return strings.HasPrefix(m.Template, template) && m.Variables["doorlockKey"] == fresh
		})
		if got != want {
			t.Errorf("time in %s: got %q, want %q", template, got, want)
		}
	}
	c.Manager.Post("/v2/admin/reservations/"+id+"/key", map[string]string{"reason": "휴대폰을 잃어버렸어요"}).OK(t)
	sent("key-changed")
	c.Manager.Post("/v2/admin/reservations/"+id+"/key-message", nil).OK(t)
	sent("reservation-confirmed") // with the new key, unlike the first one
}

func TestContactIsCorrected(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	id, old := c.running(t)
	var friend companion
	c.Nobody.Post("/v2/keys/"+old+"/companions", map[string]string{"label": "동생"}).OK(t).Into(t, &friend)
	path := "/v2/admin/reservations/" + id + "/contact"
	correction := map[string]any{"mobileNum": "010-9999-8888", "reason": "번호를 잘못 적음"}
	says(t, "a viewer", c.Viewer.Patch(path, correction), notAuthorized)
	says(t, "another branch", c.Other.Patch(path, correction), outOfScope)
	says(t, "no reservation", c.HQ.Patch("/v2/admin/reservations/999999/contact", correction), noReservation)
	for _, body := range []any{
		map[string]any{"mobileNum": "010-9999-8888"}, map[string]any{"reason": "x"}, map[string]any{"mobileNum": "", "reason": "x"},
		map[string]any{"mobileNum": "abc", "reason": "x"}, map[string]any{"email": "no address", "reason": "x"}, map[string]any{"name": " ", "reason": "x"},
	} {
		c.Manager.Patch(path, body).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	}
	if ownerKey(t, s, id) != old {
		t.Fatal("a rejected request changed the key")
	}
	var offer struct {
		Options []struct{ EndDateTime string }
	}
	c.Nobody.Get("/v2/keys/"+old+"/extension").OK(t).Into(t, &offer)
	s.Client(t).Post("/v2/keys/"+old+"/extension", map[string]string{"endDateTime": offer.Options[0].EndDateTime}).OK(t)
	c.Manager.Patch(path, correction).OK(t)
	if n := only(t, s, `select count(*)::text from reservation where mobile_key = '01012345678'`); n != "0" {
		t.Errorf("%s reservations, extensions included, are left to the old number", n)
	}
	fresh := ownerKey(t, s, id)
	if fresh == old || fresh == "" {
		t.Fatalf("key %q", fresh)
	}
	awaitMessage(t, s, "01099998888", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == fresh })
	for what, key := range map[string]string{"the old key": old, "a companion's": friend.Key} {
		says(t, what, press(c.Nobody, key), unknownKey)
		says(t, what, c.Nobody.Get("/v2/keys/"+key), unknownKey)
	}
	press(c.Nobody, fresh).OK(t)

	// The stay belongs to the new number: nothing of it is left under the old one, whose session still runs.
	var keys struct {
		Keys []struct{ DoorlockKey string }
	}
	c.Customer.Get("/v2/my-keys").OK(t).Into(t, &keys)
	if len(keys.Keys) != 0 {
		t.Errorf("the old number has keys %+v", keys)
	}
	if got := string(c.Customer.Get("/my-reservations").OK(t).Data); got != "[]" {
		t.Errorf("the old number has payments %s", got)
	}
	s.Client(t).Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).Fails(t, http.StatusNotFound, "ResourceNotFoundException", "예약 내역이 없습니다.")
	login(t, s, "01099998888").Get("/v2/my-keys").OK(t).Into(t, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].DoorlockKey != fresh {
		t.Errorf("the new number has keys %+v", keys)
	}
	// From the first message to the new number on, none is for the old one.
	sent := only(t, s, `
		with sent as (select id, template, regexp_replace(to_mobile, '\D', '', 'g') as number from message),
		     first as (select min(id) as id from sent where number = $2)
		select string_agg(template, ' ' order by s.id) from sent s, first where s.id = first.id or s.id > first.id and number = $1`,
		"01012345678", "01099998888")
	if sent != "key-changed" {
		t.Errorf("messages to the new number and then to the old one: %s", sent)
	}
}

// TestCorrectedAddressReceivesTheKey: if only the address is corrected, the new key is sent there and to the phone number.
func TestCorrectedAddressReceivesTheKey(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	id, _ := c.running(t)
	c.Manager.Patch("/v2/admin/reservations/"+id+"/contact", map[string]any{"email": "corrected@mail.example", "reason": "주소를 잘못 적음"}).OK(t)
	fresh := ownerKey(t, s, id)
	for _, to := range []string{"corrected@mail.example", "01012345678"} {
		awaitMessage(t, s, to, func(m sandbox.Message) bool {
			return m.Template == "key-changed" && m.Variables["doorlockKey"] == fresh
		})
	}
}

// TestWhy checks the answer's shape, language and rights; access.TestWhy checks all reasons.
func TestWhy(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.StandaloneKeypads(t)
	c := newCast(t, s)
	id := live(t, s, 1)
	key := ownerKey(t, s, id)
	type why struct {
		Code, Message string
		Since, Until  *time.Time
		Next          []struct {
			Action, Phone string
			At            *time.Time
		}
	}
	ask := func(c *servicetest.Client, path string) (w why) {
		t.Helper()
		c.Get(path).OK(t).Into(t, &w)
		return w
	}
	// onPage checks that the page of a key that opens nothing shows the sentence of the interface, in both languages.
	onPage := func(key string) {
		t.Helper()
		for _, lang := range []string{"ko", "en"} {
			sentence := ask(c.Nobody, "/v2/keys/"+key+"/why?lang="+lang).Message
			if page, _ := pageOf(t, strings.TrimSuffix(s.Root, "/api")+"/k/"+key+"?lang="+lang); !strings.Contains(page, sentence) {
				t.Errorf("the page lacks %q", sentence)
			}
		}
	}
	path, staff := "/v2/keys/"+key+"/why", "/v2/admin/reservations/"+id+"/why"
	early := ask(c.Nobody, path+"?branch=gangnam&door=room")
	opens := c.start.Add(-2 * time.Minute)
	if early.Code != "too-early" || !early.Until.Equal(opens) || len(early.Next) != 1 || early.Next[0].Action != "wait" || !early.Next[0].At.Equal(opens) ||
		!strings.Contains(early.Message, opens.In(seoul).Format("15:04")) {
		t.Errorf("too early: %+v", early)
	}
	for _, query := range []string{"?door=room&lang=ko", "?door=room&lang=en"} {
		guest := ask(c.Nobody, path+query)
		if record := ask(c.Viewer, staff+query); record.Code != guest.Code || record.Message != guest.Message {
			t.Errorf("%s: the guest sees %+v, staff %+v", query, guest, record)
		}
	}
	if ask(c.Nobody, path+"?lang=en").Message == ask(c.Nobody, path).Message {
		t.Error("English is Korean")
	}
	c.Nobody.Get(path+"?door=window").Fails(t, 400, "IllegalArguemntError", "")
	c.Nobody.Get(path+"?lang=fr").Fails(t, 400, "IllegalArguemntError", "")
	says(t, "another branch's staff", c.Other.Get(staff), outOfScope)
	if got := ask(c.Nobody, "/v2/keys/00000000-0000-4000-8000-000000000000/why"); got.Code != "unknown" || got.Message == "" {
		t.Errorf("unknown key: %+v", got)
	}
	onPage("00000000-0000-4000-8000-000000000000")
	if got := ask(c.Nobody, path+"?branch=hongdae"); got.Code != "wrong-branch" {
		t.Errorf("at another branch: %+v", got)
	}

	c.HQ.Post("/v2/admin/reservations/"+id+"/key", map[string]string{"reason": "x"}).OK(t)
	if got := ask(c.Nobody, path); got.Code != "rotated" || got.Next[0].Action != "open-link" || strings.Contains(got.Message, ownerKey(t, s, id)) {
		t.Errorf("a rotated key: %+v", got)
	}
	onPage(key)
	fresh := "/v2/keys/" + ownerKey(t, s, id) + "/why"
	c.HQ.Patch("/v2/admin/reservations/"+id+"/contact", map[string]string{"mobileNum": "010-9999-8888", "reason": "x"}).OK(t)
	if got := ask(c.Nobody, fresh); got.Code != "unknown" {
		t.Errorf("a corrected key: %+v", got)
	}
	fresh = "/v2/keys/" + ownerKey(t, s, id) + "/why"
	s.Clock.Stop(opens.Add(time.Minute)) // the branch has no agent
	if got := ask(c.Nobody, fresh); got.Code != "branch-offline" || got.Next[0].Action != "use-pin" {
		t.Errorf("an offline branch: %+v", got)
	}
	c.HQ.Delete("/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	if got := ask(c.Nobody, fresh); got.Code != "refunded" || ask(c.HQ, staff).Message != got.Message {
		t.Errorf("a refunded reservation: %+v", got)
	}
	onPage(strings.Split(fresh, "/")[3])
}

// TestFiftyCompanions creates and revokes companions until the limit of all companions of a stay. Replaced keys of the owner do not
// count.
func TestFiftyCompanions(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id, _ := c.running(t)
	c.Manager.Post("/v2/admin/reservations/"+id+"/key", map[string]string{"reason": "x"}).OK(t)
	path := "/v2/keys/" + ownerKey(t, c.s, id) + "/companions"
	for range 50 {
		var added companion
		c.Nobody.Post(path, map[string]string{"label": "친구"}).OK(t).Into(t, &added)
		c.Nobody.Delete(path+"/"+added.ID, nil).OK(t)
	}
	says(t, "the fifty-first", c.Nobody.Post(path, map[string]string{"label": "친구"}),
		reply{409, "ResourceConflictException", "동행 열쇠는 취소한 것을 포함해 예약마다 50개까지 만들 수 있습니다."})
}
