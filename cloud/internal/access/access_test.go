package access_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// house is a test fixture: two branches with their doors, a broker, and one replica of the service.
type house struct {
	*access.Service
	t      testing.TB
	db     *postgres.DB
	keys   *seal.Keyring
	grants ed25519.PrivateKey
	addr   string
	link   *broker.Broker

	mu     sync.Mutex
	offset time.Duration // of the service's clock
}

// devices implements the parts of the device interface that doors do not need, as no-ops.
type devices struct{}

func (devices) Announced(context.Context, []device.Announcement) error                   { return nil }
func (devices) Telemetry(context.Context, []postgres.Telemetry) error                    { return nil }
func (devices) Commanded(context.Context, protocol.Agent, protocol.ClimateResult) error  { return nil }
func (devices) Measured(context.Context, protocol.Agent, protocol.SensorsReadings) error { return nil }
func (devices) SettingsFile(context.Context, protocol.Agent, protocol.SettingsFile) error {
	return nil
}
func (devices) DiagnosticsLog(context.Context, protocol.Agent, protocol.DiagnosticsLog) error {
	return nil
}
func (devices) DiagnosticsReport(context.Context, protocol.Agent, protocol.DiagnosticsReport) error {
	return nil
}
func (devices) Rekeyed(context.Context, protocol.Agent, protocol.Rekeyed) error { return nil }
func (devices) TakenOver(context.Context, protocol.Agent) error                 { return nil }

func build(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, db: pgtest.New(t), grants: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}
	var err error
	if h.keys, err = seal.New(bytes.Repeat([]byte{1}, seal.KeySize)); err != nil {
		t.Fatal(err)
	}
	h.exec(`insert into branch (code, front_doors) values ('gangnam', '{front_1,front_2}'), ('hongdae', '{front_1}')`)
	h.exec(`insert into room (branch_id, no) select id, no from branch, generate_series(1, 3) no`)
	h.exec(`insert into door_pin (branch_id, device, pin) select id, 'front', $1 from branch where code = 'gangnam'`, h.keys.Seal(access.PINPurpose, []byte("4711")))
	h.exec(`insert into door_pin (branch_id, device, pin) select id, 'room_1', $1 from branch where code = 'gangnam'`, h.keys.Seal(access.PINPurpose, []byte("0815")))
	for _, branch := range []string{"gangnam", "hongdae"} {
		hash := sha256.Sum256([]byte(protocol.AgentID(branch) + "-demo"))
		if err := postgres.InsertAgent(t.Context(), h.db.Pool, branch, postgres.NewCredential{Username: protocol.AgentID(branch), SecretHash: hash[:]}); err != nil {
			t.Fatal(err)
		}
		h.exec(`update agent_credential set active = true where username = $1`, protocol.AgentID(branch))
	}
	h.Service = h.replica()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	h.link, err = broker.New(broker.Config{Listener: l, Doors: h.Service, Devices: devices{}, Climate: devices{}, Log: h.log(),
		Credentials: func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			return postgres.FindAgents(ctx, h.db.Pool, usernames, found)
		}})
	if err != nil {
		t.Fatal(err)
	}
	h.Link = h.link
	h.run(h.link.Run)
	h.run(h.Run)
	return h
}

// replica returns another service on the same database. It has no broker, because an agent connects to one broker only.
func (h *house) replica() *access.Service {
	return &access.Service{DB: h.db, Keys: h.keys, GrantKeys: h.ring(), Log: h.log(), Now: h.now}
}

func (h *house) ring() *grantkey.Ring {
	return &grantkey.Ring{DB: h.db, Keys: h.keys, First: []ed25519.PrivateKey{h.grants}, Log: h.log()}
}

func (h *house) log() *slog.Logger { return slog.New(slog.NewTextHandler(h.t.Output(), nil)) }

// run runs a function until the test ends.
func (h *house) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

func (h *house) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.offset)
}

// at sets the service's clock.
func (h *house) at(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offset = time.Until(t)
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if len(args) == 0 {
		args = []any{}
	}
	if _, err := h.db.Pool.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func one[T any](h *house, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.db.Pool.QueryRow(h.t.Context(), sql, args...).Scan(&v); err != nil {
		h.t.Fatal(err)
	}
	return v
}

// reserve adds a paid one-hour reservation of a room in gangnam that began half an hour ago, and returns its key.
func (h *house) reserve(room int) (key string) {
	h.t.Helper()
	start := time.Now().Truncate(10 * time.Minute).Add(-30 * time.Minute)
	return h.reserveAt("gangnam", room, start, start.Add(time.Hour))
}

func (h *house) reserveAt(branch string, room int, start, end time.Time) (key string) {
	h.t.Helper()
	key = uuid.NewString()
	h.exec(`
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, doorlock_key)
		select b.id, r.id, 'DONE', 'CUSTOMER', $3, $4, tstzrange($3, $4::timestamptz + interval '10 minutes'), '카드', 1000, $5
		from branch b join room r on r.branch_id = b.id where b.code = $1 and r.no = $2`, branch, room, start, end, key)
	return key
}

func (h *house) agent(branch string) *agenttest.Agent {
	h.t.Helper()
	return agenttest.Connect(h.t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(h.addr),
		Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}})
}

