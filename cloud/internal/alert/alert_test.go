package alert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/pass"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is Monday noon in Seoul, later than the present, which triggers write into rows: an alert that began at the time of a
// test could otherwise have ended before.
var start = time.Date(2036, 11, 24, 3, 0, 0, 0, time.UTC)

// fixture is a service with the branches gangnam and hongdae, whose agents are online, and a clock that tests set.
type fixture struct {
	*alert.Service
	t       *testing.T
	db      *postgres.DB
	devices *device.Service
	now     time.Time
	keys    string // the encryption key, and the earlier ones
	heard   bool
	away    bool   // the database takes no writes
	silent  string // a branch whose agent reports nothing

	startedAt time.Time // of agents, by their own clocks
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: pgtest.New(t), now: start, keys: seal.NewKey(), heard: true, startedAt: start.Add(-time.Hour)}
	f.db.Now = func() time.Time { return f.now }
	f.exec(`insert into branch (code, name_ko) values ('gangnam', '강남점'), ('hongdae', '홍대점')`)
	f.exec(`insert into room (branch_id, no) select id, 1 from branch`)
	f.devices = &device.Service{DB: f.db, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: f.db.Now}
	f.restart()
	f.online("gangnam", nil)
	f.online("hongdae", nil)
	return f
}

// restart replaces the service by a new process.
func (f *fixture) restart() {
	f.t.Helper()
	keys, err := seal.ParseKeys(f.keys)
	if err != nil {
		f.t.Fatal(err)
	}
	work, err := queue.New(f.db.Pool, keys)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Service = &alert.Service{DB: f.db, Queue: work, Keys: keys, Heard: func() bool { return f.heard }, Stores: func() bool { return !f.away }, HQEmail: "hq@example.com", PublicURL: "https://example.com"}
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

func (f *fixture) list(sql string, args ...any) []string {
	f.t.Helper()
	rows, err := f.db.Pool.Query(f.t.Context(), sql, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// pass sweeps every five seconds for a time, as the service does. Agents that are online repeat their status.
func (f *fixture) pass(d time.Duration) {
	f.t.Helper()
	for end := f.now.Add(d); f.now.Before(end); {
		f.now = f.now.Add(5 * time.Second)
		for _, table := range []string{"agent_inventory", "agent_credential"} {
			f.exec(`update `+table+` i set seen_at = $1 from branch b where online and b.id = i.branch_id and b.code <> $2`, f.now, f.silent)
		}
		f.sweep()
	}
}

func (f *fixture) sweep() {
	f.t.Helper()
	f.Observe(f.now)
	if err := f.Sweep(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func agentOf(branch string) protocol.Agent {
	return protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}
}

func (f *fixture) online(branch string, sensors []string, tests ...protocol.SelfTest) {
	f.t.Helper()
	f.exec(`insert into agent_credential (username, branch_id, secret_hash, active) select $1, id, '', true from branch where code = $2
		on conflict do nothing`, agentOf(branch).Username, branch)
	err := f.devices.Announced(f.t.Context(), []device.Announcement{{Agent: agentOf(branch), Online: true, Status: &protocol.Status{
		State: protocol.Online, BootID: "boot", StartedAt: f.startedAt,
		Inventory: &protocol.Inventory{Sensors: sensors, Doors: []protocol.Door{{Device: "front_1", Contact: true, Exit: true}}}, SelfTest: tests}}})
	if err != nil {
		f.t.Fatal(err)
	}
}

// keypads has the agent of gangnam report a keypad and the state of its clock.
func (f *fixture) keypads(clock protocol.ClockState) {
	f.t.Helper()
	err := f.devices.Announced(f.t.Context(), []device.Announcement{{Agent: agentOf("gangnam"), Online: true, Status: &protocol.Status{
		State: protocol.Online, BootID: "boot", StartedAt: f.startedAt,
		Inventory: &protocol.Inventory{Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront}}, Keypads: []string{"front_1"}},
		Passes:    &protocol.AppliedPasses{Clock: clock}}}})
	if err != nil {
		f.t.Fatal(err)
	}
}

// listApplied has the agent of gangnam acknowledge a list of passes.
func (f *fixture) listApplied() {
	f.t.Helper()
	f.exec(`insert into pass_agent (username, applied_at) values ($1, $2) on conflict (username) do update set applied_at = excluded.applied_at`, agentOf("gangnam").Username, f.now)
}

func (f *fixture) offline(branch string) {
	f.t.Helper()
	if err := f.devices.Announced(f.t.Context(), []device.Announcement{{Agent: agentOf(branch)}}); err != nil {
		f.t.Fatal(err)
	}
}

// measure has the agent of gangnam report a reading at a time of its clock.
func (f *fixture) measure(clock time.Time) {
	f.t.Helper()
	reading := protocol.Telemetry{At: clock, Readings: []protocol.Reading{{Location: "로비", Celsius: 22, RelativeHumidity: 45}}}
	if err := f.devices.Telemetry(f.t.Context(), []postgres.Telemetry{{Agent: agentOf("gangnam"), Telemetry: reading}}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) events(events ...protocol.Event) {
	f.t.Helper()
	err := f.devices.Telemetry(f.t.Context(), []postgres.Telemetry{{Agent: agentOf("gangnam"), Telemetry: protocol.Telemetry{At: f.now, Events: events}}})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) reading(celsius float64) {
	f.t.Helper()
	err := f.devices.Telemetry(f.t.Context(), []postgres.Telemetry{{Agent: agentOf("gangnam"),
		Telemetry: protocol.Telemetry{At: f.now, Readings: []protocol.Reading{{Location: "로비", Celsius: celsius, RelativeHumidity: 40}}}}})
	if err != nil {
		f.t.Fatal(err)
	}
}

// reservation inserts a paid stay that is running.
func (f *fixture) reservation(state string) (id string) {
	f.t.Helper()
	return f.list(`
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, amount, method, updated_at)
		select b.id, m.id, $1, 'CUSTOMER', $2::timestamptz, $2 + interval '1 hour', tstzrange($2, $2 + interval '70 minutes'), 'order-' || $3, 1000, '카드', $2
		from branch b join room m on m.branch_id = b.id where b.code = 'gangnam' returning id::text`, state, f.now, uuid.NewString())[0]
}

// climate makes the unit of a stay's room run since 25 minutes, for a band of 22 to 26 °C at the sensor of the lobby.
func (f *fixture) climate(reservation string) {
	f.t.Helper()
	since := f.now.Add(-25 * time.Minute)
	f.exec(`update reservation set start_at = $2::timestamptz, occupied = tstzrange($2::timestamptz, upper(occupied)) where id = $1::bigint`, reservation, since)
	f.exec(`insert into climate_policy (room_id, branch_id, unit, sensor, arrive_option, leave_option, lead_minutes, lag_minutes, low, high, owner, owner_since)
		select room_id, branch_id, 'main', '로비', 'cool', 'off', 15, 0, 22, 26, id, $2 from reservation where id = $1::bigint`, reservation, since)
}

func (f *fixture) press(reservation, device, state, detail string) {
	f.t.Helper()
	f.exec(`insert into door_request (id, branch_id, reservation_id, requested_by, kind, device, devices, state, created_at, finished_at, detail)
		select $1, branch_id, id, 'customer', 'room', $3, array[$3], $4, $5, $5, $6 from reservation where id = $2::bigint`,
		uuid.New(), reservation, device, state, f.now, detail)
}

// wantMessages checks the templates of the messages to staff since the last check, in order.
func (f *fixture) wantMessages(want ...string) {
	f.t.Helper()
	got := f.list(`select template from message where template like 'alert-%' order by id`)
	f.exec(`delete from message where template like 'alert-%'`)
	if !slices.Equal(got, want) {
		f.t.Errorf("messages %q, want %q; alerts %q", got, want, f.list(`select kind || ' ' || branch || ' ' || subject from alert order by id`))
	}
}

// wantOpen checks which alerts are open.
func (f *fixture) wantOpen(want ...string) {
	f.t.Helper()
	got := f.list(`select concat_ws(' ', kind, nullif(branch, ''), nullif(subject, '')) from alert where ended_at is null order by kind, branch, subject`)
	if !slices.Equal(got, want) {
		f.t.Errorf("open alerts %q, want %q", got, want)
	}
}

// TestLockOutThatIsOver delivers an entry of a lock-out during an outage that ended before the agent returned.
func TestLockOutThatIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	service := &pass.Service{DB: f.db, Link: noLink{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: f.db.Now}
	e := protocol.PassEntry{Journal: protocol.NewNonce(), Device: "front_1", Outcome: protocol.EntryRefused,
		Reason: protocol.ReasonLockedOut, Source: protocol.SourcePIN}
	report := func(ago time.Duration) {
		t.Helper()
		e.Entry, e.At, e.Previous = e.Entry+1, f.now.Add(-ago), e.Hash
		e.Hash = e.Chain()
		if err := service.Entry(t.Context(), protocol.Peer{Agent: agentOf("gangnam")}, e); err != nil {
			t.Fatal(err)
		}
	}
	report(6 * time.Hour)
	f.pass(time.Minute)
	f.wantOpen()
	f.wantMessages()
	report(time.Minute) // the second one lasts for two minutes
	f.pass(30 * time.Second)
	f.wantOpen("reader-lockout gangnam front_1")
	f.wantMessages("alert-began")
}

type noLink struct{}

func (noLink) Send(protocol.Peer, protocol.Message) error { return nil }

// markHeld marks the doors that have been open for two minutes, as the service does.
func (f *fixture) markHeld(t *testing.T) {
	t.Helper()
	err := f.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		_, err := postgres.MarkHeldDoors(ctx, tx, 2*time.Minute, now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHeldDoorOfAnAbsentAgent loses the connection while a door is open. Whether it was closed since is not known.
func TestHeldDoorOfAnAbsentAgent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	f.events(protocol.Event{Kind: protocol.EventExitPressed, Device: "front_1"}, protocol.Event{Kind: protocol.EventDoorOpened, Device: "front_1"})
	f.offline("gangnam")
	f.now = f.now.Add(100 * time.Second)
	f.now = f.now.Add(25 * time.Second)
	f.markHeld(t)
	f.sweep()
	if got := f.list(`select kind from alert where kind = 'door-held'`); len(got) > 0 {
		t.Errorf("got %q while the agent is away, want none", got)
	}
}

// TestHeldDoorWithoutItsContact takes a contact away that reads a closed door as open, as staff do with one that is broken: no closing of this door is
// ever reported again.
func TestHeldDoorWithoutItsContact(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"after the alert": true, "before the alert": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.pass(10 * time.Second)
			remove := func() {
				t.Helper()
				err := f.devices.Announced(t.Context(), []device.Announcement{{Agent: agentOf("gangnam"), Online: true, Status: &protocol.Status{
					State: protocol.Online, BootID: "boot", StartedAt: f.startedAt,
					Inventory: &protocol.Inventory{Doors: []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront, Exit: true}}}}}})
				if err != nil {
					t.Fatal(err)
				}
			}
			f.events(protocol.Event{Kind: protocol.EventExitPressed, Device: "front_1"}, protocol.Event{Kind: protocol.EventDoorOpened, Device: "front_1"})
			if !held {
				remove()
			}
			f.pass(3 * time.Minute)
			f.markHeld(t)
			if held {
				f.pass(10 * time.Second)
				f.wantOpen("door-held gangnam front_1")
				remove()
				f.pass(10 * time.Second)
			}
			f.wantOpen()
		})
	}
}

