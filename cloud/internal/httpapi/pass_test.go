package httpapi_test

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// keypads is the inventory of gangnam with a keypad at every door.
func keypads() protocol.Inventory {
	inventory := protocol.Inventory{Keypads: []string{"front_1", "front_2"}, Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront}, {Device: "front_2", Kind: protocol.DoorFront}}}
	for room := 1; room <= 6; room++ {
		device := fmt.Sprintf("room_%d", room)
		inventory.Keypads = append(inventory.Keypads, device)
		inventory.Doors = append(inventory.Doors, protocol.Door{Device: device, Kind: protocol.DoorRoom})
	}
	return inventory
}

// keypadAgent connects the agent of gangnam and waits until it has acknowledged a list with the key of the codes.
func keypadAgent(t *testing.T, s *servicetest.Stack) *agenttest.Agent {
	t.Helper()
	a := connectAgent(t, s, "gangnam", keypads())
	until(t, "the agent has the code key", func() bool { return codesReady(t, s) })
	return a
}

// until waits until a condition about rows of the service is true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens: %s", what)
		}
	}
}

func codesReady(t *testing.T, s *servicetest.Stack) (ready bool) {
	t.Helper()
	err := s.DB.Pool.QueryRow(t.Context(), `select coalesce(bool_or(code_ready), false) from pass_agent where username = $1`, "agent-gangnam").Scan(&ready)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

// keyAnswer serves GET /v2/keys/{key}.
type keyAnswer struct {
	Online  bool              `json:"online"`
	Keypads map[string]string `json:"keypads"`
	PIN     *struct {
		Code  string    `json:"code"`
		From  time.Time `json:"from"`
		Until time.Time `json:"until"`
		Doors []string  `json:"doors"`
		Ready bool      `json:"ready"`
	} `json:"pin"`
}

func showKey(t *testing.T, s *servicetest.Stack, key string) (answer keyAnswer) {
	t.Helper()
	s.Client(t).Get("/v2/keys/"+key).OK(t).Into(t, &answer)
	return answer
}

// TestPINReachesTheAgent follows a pass from the reservation to the agent that checks it.
func TestPINReachesTheAgent(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a, key := listedKey(t, s)
	pin := showKey(t, s, key).PIN
	now := s.Clock.Now()
	for _, c := range []struct {
		what, device string
		at           time.Time
		opens        bool
	}{
		{"in its room", "room_3", now, true}, {"at a front door", "front_2", now, true}, {"at another room", "room_4", now, false},
		{"at its beginning", "room_3", pin.From, true}, {"before", "room_3", pin.From.Add(-time.Second), false},
		{"a second before its end", "room_3", pin.Until.Add(-time.Second), true}, {"at its end", "room_3", pin.Until, false},
	} {
		if _, got := a.Opens(c.device, pin.Code, c.at); got != c.opens {
			t.Errorf("PIN %s: opens %t, want %t", c.what, got, c.opens)
		}
	}
	if !slices.Equal(pin.Doors, []string{"front", "room_3"}) {
		t.Errorf("doors of the PIN: %v", pin.Doors)
	}
	// Another key ends the pass.
	// By its hash: the text of a key is deleted in the background.
	if ended, err := s.DB.Pool.Exec(t.Context(), `
		update reservation r set state = 'CANCELING', doorlock_key = null
		from access_key k where k.reservation_id = r.id and k.hash = sha256(convert_to($1, 'UTF8'))`, key); err != nil || ended.RowsAffected() != 1 {
		t.Fatal(ended, err)
	}
	a.Until(t, "the list without the pass", func() bool { return len(a.List().Passes) == 0 })
	if _, opens := a.Opens("room_3", pin.Code, now); opens {
		t.Error("the PIN of a refunded guest opens the room")
	}
}

func (k keyAnswer) ready() bool { return k.PIN != nil && k.PIN.Ready }

// touchPasses gives reservations that a test inserted their passes, as the next minute would.
func touchPasses(t *testing.T, s *servicetest.Stack) {
	t.Helper()
	if _, err := s.DB.Pool.Exec(t.Context(), `update agent_credential set activated_at = clock_timestamp() where username = $1`, "agent-gangnam"); err != nil {
		t.Fatal(err)
	}
}

// listedKey returns an agent with keypads and a key of room 3 whose pass is in its list.
func listedKey(t *testing.T, s *servicetest.Stack) (a *agenttest.Agent, key string) {
	t.Helper()
	a, key = keypadAgent(t, s), keyFor(t, s, 3)
	touchPasses(t, s)
	until(t, "the list has the pass", func() bool { return showKey(t, s, key).ready() })
	return a, key
}

// TestPINIsDisclosedWhenTheGuestCannotCancel reads a key on both sides of the disclosure.
func TestPINIsDisclosedWhenTheGuestCannotCancel(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	_, key := listedKey(t, s)
	start := showKey(t, s, key).PIN.From.Add(2 * time.Minute)
	for _, c := range []struct {
		at    time.Time
		shown bool
	}{{start.Add(-30 * time.Minute), false}, {start.Add(-30*time.Minute + time.Second), true}, {start.Add(57 * time.Minute), true}, {start.Add(58 * time.Minute), false}} {
		s.Clock.Stop(c.at)
		if got := showKey(t, s, key).PIN != nil; got != c.shown {
			t.Errorf("PIN at %s after the start: shown %t, want %t", c.at.Sub(start), got, c.shown)
		}
	}
}

// TestFailedDoorGivesACode expects a one-time code at a door with an agent keypad, the static PIN at a standalone one, and
// nothing where there is no keypad.
func TestFailedDoorGivesACode(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a := keypadAgent(t, s)
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	key := keyFor(t, s, 3)
	wantKind := "code"
	press := func(kind string) *string {
		t.Helper()
		id := requestID(t, cast.Nobody, "/door/v2/unlock", unlockBody(kind, key))
		e := cast.Nobody.Send("GET", "/door/v2/unlock/subscribe?requestId="+id+"&key="+key, nil, nil).Event(t)
		if e.FailoverKind != wantKind {
			t.Errorf("kind of %v: got %q, want %q", e.FailoverKey, e.FailoverKind, wantKind)
		}
		return e.FailoverKey
	}
	first, front := press("room"), press("front")
	if first == nil || front == nil || !a.Takes("room_3", *first, s.Clock.Now()) || !a.Takes("front_2", *front, s.Clock.Now()) || a.Takes("room_3", *front, s.Clock.Now()) {
		t.Fatalf("codes %v and %v: the agent does not take them at their doors", first, front)
	}
	if second := press("room"); second == nil || *second == *first {
		t.Errorf("second code %v, want another than %v", second, first)
	}
	staffs := requestID(t, cast.Manager, adminUnlock+"gangnam/room/3", nil)
	code := cast.Manager.Send("GET", "/admin/door/v2/unlock/subscribe?requestId="+staffs, nil, nil).Event(t).FailoverKey
	if code == nil || !a.Takes("room_3", *code, s.Clock.Now()) {
		t.Errorf("code of an administrator's failed press: %v", code)
	}
	for _, c := range []struct {
		keypad string
		want   string
		kind   string
	}{{"standalone", "48190326", "pin"}, {"none", "", ""}} {
		wantKind = c.kind
		_, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = jsonb_build_object('room_3', $1::text) where code = 'gangnam'`, c.keypad)
		if err != nil {
			t.Fatal(err)
		}
		if c.want != "" {
			cast.HQ.Put("/v2/admin/branches/gangnam/doors/room_3/pin", map[string]string{"pin": c.want}).OK(t)
		}
		got := press("room")
		if (got == nil) != (c.want == "") || got != nil && *got != c.want {
			t.Errorf("failoverKey at a %s keypad: %v, want %q", c.keypad, got, c.want)
		}
	}
}

// TestExtendedStayAtTheDoor expects of a stay in its paid extension what holds before it: a code after a failed press, another pass if the
// agent's credential was revoked, a diagnosis by the owner's key, and a contact that an erasure leaves.
func TestExtendedStayAtTheDoor(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a := keypadAgent(t, s)
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	id, key := cast.running(t)
	end := cast.start.Add(time.Hour)
	guest := s.Client(t)
	extend(t, s, guest, key, end.Add(time.Hour))
	s.Clock.Stop(end.Add(20 * time.Minute))

	press := func(kind string) {
		t.Helper()
		request := requestID(t, guest, "/door/v2/unlock", unlockBody(kind, key))
		e := guest.Send("GET", "/door/v2/unlock/subscribe?requestId="+request+"&key="+key, nil, nil).Event(t)
		if e.Status != "FAILED" || e.FailoverKey == nil || e.FailoverKind != "code" {
			t.Errorf("failed press of %s: got %+v, want a code", kind, e)
		}
	}
	press("front")
	press("room")
	var why struct{ Code string }
	extension := only(t, s, `select id::text from reservation where extends is not null and state = 'DONE'`)
	cast.HQ.Get("/v2/admin/reservations/"+extension+"/why?door=room").OK(t).Into(t, &why)
	if why.Code != "door-failed" {
		t.Errorf("diagnosis of the extension: got %q, want that of the stay", why.Code)
	}
	var erased struct{ Reservations, Kept int }
	cast.HQ.Post("/v2/admin/personal-data/erase", map[string]string{"contact": "01012345678"}).OK(t).Into(t, &erased)
	if erased.Reservations != 0 || erased.Kept != 2 {
		t.Errorf("erasure during the extension: got %+v, want both reservations kept", erased)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update pass set ended_at = now() where reservation_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	s.Clock.Stop(end.Add(30 * time.Minute)) // the earlier codes are no longer accepted
	press("room")
	branches, err := postgres.BranchesWithoutPass(t.Context(), s.DB.Pool, s.Clock.Now().Add(postgres.ListDepth), s.Clock.Now())
	if err != nil || len(branches) != 1 {
		t.Errorf("branches without a pass: got %v (%v), want that of the stay", branches, err)
	}
}

// extend buys an extension of the stay of a key by card.
func extend(t *testing.T, s *servicetest.Stack, guest *servicetest.Client, key string, end time.Time) {
	t.Helper()
	var held struct {
		OrderID string
		Amount  int
	}
	guest.Post("/v2/keys/"+key+"/extension", map[string]string{"endDateTime": wire(end)}).OK(t).Into(t, &held)
	paymentKey, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: held.OrderID, Amount: held.Amount, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	guest.Post("/payment/confirm", map[string]any{"paymentKey": paymentKey, "orderId": held.OrderID, "amount": held.Amount}).OK(t)
}

// TestExtensionIsMarked: a page that knows a payment only by its answer must not announce a key for an extension.
func TestExtensionIsMarked(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	_, key := cast.running(t)
	guest, buyer := s.Client(t), s.Client(t)
	extend(t, s, guest, key, cast.start.Add(2*time.Hour))
	buyer.Post("/payment/confirm", order(t, s, buyer, 3, slot(s, 6*time.Hour), time.Hour, 22000, "카드")).OK(t)
	for _, c := range []struct {
		browser   *servicetest.Client
		extension bool
	}{{guest, true}, {buyer, false}} {
		var receipt, repeated struct {
			Extension bool
			OrderID   string
			Amount    int
		}
		c.browser.Get("/v2/receipt").OK(t).Into(t, &receipt)
		paymentKey := only(t, s, `select payment_key from payment p join reservation r on r.id = p.reservation_id where r.order_id = $1`, receipt.OrderID)
		c.browser.Post("/payment/confirm", map[string]any{"paymentKey": paymentKey, "orderId": receipt.OrderID, "amount": receipt.Amount}).OK(t).Into(t, &repeated)
		if receipt.Extension != c.extension || repeated.Extension != c.extension {
			t.Errorf("extension: the receipt says %v, the confirmation %v, want %v", receipt.Extension, repeated.Extension, c.extension)
		}
	}
}

// TestCodeWithoutAPress asks for codes with a key.
func TestCodeWithoutAPress(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	key := keyFor(t, s, 3)
	guest := s.Client(t)
	path := "/v2/keys/" + key + "/codes"
	guest.Post(path, map[string]string{"door": "room"}).Fails(t, 503, "DeviceUnavailableException", "") // the agent has no code key yet
	a := keypadAgent(t, s)
	var code struct {
		Code, Door, QR string
		Until          time.Time
	}
	guest.Post(path, map[string]string{"door": "front"}).OK(t).Into(t, &code)
	now := s.Clock.Now()
	if life := code.Until.Sub(now); !a.Takes("front_1", code.Code, now) || code.Door != "front" || life <= 0 || life > 2*time.Minute || code.QR == "" {
		t.Errorf("code %+v", code)
	}
	if a.Takes("front_1", code.Code, code.Until) {
		t.Error("the agent takes the code at the end of its life")
	}
	guest.Post(path, map[string]string{"door": "side"}).Fails(t, 400, "IllegalArguemntError", "")
	guest.Post(path, map[string]any{}).Fails(t, 400, "IllegalArguemntError", "")
	guest.Post("/v2/keys/nonsense/codes", map[string]string{"door": "room"}).Fails(t, 400, "ResourceNotExistException", "")
	limited := false
	for range 5 {
		limited = limited || guest.Post(path, map[string]string{"door": "room"}).HTTP == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("codes are not limited")
	}
	s.StandaloneKeypads(t)
	guest.Post(path, map[string]string{"door": "room"}).Fails(t, 409, "ResourceConflictException", "")
	s.Clock.Advance(2 * time.Hour)
	guest.Post(path, map[string]string{"door": "room"}).Fails(t, 410, "ResourceValidTimePassedException", "")
}

// demoGrantKeys returns the public keys of the demo setting.
func demoGrantKeys(t *testing.T) []ed25519.PublicKey {
	t.Helper()
	keys, err := config.Settings{Secrets: config.Secrets{Mode: config.ModeDemo}}.Effective().GrantKeys()
	if err != nil {
		t.Fatal(err)
	}
	return []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)}
}

func count(t *testing.T, s *servicetest.Stack, query string) (n int) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHeartbeatIsAnsweredWithTheTime expects a signed beacon for a heartbeat with a nonce, and none for one without.
func TestHeartbeatIsAnsweredWithTheTime(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := keypadAgent(t, s)
	nonce := protocol.NewNonce()
	for _, beat := range []protocol.Heartbeat{{BootID: "boot", Connection: 1}, {BootID: "boot", Connection: 1, Nonce: nonce}} {
		if err := a.Publish(beat); err != nil {
			t.Fatal(err)
		}
	}
	a.Until(t, "a beacon", func() bool { return len(a.Beacons()) > 0 })
	beacon := a.Beacons()[0]
	if beacon.Nonce != nonce || beacon.BootID != "boot" || beacon.Verify("agent-gangnam", demoGrantKeys(t)...) != nil {
		t.Errorf("beacon %+v", beacon)
	}
}

// TestQuarantineIsReleasedByHeadquarters cancels a reservation whose pass the agent holds and does not give up: the time is
// listed, shown as taken and not sold until the headquarters release it, with a reason.
func TestQuarantineIsReleasedByHeadquarters(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a, _ := listedKey(t, s)
	a.Fail(agenttest.Faults{IgnoreLists: true})
	var id int64
	err := s.DB.Pool.QueryRow(t.Context(), `select reservation_id from pass where ended_at is null and room_id = (select id from room where no = 3 and branch_id = pass.branch_id)`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	cast.HQ.Delete(fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil).OK(t)
	var day struct {
		Quarantine []struct{ ID, Room, Start, End, Reason string }
	}
	timeline := "/v2/admin/branches/gangnam/timeline?date=" + slot(s, -30*time.Minute).In(time.FixedZone("KST", 9*60*60)).Format(time.DateOnly)
	cast.Manager.Get(timeline).OK(t).Into(t, &day)
	if len(day.Quarantine) != 1 || day.Quarantine[0].Room != "3" || day.Quarantine[0].Reason != "canceled" {
		t.Fatalf("quarantine %+v", day.Quarantine)
	}
	held := day.Quarantine[0]
	var closing struct{ Conflicts []any }
	cast.HQ.Post("/v2/admin/closures", map[string]any{"branches": []string{"gangnam"}, "reason": "점검", "preview": true, "rule": map[string]string{
		"from": cast.start.In(seoul).Format(time.DateOnly), "to": cast.start.In(seoul).AddDate(0, 0, 1).Format(time.DateOnly)}}).OK(t).Into(t, &closing)
	if n := count(t, s, `select count(*) from reservation where state = 'DONE' and branch_id = (select id from branch where code = 'gangnam') and end_at > now()`); len(closing.Conflicts) != n {
		t.Errorf("conflicts of a closure: %+v, want the %d reservations", closing.Conflicts, n)
	}
	// The list shows the time as taken, with the id of the detail. It can be cancelled by no caller: only the headquarters release it.
	var detail struct{ BookingStatus string }
	cast.Manager.Get("/admin/reservation/"+held.ID).OK(t).Into(t, &detail)
	for _, by := range []*servicetest.Client{cast.Manager, cast.HQ} {
		by.Delete("/admin/reservation/"+held.ID+"?bookingStatus="+detail.BookingStatus, nil).Fails(t, 400, "IllegalArguemntError",
			"취소되거나 변경된 예약의 비밀번호로 아직 문이 열릴 수 있어 판매를 보류한 시간입니다. 본사만 판매 보류를 해제할 수 있습니다.")
	}
	path := "/v2/admin/branches/gangnam/quarantine/" + held.ID + "/release"
	cast.Manager.Post(path, map[string]string{"reason": "현장 확인"}).Fails(t, 403, "AuthorizationError", "")
	cast.HQ.Post(path, map[string]string{"reason": " "}).Fails(t, 400, "IllegalArguemntError", "")
	cast.HQ.Post("/v2/admin/branches/gangnam/quarantine/1/release", map[string]string{"reason": "현장 확인"}).Fails(t, 404, "ResourceNotFoundException", "")
	cast.HQ.Post("/v2/admin/branches/hongdae/quarantine/"+day.Quarantine[0].ID+"/release", map[string]string{"reason": "현장 확인"}).Fails(t, 404, "ResourceNotFoundException", "")
	cast.HQ.Post(path, map[string]string{"reason": "현장 확인"}).OK(t)
	cast.HQ.Post(path, map[string]string{"reason": "현장 확인"}).Fails(t, 404, "ResourceNotFoundException", "")
	cast.HQ.Delete("/admin/reservation/"+held.ID+"?bookingStatus="+detail.BookingStatus, nil).Fails(t, 404, "ResourceNotFoundException", "")
	cast.Manager.Get(timeline).OK(t).Into(t, &day)
	if len(day.Quarantine) != 0 {
		t.Errorf("quarantine after its release: %+v", day.Quarantine)
	}
	var released struct{ State, Note string }
	cast.HQ.Get("/v2/admin/reservations/"+held.ID).OK(t).Into(t, &released)
	if released.State != "RELEASED" || released.Note != "현장 확인" {
		t.Errorf("released quarantine %+v, want the reason as its note", released)
	}
	if n := count(t, s, `select count(*) from audit where action = 'quarantine.release' and actor = 'admin:hq'`); n != 1 {
		t.Errorf("audit entries: got %d, want 1", n)
	}
}

// TestQuarantineEndsWithANewerList cancels a reservation whose pass the agent holds: its time is free once the agent has
// acknowledged a list without the pass.
func TestQuarantineEndsWithANewerList(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a, _ := listedKey(t, s)
	var id int64
	if err := s.DB.Pool.QueryRow(t.Context(), `select reservation_id from pass where id::text = $1`, a.List().Passes[0].Pass).Scan(&id); err != nil {
		t.Fatal(err)
	}
	cast.HQ.Delete(fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil).OK(t)
	until(t, "no quarantine", func() bool {
		return count(t, s, `select count(*) from reservation where quarantine_of is not null and state = 'HOLD'`) == 0
	})
	if n := count(t, s, `select count(*) from reservation where quarantine_of is not null and state = 'RELEASED'`); n != 1 {
		t.Errorf("ended quarantines: got %d, want 1", n)
	}
}
