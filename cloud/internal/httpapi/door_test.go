package httpapi_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// connectAgent connects an agent that accepts grants signed with the demo key.
func connectAgent(t testing.TB, s *servicetest.Stack, branch string, inventory protocol.Inventory, readings ...protocol.Reading) *agenttest.Agent {
	t.Helper()
	keys, err := config.Settings{Secrets: config.Secrets{Mode: config.ModeDemo}}.Effective().GrantKeys()
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Connect(t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(s.MQTT), Inventory: inventory,
		Readings: readings, Keys: []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)}})
}

// keyFor returns the key of a paid reservation of a room of gangnam that is in progress.
func keyFor(t testing.TB, s *servicetest.Stack, room int) string {
	t.Helper()
	key, start := uuid.NewString(), slot(s, -30*time.Minute)
	_, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, doorlock_key)
		select b.id, r.id, 'DONE', 'CUSTOMER', $2, $3, tstzrange($2, $3::timestamptz + interval '10 minutes'), '카드', 1000, $4
		from branch b join room r on r.branch_id = b.id where b.code = 'gangnam' and r.no = $1`, room, start, start.Add(time.Hour), key)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func unlockBody(kind, key string) map[string]string {
	return map[string]string{"branch": "gangnam", "doorlockType": kind, "key": key}
}

// requestID sends an unlock request and returns its id.
func requestID(t *testing.T, c *servicetest.Client, path string, body any) string {
	t.Helper()
	var data struct {
		RequestID string `json:"requestId"`
	}
	c.Post(path, body).OK(t).Into(t, &data)
	if data.RequestID == "" {
		t.Fatal("no requestId")
	}
	return data.RequestID
}

// stream is a subscriber's response.
type stream struct {
	status int
	header http.Header
	id     string
	event  string
	data   map[string]any
	body   string
}

func subscribe(t *testing.T, s *servicetest.Stack, c *servicetest.Client, path string, query url.Values, lastEventID string) stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := stream{status: response.StatusCode, header: response.Header, body: string(body)}
	for lines := bufio.NewScanner(strings.NewReader(got.body)); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			got.id = value
		case "event":
			got.event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &got.data); err != nil {
				t.Fatalf("data %s: %v", value, err)
			}
		}
	}
	return got
}

// result checks that a subscriber received exactly one event with this data.
func (s stream) result(t *testing.T, status, device string, failoverKey any) {
	t.Helper()
	if s.status != http.StatusOK || s.header.Get("Content-Type") != "text/event-stream" || s.event != "door-result" {
		t.Fatalf("got %d %s: %s", s.status, s.header.Get("Content-Type"), s.body)
	}
	if strings.Count(s.body, "event:") != 1 || !strings.HasSuffix(s.body, "\n\n") {
		t.Errorf("not one whole event: %q", s.body)
	}
	fields := 3
	if failoverKey != nil {
		fields = 4 // and failoverKind
	}
	if len(s.data) != fields || s.data["status"] != status || s.data["device"] != device || s.data["failoverKey"] != failoverKey {
		t.Errorf("data %v, want %s %s %v", s.data, status, device, failoverKey)
	}
}

func waitOnline(t testing.TB, a *agenttest.Agent) {
	t.Helper()
	// The broker has acknowledged the agent's status, so it counts the agent as online.
	if err := a.Publish(protocol.Heartbeat{BootID: "boot", Connection: 1}); err != nil {
		t.Fatal(err)
	}
}

const (
	unlockPath    = "/door/v2/unlock"
	subscribePath = "/door/v2/unlock/subscribe"
	adminUnlock   = "/admin/door/v2/unlock/"
)

func TestUnlockDoor(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	c, key := s.Client(t), keyFor(t, s, 3)
	for kind, device := range map[string]string{"room": "room_3", "front": "front"} {
		id := requestID(t, c, unlockPath, unlockBody(kind, key))
		query := url.Values{"requestId": {id}, "key": {key}}
		first := subscribe(t, s, c, subscribePath, query, "")
		first.result(t, "SUCCESS", device, nil)
		if first.id != id || first.header.Get("Cache-Control") != "no-store" {
			t.Errorf("id %q, headers %v", first.id, first.header)
		}
		if again := subscribe(t, s, c, subscribePath, query, ""); again.body != first.body {
			t.Errorf("again: %q, first %q", again.body, first.body)
		}
		if reconnect := subscribe(t, s, c, subscribePath, query, id); reconnect.status != http.StatusNoContent || reconnect.body != "" {
			t.Errorf("reconnect: %d %q", reconnect.status, reconnect.body)
		}
	}
	if driven := a.Driven(); len(driven) != 3 { // the room, and both front doors
		t.Errorf("driven: %v", driven)
	}
}

func TestUnlockRefusals(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c, key := s.Client(t), keyFor(t, s, 1)
	body := func(change map[string]any) map[string]any {
		b := map[string]any{"branch": "gangnam", "doorlockType": "room", "key": key}
		for field, value := range change {
			b[field] = value
			if value == nil {
				delete(b, field)
			}
		}
		return b
	}
	for _, change := range []map[string]any{
		{"branch": nil}, {"doorlockType": nil}, {"key": nil}, {"branch": ""}, {"key": 5}, {"branch": "busan"}, {"branch": "강남"},
		{"doorlockType": "window"}, {"doorlockType": "FRONT"},
	} {
		c.Post(unlockPath, body(change)).Fails(t, 400, "IllegalArguemntError", "")
	}
	c.Post(unlockPath, "{").Fails(t, 400, "IllegalArguemntError", "")
	const invalid = "유효하지 않은 도어락 키입니다."
	for _, change := range []map[string]any{
		{"key": uuid.NewString()}, {"key": "not a uuid"}, {"branch": "hongdae"},
	} {
		c.Post(unlockPath, body(change)).Fails(t, 400, "ResourceNotExistException", invalid)
	}
	s.Clock.Advance(28 * time.Minute) // at most 2 minutes before the end
	s.Clock.Advance(10 * time.Minute)
	c.Post(unlockPath, body(nil)).Fails(t, 410, "ResourceValidTimePassedException", "도어락 해제 가능 시간이 아닙니다.")

	c.Get(subscribePath+"?key="+key).Fails(t, 400, "IllegalArguemntError", "")
	c.Get(subscribePath+"?requestId="+uuid.NewString()).Fails(t, 400, "IllegalArguemntError", "")
	c.Get(subscribePath+"?requestId="+uuid.NewString()+"&key="+key).Fails(t, 400, "ResourceNotExistException", invalid)
	c.Get(subscribePath+"?requestId=x&key="+key).Fails(t, 400, "ResourceNotExistException", invalid)
	c.Post("/door/unlock", nil).Fails(t, 410, "ApiVersionEndedException", "종료된 API입니다. V2 API를 사용해 주세요.")
}

func TestOfflineBranchAnswersWithPIN(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.StandaloneKeypads(t)
	c, key := s.Client(t), keyFor(t, s, 1)
	id := requestID(t, c, unlockPath, unlockBody("room", key))
	got := subscribe(t, s, c, subscribePath, url.Values{"requestId": {id}, "key": {key}}, "")
	pin, _ := got.data["failoverKey"].(string)
	if pin == "" {
		t.Errorf("no PIN: %s", got.body)
	}
	got.result(t, "FAILED", "room_1", pin)
	if got.data["failoverKind"] != "pin" {
		t.Errorf("kind of a static PIN: %s", got.body)
	}
	other := keyFor(t, s, 2)
	c.Get(subscribePath+"?requestId="+id+"&key="+other).Fails(t, 400, "ResourceNotExistException", "")
}

// Without a result not even headers are sent, because a 503 is impossible after them.
func TestNoResultInTime(t *testing.T) {
	t.Parallel()
	const limit = 12 * time.Second // a slow machine subscribes within it, too
	s := servicetest.Start(t, func(set *config.Settings) { set.Times.DoorResultTimeout = limit })
	s.StandaloneKeypads(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	a.Fail(agenttest.Faults{Silent: true})
	c, key := s.Client(t), keyFor(t, s, 1)
	id := requestID(t, c, unlockPath, unlockBody("room", key))
	began := time.Now()
	c.Get(subscribePath+"?requestId="+id+"&key="+key).Fails(t, 503, "AsyncRequestTimeoutException", "요청 시간이 초과되었습니다.")
	if took := time.Since(began); took < limit {
		t.Errorf("answered after %v", took)
	}
	late := subscribe(t, s, c, subscribePath, url.Values{"requestId": {id}, "key": {key}}, "")
	pin, _ := late.data["failoverKey"].(string)
	if pin == "" {
		t.Errorf("no PIN: %s", late.body)
	}
	late.result(t, "TIMEOUT", "room_1", pin)
}

func TestSubscriberWhoLeaves(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	a.Fail(agenttest.Faults{Silent: true})
	c, key := s.Client(t), keyFor(t, s, 1)
	id := requestID(t, c, unlockPath, unlockBody("room", key))
	a.Until(t, "the door is driven", func() bool { return len(a.Driven()) > 0 })
	ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+subscribePath+"?requestId="+id+"&key="+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := c.HTTP.Do(request); err == nil {
		response.Body.Close()
		t.Error("answered before there was a result")
	}
	a.Fail(agenttest.Faults{}) // the next ask makes it repeat the result
	subscribe(t, s, c, subscribePath, url.Values{"requestId": {id}, "key": {key}}, "").result(t, "SUCCESS", "room_1", nil)
}

func TestAdminUnlocks(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	const adminSubscribe = "/admin/door/v2/unlock/subscribe"
	for path, device := range map[string]string{"gangnam/front": "front", "gangnam/room/2": "room_2", "gangnam/front/9": "front"} {
		id := requestID(t, manager, adminUnlock+path, nil)
		subscribe(t, s, manager, adminSubscribe, url.Values{"requestId": {id}}, "").result(t, "SUCCESS", device, nil)
	}
	const forbidden = "해당 지점에 접근 권한이 없습니다."
	manager.Post(adminUnlock+"hongdae/front", nil).Fails(t, 403, "AuthorizationException", forbidden)
	manager.Post(adminUnlock+"busan/front", nil).Fails(t, 403, "AuthorizationException", forbidden)
	hq.Post(adminUnlock+"busan/front", nil).Fails(t, 404, "ResourceNotFoundException", "")
	hq.Post(adminUnlock+"gangnam/window", nil).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post(adminUnlock+"gangnam/room", nil).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post(adminUnlock+"gangnam/room/two", nil).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post(adminUnlock+"gangnam/room/99", nil).Fails(t, 404, "ResourceNotFoundException", "")

	elsewhere := requestID(t, hq, adminUnlock+"hongdae/front", nil) // offline
	manager.Get(adminSubscribe+"?requestId="+elsewhere).Fails(t, 403, "AuthorizationException", forbidden)
	manager.Get(adminSubscribe+"?requestId="+uuid.NewString()).Fails(t, 404, "ResourceNotFoundException", "")
	got := subscribe(t, s, hq, adminSubscribe, url.Values{"requestId": {elsewhere}}, "")
	pin, _ := got.data["failoverKey"].(string)
	got.result(t, "FAILED", "front", pin)
	if pin == "" {
		t.Error("no PIN for the headquarters")
	}

	nobody := s.Client(t)
	nobody.Post(adminUnlock+"gangnam/front", nil).Fails(t, 401, "AuthenticationError", "")
	nobody.Get(adminSubscribe+"?requestId="+elsewhere).Fails(t, 401, "AuthenticationError", "")
	manager.Post("/admin/door/unlock/gangnam/front", nil).Fails(t, 410, "ApiVersionEndedException", "")
	nobody.Post("/admin/door/unlock/gangnam/front", nil).Fails(t, 401, "AuthenticationError", "")
}