// Each kind appears and ends without help; its beginning and its end are one message each.
func TestEachKindBeginsAndEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		begin func(f *fixture) (end func())
		kind  alert.Kind
		open  string
		wait  time.Duration // until the alert must be open
		over  time.Duration // until it must be over
	}{
		"branch offline": {begin: func(f *fixture) func() {
			f.offline("gangnam")
			return func() { f.online("gangnam", nil) }
		}, kind: alert.BranchOffline, open: "gangnam", wait: 2*time.Minute + 5*time.Second},
		"agent that says nothing": {begin: func(f *fixture) func() {
			// The process was killed before it could note that the agent left.
			f.silent = "gangnam"
			return func() { f.silent = ""; f.online("gangnam", nil) }
		}, kind: alert.BranchOffline, open: "gangnam", wait: 2*time.Minute + 35*time.Second},
		"door failing": {begin: func(f *fixture) func() {
			stay := f.reservation("DONE")
			f.press(stay, "room_1", "FAILED", "bolt stuck")
			f.sweep()
			f.wantOpen()
			f.press(stay, "room_1", "UNKNOWN", "no report")
			return func() { f.now = f.now.Add(time.Second); f.press(stay, "room_1", "SUCCESS", "") }
		}, kind: alert.DoorFailing, open: "gangnam room_1"},
		"door forced": {begin: func(f *fixture) func() {
			f.events(protocol.Event{Kind: protocol.EventDoorOpened, Device: "front_1"}, protocol.Event{Kind: protocol.EventDoorClosed, Device: "front_1"})
			return func() {}
		}, kind: alert.DoorForced, open: "gangnam front_1", over: 31 * time.Minute},
		"keypad locked for two minutes": {begin: func(f *fixture) func() {
			for entry, at := range []time.Time{f.now.Add(-10 * time.Minute), f.now} {
				f.exec(`insert into pass_entry (username, journal, entry, branch_id, device, at, outcome, reason, source, previous, hash, received_at)
					select username, 'journal', $1, branch_id, 'room_2', $2, 'refused', 'locked-out', 'pin', '', '', $2 from agent_credential where username = $3`,
					entry+1, at, agentOf("gangnam").Username)
			}
			if err := postgres.OpenAlert(f.t.Context(), f.db.Pool, string(alert.ReaderLockout), "gangnam", "room_2", f.now); err != nil {
				f.t.Fatal(err)
			}
			f.pass(time.Minute + 50*time.Second)
			f.wantOpen("reader-lockout gangnam room_2")
			return func() {}
		}, kind: alert.ReaderLockout, open: "gangnam room_2", over: 15 * time.Second},
		"door held": {begin: func(f *fixture) func() {
			f.events(protocol.Event{Kind: protocol.EventExitPressed, Device: "front_1"}, protocol.Event{Kind: protocol.EventDoorOpened, Device: "front_1"})
			f.now = f.now.Add(3 * time.Minute)
			err := f.db.InTx(f.t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
				_, err := postgres.MarkHeldDoors(ctx, tx, 2*time.Minute, now)
				return err
			})
			if err != nil {
				f.t.Fatal(err)
			}
			return func() { f.events(protocol.Event{Kind: protocol.EventDoorClosed, Device: "front_1"}) }
		}, kind: alert.DoorHeld, open: "gangnam front_1"},
		"key not sent": {begin: func(f *fixture) func() {
			f.exec(`insert into message (reservation_id, template, to_mobile, variables, created_at) values ($1::bigint, 'reservation-confirmed', '010', '', $2)`,
				f.reservation("DONE"), f.now)
			return func() { f.exec(`update message set state = 'SENT' where template = 'reservation-confirmed'`) }
		}, kind: alert.KeyUndelivered, open: "gangnam reservation:1001", wait: 2 * time.Minute},
		"key cannot be sent": {begin: func(f *fixture) func() {
			id := f.reservation("DONE")
			f.exec(`insert into message (reservation_id, template, to_mobile, variables, state, created_at) values ($1::bigint, 'reservation-confirmed', '010', '', 'FAILED', $2)`, id, f.now)
			return func() {
				f.exec(`insert into message (reservation_id, template, to_mobile, variables, state, created_at) values ($1::bigint, 'reservation-confirmed', '010', '', 'SENT', $2)`, id, f.now)
			}
		}, kind: alert.KeyUndelivered, open: "gangnam reservation:1001"},
		"refund failed": {begin: func(f *fixture) func() {
			f.exec(`insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key) values ($1::bigint, 'REQUESTED', '', 1, '', '')`, f.reservation("CANCELED"))
			f.exec(`update refund set state = 'FAILED'`)
			return func() { f.exec(`update refund set state = 'COMPLETED'`) }
		}, kind: alert.RefundFailed, open: "gangnam reservation:1001"},
		"discrepancy": {begin: func(f *fixture) func() {
			f.exec(`insert into reconciliation_difference (order_id, kind, detail) select order_id, 'balance', '' from reservation where id = $1::bigint`, f.reservation("DONE"))
			return func() { f.exec(`update reconciliation_difference set resolved_at = now()`) }
		}, kind: alert.Discrepancy, open: "gangnam difference:1"},
		"PIN exposed at a keypad that is replaced": {begin: func(f *fixture) func() {
			f.exec(`insert into door_pin (branch_id, device, pin, revealed_at) select id, 'room_1', '', $1 from branch where code = 'gangnam'`, f.now)
			f.exec(`select alert_open('pin-exposed', 'gangnam', 'room_1', $1)`, f.now)
			return func() { f.exec(`update branch set keypads = '{"room_1": "agent"}' where code = 'gangnam'`) }
		}, kind: alert.PINExposed, open: "gangnam room_1"},
		"break in a journal": {begin: func(f *fixture) func() {
			f.exec(`select alert_open('discrepancy', 'gangnam', 'journal abc', $1)`, f.now)
			return func() { f.now = f.now.Add(24 * time.Hour) }
		}, kind: alert.Discrepancy, open: "gangnam journal abc", over: time.Minute},
		"payment unclear": {begin: func(f *fixture) func() {
			id := f.reservation("CONFIRMING")
			return func() { f.exec(`update reservation set state = 'DONE' where id = $1::bigint`, id) }
		}, kind: alert.PaymentUnclear, open: "gangnam reservation:1001", wait: 5 * time.Minute},
		"sensor silent": {begin: func(f *fixture) func() {
			f.online("gangnam", []string{"로비"})
			f.reading(22)
			return func() { f.reading(22) }
		}, kind: alert.SensorSilent, open: "gangnam 로비", wait: 10*time.Minute + 30*time.Second, over: time.Minute},
		"sensor frozen": {begin: func(f *fixture) func() {
			f.online("gangnam", []string{"로비"})
			f.exec(`insert into sensor_reading (branch_id, location, at, celsius, humidity)
				select id, '로비', $1::timestamptz - i * interval '1 hour', case i when 24 then 21.99 else 22 end, 40 from branch, generate_series(1, 24) i where code = 'gangnam'`, f.now)
			f.reading(22)
			f.now = f.now.Add(54*time.Minute + 30*time.Second)
			f.reading(22)
			return func() { f.now = f.now.Add(time.Second); f.reading(22.01) }
		}, kind: alert.SensorSilent, open: "gangnam 로비", wait: 6 * time.Minute, over: time.Minute},
		"sensor threshold": {begin: func(f *fixture) func() {
			f.online("gangnam", []string{"로비"})
			f.reading(36)
			return func() { f.now = f.now.Add(time.Second); f.reading(33) }
		}, kind: alert.SensorThreshold, open: "gangnam 로비", wait: 30 * time.Second, over: time.Minute},
		"sensor outside the band of a stay": {begin: func(f *fixture) func() {
			f.online("gangnam", []string{"로비"})
			f.climate(f.reservation("DONE"))
			f.reading(28)
			return func() { f.now = f.now.Add(time.Second); f.reading(26) }
		}, kind: alert.SensorThreshold, open: "gangnam 로비", wait: 30 * time.Second, over: time.Minute},
		"self-test": {begin: func(f *fixture) func() {
			f.online("gangnam", nil, protocol.SelfTest{Name: "relay room_1", Detail: "line lost"}, protocol.SelfTest{Name: "relay front_1", OK: true})
			return func() { f.online("gangnam", nil, protocol.SelfTest{Name: "relay room_1", OK: true}) }
		}, kind: alert.SelfTest, open: "gangnam relay room_1"},
		"clock": {begin: func(f *fixture) func() {
			f.exec(`update agent_inventory i set clock_offset_ms = -40000 from branch b where b.id = i.branch_id and b.code = 'gangnam'`)
			return func() { f.exec(`update agent_inventory set clock_offset_ms = 100`) }
		}, kind: alert.Clock, open: "gangnam agent", wait: 5 * time.Minute},
		"keypads without the time": {begin: func(f *fixture) func() {
			f.offline("gangnam")
			f.now = f.now.Add(10 * time.Second)
			f.keypads(protocol.ClockUntrusted)
			return func() { f.keypads(protocol.ClockTrusted) }
		}, kind: alert.KeypadOutdated, open: "gangnam clock", wait: 2 * time.Minute},
		"keypads without a new list": {begin: func(f *fixture) func() {
			f.keypads(protocol.ClockTrusted)
			f.listApplied()
			return f.listApplied
		}, kind: alert.KeypadOutdated, open: "gangnam passes", wait: 35 * time.Minute},
		"certificate": {begin: func(f *fixture) func() {
			f.CertificateEnd = f.now.Add(13 * 24 * time.Hour)
			return func() { f.CertificateEnd = f.now.Add(90 * 24 * time.Hour) }
		}, kind: alert.Certificate, open: "mqtt"},
		"check of the installation": {begin: func(f *fixture) func() {
			f.exec(`insert into doctor_check values ('disk', 'fail', $1, $1), ('work', 'warn', $1, $1)`, f.now)
			return func() { f.exec(`update doctor_check set state = 'ok'`) }
		}, kind: alert.ServiceCheck, open: "disk"},
		"reconciliation late": {begin: func(f *fixture) func() {
			f.exec(`insert into work_success values ('reconciliation', $1)`, f.now.Add(-27*time.Hour))
			return func() { f.exec(`update work_success set at = $1`, f.now) }
		}, kind: alert.ReconcileLate, wait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.pass(10 * time.Second) // the service has worked for a while
			end := tc.begin(f)
			if early := tc.wait - 10*time.Second; early > 0 {
				f.pass(early - 30*time.Second)
				f.wantOpen()
				f.pass(40 * time.Second)
			}
			f.pass(5 * time.Second)
			f.wantOpen(strings.TrimSpace(string(tc.kind) + " " + tc.open))
			f.pass(time.Minute)
			f.wantMessages("alert-began")
			end()
			f.pass(tc.over + 5*time.Second)
			f.wantOpen()
			f.pass(2*time.Minute + 5*time.Second)
			f.wantMessages("alert-ended")
			f.pass(5 * time.Minute)
			f.wantMessages()
		})
	}
}

