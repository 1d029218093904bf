package device_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a service with a database of two branches and a clock that tests set.
type fixture struct {
	*device.Service
	t   *testing.T
	db  *postgres.DB
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: pgtest.New(t), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	if _, err := f.db.Pool.Exec(t.Context(), `insert into branch (code) select unnest($1::text[])`, []string{"gangnam", "hongdae"}); err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"gangnam", "hongdae"} {
		f.enroll(agent(branch))
		if err := (&device.Service{DB: f.db, Log: slog.New(slog.DiscardHandler)}).Activate(t.Context(), agent(branch).Username, "test"); err != nil {
			t.Fatal(err)
		}
	}
	f.Service = &device.Service{DB: f.db, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: func() time.Time { return f.now }}
	return f
}

func agent(branch string) protocol.Agent {
	return protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}
}

// sendStatus has an agent send a status with the fields that every status has; without an inventory it has no devices.
func (f *fixture) sendStatus(from protocol.Agent, s protocol.Status) {
	f.t.Helper()
	s.State, s.BootID, s.StartedAt = protocol.Online, "boot", f.now
	if s.Inventory == nil {
		s.Inventory = &protocol.Inventory{}
	}
	if err := f.Announced(f.t.Context(), []device.Announcement{{Agent: from, Online: true, Status: &s}}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) enroll(agent protocol.Agent) {
	f.t.Helper()
	if err := postgres.InsertAgent(f.t.Context(), f.db.Pool, agent.Branch, postgres.NewCredential{Username: agent.Username, SecretHash: []byte("hash")}); err != nil {
		f.t.Fatal(err)
	}
}

func rows[T any](f *fixture, sql string, args ...any) []T {
	f.t.Helper()
	found, err := f.db.Pool.Query(f.t.Context(), sql, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[T])
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func airConditioner(name string, options ...string) protocol.AirConditioner {
	u := protocol.AirConditioner{Name: name}
	for _, o := range options {
		u.Options = append(u.Options, protocol.Option{Name: o})
	}
	return u
}

func TestLastAnnouncementOfEachBranchWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	status := func(branch, version string, units ...protocol.AirConditioner) device.Announcement {
		return device.Announcement{Agent: agent(branch), Online: true, Status: &protocol.Status{State: protocol.Online, BootID: "boot", AgentVersion: version,
			StartedAt: start, Inventory: &protocol.Inventory{AirConditioners: units}, SelfTest: []protocol.SelfTest{{Name: "relay front_1", OK: true}}}}
	}
	will := func(branch string) device.Announcement {
		return device.Announcement{Agent: agent(branch), Status: &protocol.Status{State: protocol.Offline}}
	}
	connected := func(branch string) device.Announcement {
		return device.Announcement{Agent: agent(branch), Online: true}
	}
	disconnected := func(branch string) device.Announcement { return device.Announcement{Agent: agent(branch)} }
	announce := func(at time.Duration, announcements ...device.Announcement) {
		t.Helper()
		f.now = start.Add(at)
		if err := f.Announced(t.Context(), announcements); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		got := rows[string](f, `
			select b.code || ' ' || i.version || ' ' || i.online || ' ' || extract(minute from i.seen_at) || ' ' || jsonb_array_length(i.self_test)
				|| ' ' || (select count(*) from airconditioner_option o where o.branch_id = i.branch_id)
			from agent_inventory i join branch b on b.id = i.branch_id order by b.code`)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	announce(0, connected("gangnam"), disconnected("hongdae"), connected("nowhere"))
	want() // no agent has sent a status yet
	announce(time.Minute, connected("hongdae"), status("hongdae", "1", airConditioner("main", "off", "cool")), status("nowhere", "1"),
		status("gangnam", "1", airConditioner("main", "off")), will("hongdae"))
	want("gangnam 1 true 1 1 1", "hongdae 1 true 1 1 2")
	announce(2*time.Minute, status("gangnam", "1", airConditioner("main", "off")), disconnected("hongdae"))
	want("gangnam 1 true 2 1 1", "hongdae 1 false 1 1 2")
	announce(3*time.Minute, status("gangnam", "2", airConditioner("main", "off", "heat", "cool")), status("hongdae", "1", airConditioner("main", "off", "cool")))
	want("gangnam 2 true 3 1 3", "hongdae 1 true 3 1 2")
	announce(4*time.Minute, status("gangnam", "3"), disconnected("gangnam"))
	want("gangnam 3 false 4 1 0", "hongdae 1 true 3 1 2")
}

func gangnam(t protocol.Telemetry) []postgres.Telemetry {
	return []postgres.Telemetry{{Agent: agent("gangnam"), Telemetry: t}}
}

func TestTelemetryIsStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now
	request := uuid.NewString()
	wrongClock := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	messages := append(gangnam(protocol.Telemetry{At: wrongClock,
		Readings: []protocol.Reading{{Location: "로비", Celsius: 20, RelativeHumidity: 41}},
		Events:   []protocol.Event{{Kind: protocol.EventEnergized, Device: "front_1", RequestID: request}},
	}), gangnam(protocol.Telemetry{At: wrongClock,
		Readings: []protocol.Reading{{Location: "로비", Celsius: 21.5, RelativeHumidity: 40}},
		Events:   []protocol.Event{{Kind: protocol.EventReleased, Device: "front_1", RequestID: request, EnergizedMs: 3000}},
	})...)
	err := f.Telemetry(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	if got := rows[time.Time](f, `select at from sensor_reading where location = $1 and celsius = 21.5 and humidity = 40`, "로비"); len(got) != 1 || !got[0].Equal(now) {
		t.Errorf("readings at %v, want the time of arrival", got)
	}
	if got := rows[string](f, `select kind || coalesce(' ' || (detail ->> 'energizedMs'), '') from door_event where request_id = $1 order by id`, request); !cmp.Equal(got, []string{"energized", "released 3000"}) {
		t.Errorf("events %v", got)
	}
}

func TestForcedAndHeldDoors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now
	watched := protocol.Door{Device: "front_1", Kind: protocol.DoorFront, Contact: true, Exit: true}
	blind := protocol.Door{Device: "room_1", Kind: protocol.DoorRoom, Contact: true}
	err := f.Announced(t.Context(), []device.Announcement{{Agent: agent("gangnam"), Online: true,
		Status: &protocol.Status{State: protocol.Online, BootID: "boot", Inventory: &protocol.Inventory{Doors: []protocol.Door{watched, blind}}}}})
	if err != nil {
		t.Fatal(err)
	}
	report := func(after time.Duration, kind protocol.EventKind, device string) {
		t.Helper()
		f.now = now.Add(after)
		if err := f.Telemetry(t.Context(), gangnam(protocol.Telemetry{Events: []protocol.Event{{Kind: kind, Device: device}}})); err != nil {
			t.Fatal(err)
		}
	}
	count := func(kind string) int {
		return len(rows[string](f, `select device from door_event where kind = $1`, kind))
	}
	report(0, protocol.EventExitPressed, "front_1")
	report(5*time.Second, protocol.EventDoorOpened, "front_1")
	report(7*time.Second, protocol.EventDoorClosed, "front_1")
	report(time.Minute, protocol.EventReleased, "front_1")
	report(time.Minute+9*time.Second, protocol.EventDoorOpened, "front_1")
	report(time.Minute+12*time.Second, protocol.EventDoorClosed, "front_1")
	report(2*time.Minute, protocol.EventDoorOpened, "room_1") // a guest leaves, and there is no exit button to observe
	if n := count(postgres.DoorForced); n != 0 {
		t.Fatalf("%d doors forced, want none", n)
	}
	report(3*time.Minute, protocol.EventDoorOpened, "front_1")
	if n := count(postgres.DoorForced); n != 1 {
		t.Fatalf("%d doors forced, want 1", n)
	}
	report(3*time.Minute+30*time.Second, protocol.EventDoorClosed, "room_1")
	mark := func(at time.Duration) []postgres.HeldDoor {
		t.Helper()
		var held []postgres.HeldDoor
		err := f.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
			held, err = postgres.MarkHeldDoors(ctx, tx, 2*time.Minute, now.Add(at))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	if held := mark(5 * time.Minute); len(held) != 0 {
		t.Errorf("held after exactly two minutes: %v, want none", held)
	}
	if held := mark(5*time.Minute + time.Second); !cmp.Equal(held, []postgres.HeldDoor{{Branch: "gangnam", Device: "front_1"}}) {
		t.Errorf("held: %v", held)
	}
	if held := mark(9 * time.Minute); len(held) != 0 {
		t.Errorf("held doors marked a second time: %v", held)
	}
}

// TestEventsOfAnOutage delivers the events of an outage together, with the times for which they waited and a wrong clock. They have
// their own times, an unlock explains only the opening after it, and the late message does not look like a wrong clock.
func TestEventsOfAnOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now
	err := f.Announced(t.Context(), []device.Announcement{{Agent: agent("gangnam"), Online: true, Status: &protocol.Status{
		State: protocol.Online, BootID: "boot",
		Inventory: &protocol.Inventory{Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront, Contact: true, Exit: true}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	const ahead = 3 * time.Minute // the agent's clock
	report := func(age time.Duration, kinds ...protocol.EventKind) []postgres.Telemetry {
		var events []protocol.Event
		for _, kind := range kinds {
			events = append(events, protocol.Event{Kind: kind, Device: "front_1"})
		}
		return gangnam(protocol.Telemetry{At: now.Add(ahead - age), Events: events}.Aged(age))
	}
	err = f.Telemetry(t.Context(), slices.Concat(
		report(9*time.Minute, protocol.EventExitPressed, protocol.EventDoorOpened),
		report(8*time.Minute, protocol.EventDoorClosed),
		report(5*time.Minute, protocol.EventDoorOpened),
		report(4*time.Minute, protocol.EventDoorClosed)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"exit-pressed -540", "door-opened -540", "door-closed -480", "door-opened -300", "forced -300", "door-closed -240"}
	if got := rows[string](f, `select kind || ' ' || extract(epoch from at - $1)::int from door_event order by id`, now); !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	offsets := rows[int](f, `select clock_offset_ms from agent_inventory i join branch b on b.id = i.branch_id where b.code = $1`, "gangnam")
	if !cmp.Equal(offsets, []int{int(ahead.Milliseconds())}) {
		t.Errorf("clock offset %v, want %v", offsets, ahead)
	}
}

// TestLateExplanationOfAnOpening delivers the opening of a door by a PIN during an outage before the pulse that explains it: messages of an
// agent may overtake each other.
func TestLateExplanationOfAnOpening(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now
	f.sendStatus(agent("gangnam"), protocol.Status{Inventory: &protocol.Inventory{
		Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront, Contact: true, Exit: true}}}})
	report := func(age time.Duration, e protocol.Event) []postgres.Telemetry {
		e.Device = "front_1"
		return gangnam(protocol.Telemetry{At: now.Add(-age), Events: []protocol.Event{e}}.Aged(age))
	}
	opened := report(5*time.Minute-time.Second, protocol.Event{Kind: protocol.EventDoorOpened})
	pulse := report(5*time.Minute, protocol.Event{Kind: protocol.EventEnergized, Source: protocol.SourcePIN})
	if err := f.Telemetry(t.Context(), slices.Concat(opened, pulse)); err != nil {
		t.Fatal(err)
	}
	if got := rows[string](f, `select kind || ' ' || extract(epoch from at - $1)::int from door_event order by at, id`, now); slices.Contains(got, "forced -299") {
		t.Errorf("got %q, want no forced door", got)
	}
	if got := rows[string](f, `select kind from alert where ended_at is null`); len(got) > 0 {
		t.Errorf("got alerts %q, want none", got)
	}
}

// bookingOfDays adds a partner's booking that is in progress, with its first reservation and the extension of now, and a press of
// its guest that failed.
func (f *fixture) bookingOfDays(t *testing.T, start, pressed time.Time) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := f.db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into room (branch_id, no) select id, 9 from branch where code = 'gangnam'`)
	exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		select branch_id, id, 'DONE', 'PARTNER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes') from room where no = 9`,
		start, start.Add(5*time.Hour))
	exec(`insert into door_request (id, branch_id, reservation_id, requested_by, kind, device, devices, state, created_at, finished_at)
		select gen_random_uuid(), branch_id, id, 'customer', 'front', 'front', '{front_1}', 'FAILED', $1, $1 from reservation`, pressed)
	exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
		select branch_id, room_id, state, source, $1, $2, tstzrange($1::timestamptz + interval '10 minutes', $2::timestamptz + interval '10 minutes'), id from reservation`,
		f.now.Add(-time.Hour), f.now.Add(3*time.Hour))
}

// Openings that a keypad explains are no break-in: the sense line reports its release, or the PIN was disclosed lately.
func TestOpeningByKeypadIsNotForced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sense, released bool
		revealed        time.Duration // ago; 0: never
		failed          time.Duration // ago, a press of the guest of a booking of days who is inside; 0: never
		want            int
	}{
		"PIN disclosed":                             {revealed: time.Minute, want: 0},
		"PIN disclosed in an earlier stay":          {revealed: 5*time.Hour + time.Second, want: 1},
		"PIN disclosed in a booking of days":        {revealed: 29 * time.Hour, failed: 29*time.Hour + time.Minute, want: 0},
		"PIN disclosed before a press failed":       {revealed: 29 * time.Hour, failed: 28 * time.Hour, want: 1},
		"never disclosed":                           {want: 1},
		"sense line reports the release":            {sense: true, released: true, want: 0},
		"sense line is silent though PIN disclosed": {sense: true, revealed: time.Minute, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if _, err := f.db.Pool.Exec(t.Context(), `
				insert into door_pin (branch_id, device, pin, revealed_at) select id, 'front', '', $1 from branch where code = 'gangnam'`,
				map[bool]*time.Time{true: new(f.now.Add(-tc.revealed))}[tc.revealed > 0]); err != nil {
				t.Fatal(err)
			}
			if tc.failed > 0 {
				f.bookingOfDays(t, f.now.Add(-30*time.Hour), f.now.Add(-tc.failed))
			}
			err := f.Announced(t.Context(), []device.Announcement{{Agent: agent("gangnam"), Online: true, Status: &protocol.Status{
				State: protocol.Online, BootID: "boot",
				Inventory: &protocol.Inventory{Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront, Contact: true, Exit: true, Sense: tc.sense}}}}}})
			if err != nil {
				t.Fatal(err)
			}
			events := []protocol.Event{{Kind: protocol.EventDoorOpened, Device: "front_1"}}
			if tc.released {
				events = append([]protocol.Event{{Kind: protocol.EventLockReleased, Device: "front_1"}}, events...)
			}
			if err := f.Telemetry(t.Context(), gangnam(protocol.Telemetry{Events: events})); err != nil {
				t.Fatal(err)
			}
			if got := len(rows[string](f, `select device from door_event where kind = $1`, postgres.DoorForced)); got != tc.want {
				t.Errorf("%d doors forced, want %d", got, tc.want)
			}
		})
	}
}

func TestLevelsOfContactsAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	start := f.now
	status := func(after time.Duration, contacts ...protocol.Contact) {
		t.Helper()
		f.now = start.Add(after)
		err := f.Announced(t.Context(), []device.Announcement{{Agent: agent("gangnam"), Online: true, Status: &protocol.Status{
			State: protocol.Online, BootID: "boot", Inventory: &protocol.Inventory{}, Contacts: contacts}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		got := rows[string](f, `select device || ' ' || kind || ' ' || extract(epoch from at - $1)::int from door_event order by at, device`, start)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	open := protocol.Contact{Device: "front_1", Open: true, ForMs: 90_000}
	shut := protocol.Contact{Device: "room_1", ForMs: 600_000}
	status(0, open, shut)
	want("room_1 door-closed -600", "front_1 door-opened -90")
	status(time.Minute, open, shut) // no change
	want("room_1 door-closed -600", "front_1 door-opened -90")
	status(2*time.Minute, protocol.Contact{Device: "front_1", ForMs: 4_999}) // the event may still be on its way
	want("room_1 door-closed -600", "front_1 door-opened -90")
	status(3*time.Minute, protocol.Contact{Device: "front_1", ForMs: 64_999})
	want("room_1 door-closed -600", "front_1 door-opened -90", "front_1 door-closed 115")
}
