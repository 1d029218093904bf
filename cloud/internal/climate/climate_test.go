package climate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doors ignores what devices do not need.
type doors struct{}

func (doors) Claim(context.Context, string, protocol.Claim) error   { return nil }
func (doors) Result(context.Context, string, protocol.Result) error { return nil }

type house struct {
	*climate.Service
	t    *testing.T
	db   *postgres.DB
	addr string

	mu  sync.Mutex
	now time.Time // zero: the real time
}

func build(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, db: pgtest.New(t)}
	if _, err := h.db.Pool.Exec(t.Context(), `insert into branch (code) select unnest($1::text[])`, []string{"gangnam", "hongdae"}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	h.Service = &climate.Service{DB: h.db, Log: log, Now: h.clock}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	b, err := broker.New(broker.Config{Listener: l, Doors: doors{}, Devices: h.Service, Log: log,
		Credentials: func(_ context.Context, usernames []string, found func(username, branch string, secretHash []byte)) error {
			for _, username := range usernames {
				hash := sha256.Sum256([]byte(username + "-demo"))
				found(username, username[len("agent-"):], hash[:])
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h.Link = b
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.IsZero() {
		return time.Now()
	}
	return h.now
}

func (h *house) at(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = t
}

func (h *house) agent(branch string, inventory protocol.Inventory) *agenttest.Agent {
	h.t.Helper()
	return agenttest.Connect(h.t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(h.addr), Inventory: inventory})
}

func rows[T any](h *house, sql string, args ...any) []T {
	h.t.Helper()
	found, err := h.db.Pool.Query(h.t.Context(), sql, args...)
	if err != nil {
		h.t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[T])
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// until looks again until ok reports true, for what no event tells.
func (h *house) until(what string, ok func() bool) {
	h.t.Helper()
	for limit := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func airConditioner(name string, options ...string) protocol.AirConditioner {
	u := protocol.AirConditioner{Name: name}
	for _, o := range options {
		u.Options = append(u.Options, protocol.Option{Name: o})
	}
	return u
}

func TestInventoryIsKept(t *testing.T) {
	t.Parallel()
	h := build(t)
	online := func(branch string) bool {
		return len(rows[bool](h, `select true from agent_inventory i join branch b on b.id = i.branch_id where b.code = $1 and i.online`, branch)) == 1
	}
	a := h.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool", "heat")}})
	h.agent("hongdae", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	h.until("both inventories", func() bool { return online("gangnam") && online("hongdae") })

	// One name at two branches is two options.
	for _, branch := range []string{"gangnam", "hongdae"} {
		if of, err := h.BranchOfOption(t.Context(), protocol.LeafID(branch, "main", "off")); of != branch || err != nil {
			t.Errorf("option of %s belongs to %q, %v", branch, of, err)
		}
	}
	// Options that are gone can be sent no more; those that stay keep their ids.
	changed := protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool", "dry")}}
	if err := a.Publish(protocol.Status{State: protocol.Online, BootID: "boot", Connection: 1, Inventory: &changed}); err != nil {
		t.Fatal(err)
	}
	heat := protocol.LeafID("gangnam", "main", "heat")
	h.until("the change", func() bool {
		_, err := h.BranchOfOption(t.Context(), heat)
		return errors.Is(err, climate.ErrUnknownOption)
	})
	if err := h.Command(t.Context(), "admin:hq", heat); !errors.Is(err, climate.ErrUnknownOption) {
		t.Errorf("sent what is gone: %v", err)
	}
	for _, option := range []string{"off", "cool", "dry"} {
		if err := h.Command(t.Context(), "admin:hq", protocol.LeafID("gangnam", "main", option)); err != nil {
			t.Errorf("%s: %v", option, err)
		}
	}
	a.Close()
	h.until("offline", func() bool { return !online("gangnam") })
	if tree, err := h.Tree(t.Context(), "gangnam"); len(tree) != 3 || err != nil {
		t.Errorf("tree while away: %v, %v", tree, err)
	}
	if _, err := h.Tree(t.Context(), "busan"); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("unknown branch: %v", err)
	}
}

func TestCommandIsSentOnceThoughAskedOften(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.AnswerTimeout = 3 * protocol.RepeatInterval
	a := h.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	off := protocol.LeafID("gangnam", "main", "off")
	h.until("the inventory", func() bool { _, err := h.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	if err := h.Command(t.Context(), "admin:hq", off); !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
	if n := len(a.Commands()); n < 2 || n > 4 { // the test agent writes down repetitions too
		t.Errorf("asked %d times", n)
	}
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	if err := h.Command(t.Context(), "admin:hq", off); !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
	a.Fail(agenttest.Faults{})
	if err := h.Command(t.Context(), "admin:hq", off); err != nil {
		t.Errorf("got %v", err)
	}
	want := []string{"unanswered", "failed", "sent"}
	if got := rows[string](h, `select outcome from airconditioner_command where $1 order by id`, true); !cmp.Equal(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

func TestAnotherBranchCannotAnswer(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.AnswerTimeout = 3 * protocol.RepeatInterval
	a := h.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	off := protocol.LeafID("gangnam", "main", "off")
	h.until("the inventory", func() bool { _, err := h.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	done := make(chan error, 1)
	go func() { done <- h.Command(t.Context(), "admin:hq", off) }()
	a.Until(t, "the command", func() bool { return len(a.Commands()) > 0 })
	// Even one who knew the id could not: answers count for the branch of their topic.
	id := a.LastRequest()
	if err := h.Commanded(t.Context(), "hongdae", protocol.ClimateResult{RequestID: id, AirConditionerID: off, Outcome: protocol.ClimateSent}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAnswerAboutAnotherOptionConfirmsNothing(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool")}})
	off, cool := protocol.LeafID("gangnam", "main", "off"), protocol.LeafID("gangnam", "main", "cool")
	h.until("the inventory", func() bool { _, err := h.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	done := make(chan error, 1)
	go func() { done <- h.Command(t.Context(), "admin:hq", off) }()
	a.Until(t, "the command", func() bool { return len(a.Commands()) > 0 })
	err := h.Commanded(t.Context(), "gangnam", protocol.ClimateResult{RequestID: a.LastRequest(), AirConditionerID: cool, Outcome: protocol.ClimateSent})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestAnnouncedTogether: of news that come together each branch gets its own, the last of them, in one go.
func TestAnnouncedTogether(t *testing.T) {
	t.Parallel()
	h := build(t)
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	status := func(branch, version string, units ...protocol.AirConditioner) climate.Announcement {
		return climate.Announcement{Branch: branch, Online: true, Status: &protocol.Status{State: protocol.Online, BootID: "boot", AgentVersion: version,
			StartedAt: start, Inventory: &protocol.Inventory{AirConditioners: units}, SelfTest: []protocol.SelfTest{{Name: "relay front_1", OK: true}}}}
	}
	goes := func(branch string) climate.Announcement {
		return climate.Announcement{Branch: branch, Status: &protocol.Status{State: protocol.Offline}}
	}
	seen := func(branch string) climate.Announcement { return climate.Announcement{Branch: branch, Online: true} }
	lost := func(branch string) climate.Announcement { return climate.Announcement{Branch: branch} }
	say := func(at time.Duration, news ...climate.Announcement) {
		t.Helper()
		h.at(start.Add(at))
		if err := h.Announced(t.Context(), news); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		got := rows[string](h, `
			select b.code || ' ' || i.version || ' ' || i.online || ' ' || extract(minute from i.seen_at) || ' ' || jsonb_array_length(i.self_test)
				|| ' ' || (select count(*) from airconditioner_option o where o.branch_id = i.branch_id)
			from agent_inventory i join branch b on b.id = i.branch_id order by b.code`)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	say(0, seen("gangnam"), lost("hongdae"), seen("nowhere"))
	want() // nobody has said anything yet
	say(time.Minute, seen("hongdae"), status("hongdae", "1", airConditioner("main", "off", "cool")), status("nowhere", "1"),
		status("gangnam", "1", airConditioner("main", "off")), goes("hongdae"))
	want("gangnam 1 true 1 1 1", "hongdae 1 true 1 1 2")
	say(2*time.Minute, status("gangnam", "1", airConditioner("main", "off")), lost("hongdae"))
	want("gangnam 1 true 2 1 1", "hongdae 1 false 1 1 2")
	say(3*time.Minute, status("gangnam", "2", airConditioner("main", "off", "heat", "cool")), status("hongdae", "1", airConditioner("main", "off", "cool")))
	want("gangnam 2 true 3 1 3", "hongdae 1 true 3 1 2")
	say(4*time.Minute, status("gangnam", "3"), lost("gangnam"))
	want("gangnam 3 false 4 1 0", "hongdae 1 true 3 1 2")
}

func gangnam(t protocol.Telemetry) []postgres.Telemetry {
	return []postgres.Telemetry{{Branch: "gangnam", Telemetry: t}}
}

func TestTelemetryIsKept(t *testing.T) {
	t.Parallel()
	h := build(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h.at(now)
	request := uuid.NewString()
	wrongClock := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	told := append(gangnam(protocol.Telemetry{At: wrongClock,
		Readings: []protocol.Reading{{Location: "로비", Celsius: 20, RelativeHumidity: 41}},
		Events:   []protocol.Event{{Kind: protocol.EventEnergized, Device: "front_1", RequestID: request}},
	}), gangnam(protocol.Telemetry{At: wrongClock,
		Readings: []protocol.Reading{{Location: "로비", Celsius: 21.5, RelativeHumidity: 40}},
		Events:   []protocol.Event{{Kind: protocol.EventReleased, Device: "front_1", RequestID: request, EnergizedMs: 3000}},
	})...)
	err := h.Telemetry(t.Context(), told)
	if err != nil {
		t.Fatal(err)
	}
	if got := rows[time.Time](h, `select at from sensor_reading where location = $1 and celsius = 21.5 and humidity = 40`, "로비"); len(got) != 1 || !got[0].Equal(now) {
		t.Errorf("readings at %v, want the time of arrival", got)
	}
	if got := rows[string](h, `select kind || coalesce(' ' || (detail ->> 'energizedMs'), '') from door_event where request_id = $1 order by id`, request); !cmp.Equal(got, []string{"energized", "released 3000"}) {
		t.Errorf("events %v", got)
	}
}

func TestForcedAndHeldDoors(t *testing.T) {
	t.Parallel()
	h := build(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h.at(now)
	watched := protocol.Door{Device: "front_1", Kind: protocol.DoorFront, Contact: true, Exit: true}
	blind := protocol.Door{Device: "room_1", Kind: protocol.DoorRoom, Contact: true}
	err := h.Announced(t.Context(), []climate.Announcement{{Branch: "gangnam", Online: true,
		Status: &protocol.Status{State: protocol.Online, BootID: "boot", Inventory: &protocol.Inventory{Doors: []protocol.Door{watched, blind}}}}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(after time.Duration, kind protocol.EventKind, device string) {
		t.Helper()
		h.at(now.Add(after))
		if err := h.Telemetry(t.Context(), gangnam(protocol.Telemetry{Events: []protocol.Event{{Kind: kind, Device: device}}})); err != nil {
			t.Fatal(err)
		}
	}
	count := func(kind string) int {
		return len(rows[string](h, `select device from door_event where kind = $1`, kind))
	}
	say(0, protocol.EventExitPressed, "front_1")
	say(5*time.Second, protocol.EventDoorOpened, "front_1")
	say(7*time.Second, protocol.EventDoorClosed, "front_1")
	say(time.Minute, protocol.EventReleased, "front_1")
	say(time.Minute+9*time.Second, protocol.EventDoorOpened, "front_1")
	say(time.Minute+12*time.Second, protocol.EventDoorClosed, "front_1")
	say(2*time.Minute, protocol.EventDoorOpened, "room_1") // somebody leaves, and no button tells
	if n := count(postgres.DoorForced); n != 0 {
		t.Fatalf("%d doors forced, want none", n)
	}
	say(3*time.Minute, protocol.EventDoorOpened, "front_1")
	if n := count(postgres.DoorForced); n != 1 {
		t.Fatalf("%d doors forced, want 1", n)
	}
	say(3*time.Minute+30*time.Second, protocol.EventDoorClosed, "room_1")
	mark := func(at time.Duration) []postgres.HeldDoor {
		t.Helper()
		var held []postgres.HeldDoor
		err := h.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
			held, err = postgres.MarkHeldDoors(ctx, tx, 2*time.Minute, now.Add(at))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	if held := mark(5 * time.Minute); len(held) != 0 {
		t.Errorf("held after exactly two minutes: %v", held)
	}
	if held := mark(5*time.Minute + time.Second); !cmp.Equal(held, []postgres.HeldDoor{{Branch: "gangnam", Device: "front_1"}}) {
		t.Errorf("held: %v", held)
	}
	if held := mark(9 * time.Minute); len(held) != 0 {
		t.Errorf("told twice: %v", held)
	}
}

func TestPruneKeepsWhatIsYoung(t *testing.T) {
	t.Parallel()
	h := build(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, age := range []time.Duration{0, 100 * 24 * time.Hour, 400 * 24 * time.Hour} {
		h.at(now.Add(-age))
		err := h.Telemetry(t.Context(), gangnam(protocol.Telemetry{
			Readings: []protocol.Reading{{Location: "로비"}},
			Events:   []protocol.Event{{Kind: protocol.EventDoorClosed, Device: "front_1"}},
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	deleted, err := postgres.Prune(t.Context(), h.db.Pool, now.Add(-90*24*time.Hour), now.Add(-365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	readings := rows[time.Time](h, `select at from sensor_reading where location = $1`, "로비")
	events := rows[time.Time](h, `select at from door_event where device = $1`, "front_1")
	if deleted != 3 || len(readings) != 1 || len(events) != 2 {
		t.Errorf("deleted %d, left %v and %v", deleted, readings, events)
	}
}