// TestKeypadsThatAreUpToDate has keypads that receive the time a moment after the connection, and a list every 15 minutes. Neither an outage nor
// the activation of another agent of the branch, which had no list while it was on standby, makes them outdated.
func TestKeypadsThatAreUpToDate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keypads(protocol.ClockTrusted)
	for range 5 {
		f.listApplied()
		f.pass(16 * time.Minute)
	}
	f.offline("gangnam")
	f.pass(time.Minute)
	f.now = f.now.Add(time.Hour)
	f.keypads(protocol.ClockUntrusted)
	f.pass(5 * time.Second)
	f.keypads(protocol.ClockTrusted)
	f.listApplied()
	f.pass(5 * time.Minute)
	f.now = f.now.Add(time.Second)
	f.exec(`update pass_agent set applied_at = null`)
	f.exec(`update agent_credential set activated_at = $1`, f.now)
	f.pass(time.Minute)
	f.now = f.now.Add(time.Hour) // the service is stopped
	f.restart()
	f.pass(time.Minute)
	if got := f.list(`select kind from alert where kind = 'keypad-outdated'`); len(got) > 0 {
		t.Errorf("got alerts %q, want none", got)
	}
}

// A Pi without a clock battery starts after a power failure: its first telemetry has the time of the failure, the next one the right one.
func TestClockAfterAPowerFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	for range 2 {
		f.offline("gangnam")
		f.pass(time.Minute)
		f.online("gangnam", nil)
		f.measure(f.now.Add(-time.Minute))
		f.pass(time.Minute)
		f.measure(f.now)
		f.pass(10 * time.Minute)
	}
	f.wantOpen()
	f.wantMessages()
}