func (h *house) request(kind, key string) (id string) {
	h.t.Helper()
	id, err := h.Request(h.t.Context(), "gangnam", kind, key)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *house) await(s *access.Service, id, key string) access.Outcome {
	h.t.Helper()
	outcome, err := s.Await(h.t.Context(), "198.51.100.7", id, key)
	if err != nil {
		h.t.Fatal(err)
	}
	if outcome.Status == access.Success {
		return outcome
	}
	// The press was accepted, so whatever has happened since, the guest gets a reason.
	kind := strings.SplitN(outcome.Device, "_", 2)[0]
	if d, err := h.Why(h.t.Context(), key, "", kind); err != nil || d.Code == access.UnknownKey {
		h.t.Errorf("why after %+v: %s, %v", outcome, d.Code, err)
	}
	return outcome
}

func (h *house) state(id string) string {
	h.t.Helper()
	return one[string](h, `select state from door_request where id = $1`, id)
}

func TestRoomOpens(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	key := h.reserve(1)
	id := h.request(access.Room, key)
	got := h.await(h.Service, id, key)
	if want := (access.Outcome{Status: access.Success, Device: "room_1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if driven := a.Driven(); len(driven) != 1 || driven[0].Device != "room_1" || driven[0].RequestID != id {
		t.Errorf("driven: %+v", driven)
	}
	if again := h.await(h.Service, id, key); again != got {
		t.Errorf("the second subscriber got %+v", again)
	}
}

func TestFrontOpensAllDoorsOrFails(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	key := h.reserve(1)
	id := h.request(access.Front, key)
	if got, want := h.await(h.Service, id, key), (access.Outcome{Status: access.Success, Device: "front"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(a.Driven()) != 2 {
		t.Errorf("driven: %+v", a.Driven())
	}
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	id = h.request(access.Front, key)
	if got, want := h.await(h.Service, id, key), (access.Outcome{Status: access.Failed, Device: "front", PIN: "4711", Kind: access.StaticPIN}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhoMayOpen(t *testing.T) {
	t.Parallel()
	h := build(t)
	start := time.Now().Truncate(10 * time.Minute).Add(10 * 24 * time.Hour)
	end := start.Add(time.Hour)
	key := h.reserveAt("gangnam", 1, start, end)
	canceled := h.reserveAt("gangnam", 2, start, end)
	h.exec(`update reservation set state = 'CANCELED', doorlock_key = null where doorlock_key = $1`, canceled)
	h.at(start)
	for _, test := range []struct {
		name, branch, kind, key string
		at                      time.Time
		want                    error
	}{
		{"unknown branch", "jeju", access.Room, key, start, postgres.ErrNoBranch},
		{"no branch code", "../x", access.Room, key, start, postgres.ErrNoBranch},
		{"unknown kind", "gangnam", "window", key, start, access.ErrUnknownDoor},
		{"unknown branch and malformed key", "jeju", access.Room, "x", start, postgres.ErrNoBranch},
		{"malformed key", "gangnam", access.Room, "x", start, access.ErrInvalidKey},
		{"unknown key", "gangnam", access.Room, uuid.NewString(), start, access.ErrInvalidKey},
		{"nil key", "gangnam", access.Room, uuid.Nil.String(), start, access.ErrInvalidKey},
		{"key of another branch", "hongdae", access.Front, key, start, access.ErrInvalidKey},
		{"cancelled", "gangnam", access.Room, canceled, start, access.ErrInvalidKey},
		{"before the window", "gangnam", access.Room, key, start.Add(-2*time.Minute - time.Second), access.ErrOutsideWindow},
		{"first moment of the window", "gangnam", access.Room, key, start.Add(-2 * time.Minute).Add(10 * time.Millisecond), nil},
		{"last moment of the window", "gangnam", access.Front, key, end.Add(-2*time.Minute - time.Second), nil},
		{"end of the window", "gangnam", access.Room, key, end.Add(-2 * time.Minute), access.ErrOutsideWindow},
	} {
		h.at(test.at)
		_, err := h.Request(t.Context(), test.branch, test.kind, test.key)
		if !errors.Is(err, test.want) || (test.want == nil) != (err == nil) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	if n := one[int](h, `select count(*) from door_request`); n != 2 {
		t.Errorf("%d requests written, want 2", n)
	}
}

// TestOpenedDisclosesNoPIN checks that Opened returns the result without disclosing a PIN.
func TestOpenedDisclosesNoPIN(t *testing.T) {
	t.Parallel()
	h := build(t)
	actor := access.Actor{Name: "discord:1"}
	for _, online := range []bool{false, true} {
		if online {
			h.agent("gangnam")
		}
		id, err := h.RequestAs(t.Context(), actor, "gangnam", access.Room, 1)
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := h.Opened(t.Context(), id); opened != online || err != nil {
			t.Errorf("opened %v, %v, want %v", opened, err, online)
		}
	}
	if n := one[int](h, `select count(*) from audit where action = $1`, "pin.reveal"); n != 0 {
		t.Errorf("%d PINs were revealed", n)
	}
}

func TestPressesOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.Limits = &limit.Limiter{DB: h.db}
	h.agent("gangnam").Fail(agenttest.Faults{IgnoreAsks: true})
	key, other := h.reserve(1), h.reserve(2)
	press := func(kind, key string) error {
		_, err := h.Request(t.Context(), "gangnam", kind, key)
		return err
	}
	for n := range access.PressesByKey.Burst {
		if err := press(access.Front, key); err != nil {
			t.Fatalf("press %d: %v", n+1, err)
		}
	}
	exceeded := new(limit.ExceededError)
	// On a slow machine, a second may have passed since the first request.
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		err = press(access.Front, key)
	}
	if !errors.As(err, &exceeded) || exceeded.RetryAfter <= 0 || exceeded.RetryAfter > time.Second {
		t.Errorf("after the burst: %v, want to wait at most 1s", err)
	}
	began, accepted := time.Now(), 0
	for n := range len(key) { // the same key, written with an upper-case letter
		spelled := key[:n] + strings.ToUpper(key[n:n+1]) + key[n+1:]
		if spelled != key && press(access.Front, spelled) == nil {
			accepted++
		}
	}
	if refilled := 1 + int(time.Since(began)/access.PressesByKey.Interval); accepted > refilled {
		t.Errorf("%d presses of the key written otherwise were accepted, want at most %d", accepted, refilled)
	}
	if err := press(access.Room, key); err != nil {
		t.Errorf("another door: %v", err)
	}
	if err := press(access.Front, other); err != nil {
		t.Errorf("another key: %v", err)
	}
}

func TestPressesOfStaffAreLimited(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.Limits = &limit.Limiter{DB: h.db}
	rule := access.PressesByStaff
	for range rule.Max {
		_ = h.Limits.Take(t.Context(), rule, "admin:hq") // as if another replica had counted it
	}
	var err error
	for n := 0; err == nil && n < rule.Max; n++ {
		_, err = h.RequestAs(t.Context(), access.Actor{Name: "admin:hq"}, "gangnam", access.Front, 0)
	}
	if !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("got %v, want ErrExceeded", err)
	}
}

// Requests with the same key for the same door join the request in progress, even within one batch.
func TestPressJoinsTheRequestInProgress(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	a.Fail(agenttest.Faults{IgnoreAsks: true})
	key, other := h.reserve(1), h.reserve(2)
	ids := make([]string, 50)
	var presses sync.WaitGroup
	for i := range ids {
		presses.Go(func() { ids[i] = h.request(access.Front, key) })
	}
	presses.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids %v, want one", ids)
		}
	}
	for name, id := range map[string]string{"another door": h.request(access.Room, key), "another key": h.request(access.Front, other)} {
		if id == ids[0] {
			t.Errorf("%s joined the request", name)
		}
	}
	if got := h.await(h.Service, ids[0], key); got.Status != access.Failed {
		t.Errorf("got %+v, want FAILED", got)
	}
	a.Fail(agenttest.Faults{Silent: true})
	id := h.request(access.Front, key)
	if id == ids[0] {
		t.Fatal("joined a request that had ended")
	}
	a.Until(t, "the drives", func() bool { return len(a.Driven()) == 2 })
	if again := h.request(access.Front, key); again != id {
		t.Error("did not join the granted request")
	}
	// A grant without a result counts as ended after the time in which a lock may be driven.
	h.exec(`update door_request set created_at = created_at - interval '4 seconds' where id = $1`, id)
	if again := h.request(access.Front, key); again == id {
		t.Error("joined a request that can no longer open the door")
	}
}

func TestRoomIsAPrecondition(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.agent("gangnam")
	key := h.reserve(1)
	for room, want := range map[int]error{0: nil, 1: nil, 2: access.ErrOtherRoom} {
		if _, err := h.RequestFor(t.Context(), "gangnam", access.Front, key, room); !errors.Is(err, want) {
			t.Errorf("room %d: got %v, want %v", room, err, want)
		}
	}
	if n := one[int](h, `select count(*) from door_request where kind = $1`, "front"); n > 2 {
		t.Errorf("%d requests, want none for the wrong room", n)
	}
}

func TestOfflineBranchFailsAtOnceWithPIN(t *testing.T) {
	t.Parallel()
	h := build(t)
	key := h.reserve(1)
	id := h.request(access.Room, key)
	if state := h.state(id); state != "FAILED" {
		t.Errorf("the request is %s, want FAILED from the beginning", state)
	}
	got := h.await(h.Service, id, key)
	if want := (access.Outcome{Status: access.Failed, Device: "room_1", PIN: "0815", Kind: access.StaticPIN}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if again := h.await(h.Service, id, key); again != got {
		t.Errorf("then %+v", again)
	}
	if n := one[int](h, `select count(*) from audit where action = 'pin.reveal' and target = 'room_1' and actor like 'customer:%' and address = '' and detail ->> 'requestId' = $1`, id); n != 2 {
		t.Errorf("%d reveals in the audit log, want 2", n)
	}
	if one[*time.Time](h, `select revealed_at from door_pin where device = $1`, "room_1") == nil {
		t.Error("the PIN does not count as revealed")
	}
	if leaked := one[int](h, `select count(*) from audit where detail::text like $1`, "%0815%"); leaked != 0 {
		t.Error("a PIN is in the audit log")
	}
}

// TestPINWhoseKeyIsLost presses at a door whose PIN no key opens. The guest must read that the door stays shut, not an error of the service.
func TestPINWhoseKeyIsLost(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.exec(`update door_pin set pin = sha256(pin)`)
	key := h.reserve(1)
	got := h.await(h.Service, h.request(access.Room, key), key)
	if want := (access.Outcome{Status: access.Failed, Device: "room_1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if one[*time.Time](h, `select revealed_at from door_pin where device = $1`, "room_1") != nil {
		t.Error("the PIN counts as revealed")
	}
}

func TestUnknownRequestsAndForeignKeys(t *testing.T) {
	t.Parallel()
	h := build(t)
	key, other := h.reserve(1), h.reserve(2)
	id := h.request(access.Room, key)
	staff, err := h.RequestAs(t.Context(), access.Actor{Name: "admin:hq"}, "gangnam", access.Front, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ id, key string }{
		"another's key":         {id, other},
		"malformed key":         {id, "x"},
		"unknown request":       {uuid.NewString(), key},
		"malformed request":     {"x", key},
		"key for staff request": {staff, key},
	} {
		if _, err := h.Await(t.Context(), "", test.id, test.key); !errors.Is(err, access.ErrInvalidKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.AwaitAs(t.Context(), access.Actor{}, uuid.NewString()); !errors.Is(err, access.ErrUnknownRequest) {
		t.Errorf("staff: %v", err)
	}
	if branch, err := h.BranchOf(t.Context(), id); branch != "gangnam" || err != nil {
		t.Errorf("branch %q, %v", branch, err)
	}
}

func TestStaff(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	actor := access.Actor{Name: "admin:gangnam-manager", Address: "192.0.2.1", RequestID: "r"}
	for _, test := range []struct {
		kind   string
		room   int
		device string
		want   error
	}{
		{access.Front, 0, "front", nil},
		{access.Room, 3, "room_3", nil},
		{access.Room, 9, "", access.ErrUnknownRoom},
		{"window", 0, "", access.ErrUnknownDoor},
	} {
		id, err := h.RequestAs(t.Context(), actor, "gangnam", test.kind, test.room)
		if !errors.Is(err, test.want) {
			t.Errorf("%s %d: %v", test.kind, test.room, err)
		}
		if err != nil {
			continue
		}
		got, err := h.AwaitAs(t.Context(), actor, id)
		if want := (access.Outcome{Status: access.Success, Device: test.device}); got != want || err != nil {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if len(a.Driven()) != 3 {
		t.Errorf("driven: %+v", a.Driven())
	}
	if n := one[int](h, `select count(*) from audit where action = 'door.unlock' and actor = $1 and address = '192.0.2.1'`, actor.Name); n != 2 {
		t.Errorf("%d entries in the audit log, want 2", n)
	}
	if _, err := h.RequestAs(t.Context(), actor, "jeju", access.Front, 0); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("unknown branch: %v", err)
	}
}