// A clock that steps after a start with the right time raises the alert at once.
func TestClockThatStepsAfterTheStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.startedAt = f.now.Add(-10 * time.Second)
	f.online("gangnam", nil)
	f.pass(10 * time.Second)
	f.measure(f.now.Add(-time.Minute))
	f.pass(10 * time.Second)
	f.wantOpen("clock gangnam agent")
}

// A sensor whose first measurement takes longer than a reading is read a minute after the start. The clock of the Pi shows the time before the
// power failure.
func TestSensorAfterAPowerFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.online("gangnam", []string{"로비"})
	f.reading(22)
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(20 * time.Minute)
	f.online("gangnam", []string{"로비"})
	f.pass(time.Minute)
	f.reading(22)
	f.pass(time.Minute)
	if got := f.list(`select distinct kind from alert`); len(got) != 1 || got[0] != string(alert.BranchOffline) {
		t.Errorf("got alerts %v, want that of the branch only", got)
	}
}

// An alert that ends and returns before its end was announced is one incident.
func TestFlappingIsOneIncident(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	for range 5 {
		f.offline("gangnam")
		f.pass(2*time.Minute + 10*time.Second)
		f.wantOpen("branch-offline gangnam")
		f.online("gangnam", nil)
		f.pass(90 * time.Second)
		f.wantOpen()
	}
	f.pass(2 * time.Minute)
	f.wantMessages("alert-began", "alert-ended")
	if got := f.list(`select kind from alert`); len(got) != 1 {
		t.Errorf("%d incidents, want 1", len(got))
	}
}

// TestFlappingBelowTheDelay: an agent that crashes again and again, or whose router restarts, returns before two minutes are over and is lost
// again. Most presses fail, so staff are notified; an agent that stays away a minute at a time, between long presences, is none.
func TestFlappingBelowTheDelay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	for range 5 {
		f.offline("gangnam")
		f.offline("hongdae")
		f.pass(time.Minute)
		f.online("hongdae", nil)
		f.pass(40 * time.Second)
		f.online("gangnam", nil)
		f.pass(30 * time.Second)
	}
	f.wantMessages("alert-began")
	f.pass(3 * time.Minute)
	f.wantMessages("alert-ended")
	if got := f.list(`select concat_ws(' ', kind, branch) from alert`); len(got) != 1 || got[0] != "branch-offline gangnam" {
		t.Errorf("alerts %q, want one about gangnam", got)
	}
	for range 10 { // a poor connection, which still opens doors
		f.offline("hongdae")
		f.pass(20 * time.Second)
		f.online("hongdae", nil)
		f.pass(10 * time.Second)
	}
	f.offline("gangnam")
	f.pass(110 * time.Second)
	f.wantOpen()
	f.wantMessages()
}

// branches adds branches b1 to b<n>, whose agents are connected with version 1.
func (f *fixture) branches(n int) {
	f.t.Helper()
	f.exec(`insert into branch (code, name_ko) select 'b' || n, 'b' || n from generate_series(1, $1::integer) n`, n)
	f.exec(`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory) select id, '1', $1, $1, true, '{}' from branch where code ~ '^b[0-9]'`, f.now)
}

// A thousand branches that are lost within a minute are one alert and one message, and so is their return. Those that stay
// lost get alerts of their own afterwards.
func TestManyBranchesAreOneAlert(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branches(1000)
	f.pass(10 * time.Second)
	lost := f.now
	for i := range 10 { // within 50 seconds
		f.exec(`update agent_inventory set online = false, presence_since = $1, seen_at = $1 where branch_id % 10 = $2 and version = '1'`, f.now, i)
		f.pass(5 * time.Second)
	}
	f.pass(lost.Add(2*time.Minute - 5*time.Second).Sub(f.now))
	f.wantOpen()
	f.pass(10 * time.Minute)
	f.wantOpen("branch-offline")
	f.wantMessages("alert-began")
	f.exec(`update agent_inventory set online = true, seen_at = $1 where version = '1' and branch_id % 20 <> 3`, f.now)
	f.pass(5 * time.Minute)
	f.wantOpen("branch-offline") // 50 are still lost
	f.exec(`update agent_inventory i set online = true, seen_at = $1 from branch b where b.id = i.branch_id and b.code not in ('b11', 'b31') and version = '1'`, f.now)
	f.exec(`update agent_inventory i set online = false, presence_since = $1 from branch b where b.id = i.branch_id and b.code in ('b11', 'b31')`, f.now.Add(-10*time.Minute))
	f.pass(time.Minute)
	f.wantOpen()
	f.pass(2 * time.Minute)
	f.wantOpen("branch-offline b11", "branch-offline b31")
	f.wantMessages("alert-ended", "alert-began", "alert-began")
}

// TestAlertOfManyBranchesBesideClosedOnes has five branches whose machines have been off for a week, each with an alert of its own. Twenty others
// are lost at once: their alert begins then, ends when these are back, and later losses are alerts again.
func TestAlertOfManyBranchesBesideClosedOnes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branches(25)
	f.exec(`update agent_inventory set online = false, version = 'closed' where branch_id in (select id from branch where code ~ '^b[1-5]$')`)
	closed := []string{"branch-offline b1", "branch-offline b2", "branch-offline b3", "branch-offline b4", "branch-offline b5"}
	f.pass(3 * time.Minute)
	f.wantOpen(closed...)
	f.wantMessages(slices.Repeat([]string{"alert-began"}, 5)...)
	f.now = f.now.Add(7 * 24 * time.Hour)
	f.exec(`update agent_inventory set seen_at = $1 where online`, f.now)
	f.pass(3 * time.Minute)
	lost := f.now
	f.exec(`update agent_inventory set online = false, presence_since = $1 where version = '1'`, lost)
	f.pass(3 * time.Minute)
	f.wantOpen(append([]string{"branch-offline"}, closed...)...)
	f.wantMessages("alert-began")
	if got := f.list(`select kind from alert where branch = '' and since = $1`, lost); len(got) != 1 {
		t.Errorf("the alert of all branches does not begin with their loss: %v", f.list(`select since::text from alert where branch = ''`))
	}
	incidents, err := postgres.Incidents(t.Context(), f.db.Pool, lost.Add(-time.Minute))
	if err != nil || len(incidents) != 1 || incidents[0].Amount != 20 {
		t.Errorf("got incidents %+v (%v), want one with 20 branches", incidents, err)
	}
	f.exec(`update agent_inventory set online = true, seen_at = $1, presence_since = $1 where version = '1'`, f.now)
	f.pass(3 * time.Minute)
	f.wantOpen(closed...)
	f.wantMessages("alert-ended")
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	f.wantOpen(append(closed, "branch-offline gangnam")...)
	f.wantMessages("alert-began")
}

// TestBranchLostDuringALongOutage: twenty branches are lost at once, and six of them stay away for hours. A branch that is lost with them is covered
// by their alert; one that is lost hours later is an alert of its own.
func TestBranchLostDuringALongOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branches(20)
	f.pass(10 * time.Second)
	f.exec(`update agent_inventory set online = false, presence_since = $1 where version = '1'`, f.now)
	f.pass(3 * time.Minute)
	f.offline("hongdae")
	f.pass(3 * time.Minute)
	f.exec(`update agent_inventory set online = true, seen_at = $1, presence_since = $1 where version = '1' and branch_id not in (select id from branch where code ~ '^b[1-6]$')`, f.now)
	f.pass(3 * time.Minute)
	f.wantOpen("branch-offline")
	f.wantMessages("alert-began")
	for end := f.now.Add(2 * time.Hour); f.now.Before(end); f.sweep() {
		f.now = f.now.Add(50 * time.Second) // shorter than an interruption of the service
		f.exec(`update agent_inventory set seen_at = $1 where online`, f.now)
	}
	f.restart()
	f.pass(3 * time.Minute)
	f.wantMessages()
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	f.wantOpen("branch-offline", "branch-offline gangnam")
	f.wantMessages("alert-began")
	f.online("gangnam", nil)
	f.pass(3 * time.Minute)
	f.wantOpen("branch-offline")
	f.wantMessages("alert-ended")
}

// Nineteen branches are nineteen alerts.
func TestFewBranchesAreAlertsOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branches(19)
	f.pass(10 * time.Second)
	f.exec(`update agent_inventory set online = false, presence_since = $1 where version = '1'`, f.now)
	f.pass(3 * time.Minute)
	if got := f.list(`select branch from alert where branch <> ''`); len(got) != 19 {
		t.Errorf("%d alerts, want 19", len(got))
	}
}

// After a restart of the service or of the broker, or an outage of the database, agents have two minutes to come back, however long it took. Alerts that
// were open stay open.
func TestRestartRaisesNoAlert(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(f *fixture){
		"service": func(f *fixture) { f.now = f.now.Add(time.Hour); f.restart() },
		"sleep":   func(f *fixture) { f.now = f.now.Add(time.Hour) },
		"broker":  func(f *fixture) { f.heard = false; f.pass(time.Hour); f.heard = true },
		"database": func(f *fixture) { // no report is stored either
			f.away = true
			for end := f.now.Add(time.Hour); f.now.Before(end); f.now = f.now.Add(5 * time.Second) {
				f.Observe(f.now)
			}
			f.away = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.online("gangnam", []string{"로비"})
			f.reading(22)
			f.pass(10 * time.Second)
			f.offline("hongdae")
			f.pass(3 * time.Minute)
			f.wantMessages("alert-began")
			stay := f.reservation("CONFIRMING")
			f.exec(`insert into message (reservation_id, template, to_mobile, variables, created_at) values ($1::bigint, 'reservation-confirmed', '010', '', $2)`, stay, f.now)
			f.offline("gangnam")
			restart(f)
			f.sweep()
			f.pass(100 * time.Second)
			f.online("gangnam", []string{"로비"})
			f.reading(22)
			f.exec(`update reservation set state = 'DONE'`)
			f.exec(`update message set state = 'SENT' where template = 'reservation-confirmed'`)
			f.pass(time.Minute)
			open := "branch-offline hongdae"
			f.wantOpen(open)
			if name != "broker" { // an hour without the broker is long enough for an unclear payment
				f.wantMessages()
			}
		})
	}
}

// TestLostAgentIsOffline: an agent that disconnects while the service is away is not announced as offline. Its row must not say for good
// that it is online. After an outage of the database no agent has reported for a while, and none counts as lost.
func TestLostAgentIsOffline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	online := func(want ...string) {
		t.Helper()
		for _, table := range []string{"agent_inventory", "agent_credential"} {
			got := f.list(`select b.code from ` + table + ` a join branch b on b.id = a.branch_id where a.online order by 1`)
			if !slices.Equal(got, want) {
				t.Errorf("%s: online are %q, want %q", table, got, want)
			}
		}
	}
	f.pass(3 * time.Minute)
	f.away = true
	for end := f.now.Add(time.Hour); f.now.Before(end); f.now = f.now.Add(5 * time.Second) {
		f.Observe(f.now)
	}
	f.away = false
	f.sweep()
	online("gangnam", "hongdae")
	f.silent = "hongdae"
	f.pass(3 * time.Minute)
	online("gangnam")
	f.wantOpen("branch-offline hongdae")
	f.online("hongdae", nil)
	f.silent = ""
	f.pass(3 * time.Minute)
	online("gangnam", "hongdae")
	f.wantOpen()
}

func contact(channel notify.Channel, to string) alert.Contact {
	return alert.Contact{Name: to, Channel: channel, To: to}
}

// contacts stores the contacts of a branch, or those of the headquarters.
func (f *fixture) contacts(branch string, contacts ...alert.Contact) {
	f.t.Helper()
	if err := alert.ValidateContacts(contacts); err != nil {
		f.t.Fatal(err)
	}
	err := f.db.InTx(f.t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return f.PutContacts(ctx, tx, branch, contacts)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestEscalationOutsideHours: the escalation of an alert ends when the hours of the contact are over, so the contact receives it when they begin
// again. An alert that has no contact yet is not announced, and is once there is one.
func TestEscalationOutsideHours(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.HQEmail = ""
	sweeps := func(d time.Duration) {
		for end := f.now.Add(d); f.now.Before(end); f.sweep() {
			f.now = f.now.Add(10 * time.Minute)
			f.exec(`update agent_inventory i set seen_at = $1 from branch b where online and b.id = i.branch_id`, f.now)
		}
	}
	messages := func() []string { return f.list(`select template || ' ' || to_email from message order by id`) }
	notified := func() []string { return f.list(`select branch from alert where notified_at is not null`) }
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	sweeps(time.Hour)
	if len(messages()) > 0 || len(notified()) > 0 {
		t.Errorf("without contacts: messages %q, announced %q", messages(), notified())
	}
	duty, boss := contact(notify.Email, "duty@example.com"), contact(notify.Email, "boss@example.com")
	soon := f.now.In(time.FixedZone("", 9*60*60)).Add(-time.Hour)
	boss.EscalateAfterMinutes, boss.Hours = 24*60, &alert.Hours{From: soon.Format("15:00"), To: soon.Add(time.Hour).Format("15:00")}
	f.contacts("", duty, boss)
	sweeps(20 * time.Minute)
	if got := messages(); !slices.Equal(got, []string{"alert-began duty@example.com"}) || len(notified()) != 1 {
		t.Errorf("with contacts: messages %q, announced %q", got, notified())
	}
	sweeps(50 * time.Hour)
	if got := messages(); !slices.Equal(got, []string{"alert-began duty@example.com", "alert-began boss@example.com"}) {
		t.Errorf("messages %q", got)
	}
}

// TestLongAbsenceReachesEachContact: a branch was off for three days, and a sensor has not returned with it. Its alert begins with the last reading,
// three days ago; a contact outside its hours still receives it when they begin.
func TestLongAbsenceReachesEachContact(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	duty, night := contact(notify.Email, "duty@example.com"), contact(notify.Email, "night@example.com")
	night.Hours = &alert.Hours{From: "22:00", To: "06:00"}
	for _, c := range []*alert.Contact{&duty, &night} {
		c.Kinds = []alert.Kind{alert.SensorSilent}
	}
	f.contacts("", duty, night)
	f.online("gangnam", []string{"로비"})
	f.reading(22)
	f.offline("gangnam")
	f.now = f.now.Add(3 * 24 * time.Hour)
	f.online("gangnam", []string{"로비"})
	f.pass(13 * time.Minute)
	messages := func() []string { return f.list(`select template || ' ' || to_email from message order by id`) }
	if got := messages(); !slices.Equal(got, []string{"alert-began duty@example.com"}) {
		t.Errorf("at noon: messages %q", got)
	}
	for end := f.now.Add(10 * time.Hour); f.now.Before(end); f.sweep() {
		f.now = f.now.Add(10 * time.Minute)
		f.exec(`update agent_inventory set seen_at = $1 where online`, f.now)
	}
	if got := messages(); !slices.Equal(got, []string{"alert-began duty@example.com", "alert-began night@example.com"}) {
		t.Errorf("after ten hours: messages %q", got)
	}
}

// Contacts receive the kinds they want, within their hours, and after the escalation unless an administrator has acknowledged.
func TestContacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	night, late, picky, own := contact(notify.SMS, "010-1111-1111"), contact(notify.AlimTalk, "010-2222-2222"), contact(notify.Email, "picky@example.com"), contact(notify.Webhook, "https://example.com/hook")
	night.Hours, late.EscalateAfterMinutes, picky.Kinds = &alert.Hours{From: "22:00", To: "06:00"}, 15, []alert.Kind{alert.Clock}
	f.contacts("", night, late, picky)
	f.contacts("gangnam", own, late)
	want := func(want ...string) {
		t.Helper()
		got := f.list(`select template || ' ' || coalesce(nullif(medium, ''), nullif(to_email, ''), to_mobile) from message order by id`)
		f.exec(`delete from message`)
		if !slices.Equal(got, want) {
			t.Errorf("messages %q, want %q", got, want)
		}
	}
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	want("alert-began webhook")
	f.pass(14 * time.Minute)
	want("alert-began 010-2222-2222")
	f.pass(10 * time.Hour) // until 22:17
	want("alert-began sms")
	f.online("gangnam", nil)
	f.pass(3 * time.Minute)
	want("alert-ended sms", "alert-ended 010-2222-2222", "alert-ended webhook")

	f.offline("hongdae")
	f.pass(3 * time.Minute)
	want("alert-began sms")
	a, err := f.List(t.Context(), alert.Filter{Open: true, Limit: 1})
	if err != nil || len(a) != 1 {
		t.Fatalf("%v, %v", a, err)
	}
	for _, by := range []string{"kim", "lee"} {
		if err := f.Acknowledge(t.Context(), a[0], by, "admin:"+by); err != nil {
			t.Fatal(err)
		}
	}
	f.pass(20 * time.Minute)
	want() // acknowledged, so not escalated
	if got := f.list(`select actor || ' ' || target from audit where action = 'alert.acknowledge'`); !slices.Equal(got, []string{"admin:kim branch-offline"}) {
		t.Errorf("audit %q", got)
	}
}

// TestDefaultContacts: until the headquarters set contacts, the e-mail address and the Discord channel of the settings receive
// every alert, those about money included.
func TestDefaultContacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.DiscordURL = "https://discord.example/hook"
	f.exec(`insert into reconciliation_difference (order_id, kind, detail) select order_id, 'balance', '' from reservation where id = $1::bigint`, f.reservation("DONE"))
	f.pass(3 * time.Minute)
	got := f.list(`select template || ' ' || coalesce(nullif(medium, ''), to_email) from message order by id`)
	if want := []string{"alert-began hq@example.com", "alert-began discord"}; !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
}

// TestCalendarIsNamed: the message about a calendar that cannot be read names the place where it is shown, not the id of a row.
func TestCalendarIsNamed(t *testing.T) {
	t.Parallel()
	const want = "외부 예약 채널의 캘린더를 읽을 수 없어요. 지점 설정에서 확인해 주세요"
	if got := alert.Sentence(alert.Discrepancy, "gangnam", "calendar:12", 0); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHoursOfOneDigit: hours that an earlier release stored with one digit are clock times as well.
func TestHoursOfOneDigit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	day := contact(notify.Email, "day@example.com")
	day.Hours = &alert.Hours{From: "9:00", To: "18:00"}
	err := f.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return f.PutContacts(ctx, tx, "", []alert.Contact{day})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(15 * time.Hour) // 03:00
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	f.wantMessages()
}

func TestContactsAreValidated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		json string
		want bool
	}{
		{`{"name":"a","channel":"sms","to":"010-1234-5678"}`, true},
		{`{"name":"a","channel":"sms","to":"1234"}`, false},
		{`{"name":"","channel":"mail","to":"a@b.c"}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","kinds":["door-held"],"hours":{"from":"22:00","to":"06:00"},"escalateAfterMinutes":1440}`, true},
		{`{"name":"a","channel":"mail","to":"A <a@b.c>"}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","kinds":["weather"]}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","hours":{"from":"22:00","to":"24:00"}}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","hours":{"from":"22:00","to":"22:00"}}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","hours":{"from":"9:00","to":"18:00"}}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","hours":{"from":"18:00","to":"9:00"}}`, false},
		{`{"name":"a","channel":"mail","to":"a@b.c","escalateAfterMinutes":1441}`, false},
		{`{"name":"a","channel":"discord","to":"https://discord.com/api/webhooks/1/x"}`, true},
		{`{"name":"a","channel":"discord","to":"http://discord.com/x"}`, false},
		{`{"name":"a","channel":"webhook","to":"https://user:word@example.com"}`, false},
		{`{"name":"a","channel":"webhook","to":"file:///etc/passwd"}`, false},
		{`{"name":"a","channel":"pigeon","to":"a"}`, false},
	} {
		var c alert.Contact
		if err := json.Unmarshal([]byte(tc.json), &c); err != nil {
			t.Fatal(err)
		}
		if err := alert.ValidateContacts([]alert.Contact{c}); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.json, err)
		}
	}
	if alert.ValidateContacts(slices.Repeat([]alert.Contact{contact(notify.Email, "a@b.c")}, 21)) == nil {
		t.Error("21 contacts were accepted")
	}
}

// A sweep that dies at any statement leaves neither an alert that is never announced nor a second message.
func TestKilledSweepAnnouncesOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(110 * time.Second)
	for n := range 40 { // each time the process dies a little later
		f.now = f.now.Add(5 * time.Second)
		f.Observe(f.now)
		ctx, kill := context.WithTimeout(t.Context(), time.Duration(n)*200*time.Microsecond)
		_ = f.Sweep(ctx) // it may have failed
		kill()
	}
	f.pass(time.Minute)
	f.wantMessages("alert-began")
}

// A change of the encryption key neither announces an open alert again nor loses its end.
func TestAlertOutlivesTheEncryptionKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	f.offline("gangnam")
	f.pass(3 * time.Minute)
	f.wantMessages("alert-began")
	f.keys = seal.NewKey() + "," + f.keys
	f.restart()
	f.pass(3 * time.Minute)
	f.wantMessages()
	f.online("gangnam", nil)
	f.pass(3 * time.Minute)
	f.wantMessages("alert-ended")
}

func ExampleKind_Severity() {
	fmt.Println(alert.BranchOffline.Severity() < alert.DoorHeld.Severity())
	// Output: true
}

// A guest who has chosen a temperature outside the band raises no alert.
func TestChosenTemperatureIsNoAlert(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pass(10 * time.Second)
	f.online("gangnam", []string{"로비"})
	id := f.reservation("DONE")
	f.climate(id)
	f.exec(`insert into climate_choice (reservation_id, option_id, at) values ($1::bigint, 'warm', $2)`, id, f.now)
	f.reading(28)
	f.pass(2 * time.Minute)
	f.wantOpen()
	f.exec(`delete from climate_choice`)
	f.pass(time.Minute)
	f.wantOpen("sensor-threshold gangnam 로비")
}
