package device_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

var pi2 = protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}

// announce announces a status with these doors.
func (f *fixture) announce(agent protocol.Agent, version string, selfTest []protocol.SelfTest, doors ...string) {
	f.t.Helper()
	inventory := protocol.Inventory{}
	for _, d := range doors {
		kind, _, err := protocol.ParseDevice(d)
		if err != nil {
			f.t.Fatal(err)
		}
		inventory.Doors = append(inventory.Doors, protocol.Door{Device: d, Kind: kind})
	}
	f.sendStatus(agent, protocol.Status{AgentVersion: version, Inventory: &inventory, SelfTest: selfTest})
}

// state returns the state and the presence of a credential of gangnam.
func (f *fixture) state(username string) string {
	f.t.Helper()
	list, err := postgres.AgentCredentials(f.t.Context(), f.db.Pool)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range list {
		if c.Username == username {
			return c.State()
		}
	}
	f.t.Fatalf("no credential %s", username)
	return ""
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func TestStandbyReportsDoNotDescribeTheBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enroll(pi2)
	f.announce(agent("gangnam"), "1", nil, "front_1")
	f.announce(pi2, "2", nil)
	err := f.Telemetry(t.Context(), []postgres.Telemetry{{Agent: pi2, Telemetry: protocol.Telemetry{
		Readings: []protocol.Reading{{Location: "로비", Celsius: 99}}, Events: []protocol.Event{{Kind: protocol.EventDoorOpened, Device: "front_1"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Announced(t.Context(), []device.Announcement{{Agent: pi2}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 true 1"}
	if got := rows[string](f, `select version || ' ' || online || ' ' || jsonb_array_length(inventory -> 'doors') from agent_inventory`); !cmp.Equal(got, want) {
		t.Errorf("agent of the branch: %q, want %q", got, want)
	}
	if n := rows[int](f, `select (select count(*) from sensor_reading) + (select count(*) from door_event)`)[0]; n != 0 {
		t.Errorf("%d readings and events of a standby agent are stored, want none", n)
	}
	if got := rows[string](f, `select report ->> 'version' from agent_credential where username = $1`, pi2.Username); !cmp.Equal(got, []string{"2"}) {
		t.Errorf("report of the standby agent: %q, want its own", got)
	}
}

func TestNewAgentBecomesActiveAutomatically(t *testing.T) {
	t.Parallel()
	failed := []protocol.SelfTest{{Name: "relay front_1", OK: true}, {Name: "relay room_1", Detail: "no such line"}}
	for name, tc := range map[string]struct {
		prepare func(f *fixture)
		test    []protocol.SelfTest
		doors   []string
		want    string
	}{
		"the other is offline for ten minutes": {func(f *fixture) { f.now = f.now.Add(10 * time.Minute) }, nil, []string{"front_1", "room_1"}, "active"},
		"the other was online a moment before": {func(f *fixture) { f.now = f.now.Add(10*time.Minute - time.Second) }, nil, []string{"front_1", "room_1"}, "standby"},
		"the other was revoked nine minutes ago": {func(f *fixture) {
			f.exec(`update agent_credential set revoked_at = now(), active = false where username = $1`, "agent-gangnam")
			f.now = f.now.Add(9 * time.Minute)
		}, nil, []string{"front_1", "room_1"}, "standby"},
		"the other was revoked ten minutes ago": {func(f *fixture) {
			f.exec(`update agent_credential set revoked_at = now(), active = false where username = $1`, "agent-gangnam")
			f.now = f.now.Add(10 * time.Minute)
		}, nil, []string{"front_1", "room_1"}, "active"},
		"a door is missing": {func(f *fixture) { f.now = f.now.Add(time.Hour) }, nil, []string{"front_1"}, "standby"},
		"no doors":          {func(f *fixture) { f.now = f.now.Add(time.Hour) }, nil, nil, "standby"},
		"a self-test fails": {func(f *fixture) { f.now = f.now.Add(time.Hour) }, failed, []string{"front_1", "room_1"}, "standby"},
		"it was replaced before": {func(f *fixture) {
			f.exec(`update agent_credential set activated_at = now() where username = $1`, pi2.Username)
			f.now = f.now.Add(time.Hour)
		}, nil, []string{"front_1", "room_1"}, "standby"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(`update branch set front_doors = $1 where code = 'gangnam'`, []string{"front_1"})
			f.exec(`insert into room (branch_id, no) select id, 1 from branch where code = $1`, "gangnam")
			f.enroll(pi2)
			f.announce(agent("gangnam"), "1", nil, "front_1", "room_1")
			tc.prepare(f)
			f.announce(pi2, "2", tc.test, tc.doors...)
			if got := f.state(pi2.Username); got != tc.want {
				t.Errorf("the new agent is %s, want %s", got, tc.want)
			}
			version := map[string]string{"active": "2", "standby": "1"}[tc.want]
			if got := rows[string](f, `select version from agent_inventory`); !cmp.Equal(got, []string{version}) {
				t.Errorf("agent of the branch: version %q, want %s", got, version)
			}
		})
	}
}

func TestFirstAgentOfABranchBecomesActive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into branch (code, front_doors) values ($1, $2)`, "busan", []string{"front_1"})
	busan := agent("busan")
	f.enroll(busan)
	if got := f.state(busan.Username); got != "standby" {
		t.Errorf("a fresh credential is %s, want standby", got)
	}
	f.announce(busan, "1", nil, "front_1")
	if got := f.state(busan.Username); got != "active" {
		t.Errorf("the first agent with every door is %s, want active", got)
	}
	if got := rows[string](f, `select actor from audit where action = $1 and target = $2`, "agent.activate", busan.Username); !cmp.Equal(got, []string{"system"}) {
		t.Errorf("audit entries by %q, want one by system", got)
	}
}

func TestActivationTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enroll(pi2)
	f.announce(agent("gangnam"), "1", nil, "front_1")
	f.announce(pi2, "2", nil, "front_1", "room_1")
	if err := f.Activate(t.Context(), pi2.Username, "admin:hq"); err != nil {
		t.Fatal(err)
	}
	want := []string{"2 true 2"}
	if got := rows[string](f, `select version || ' ' || online || ' ' || jsonb_array_length(inventory -> 'doors') from agent_inventory`); !cmp.Equal(got, want) {
		t.Errorf("agent of the branch: %q, want %q", got, want)
	}
	if got := f.state("agent-gangnam"); got != "standby" {
		t.Errorf("the agent before is %s, want standby", got)
	}
	if err := postgres.RevokeAgent(t.Context(), f.db.Pool, pi2.Username); err != nil {
		t.Fatal(err)
	}
	if got := rows[bool](f, `select online from agent_inventory`); !cmp.Equal(got, []bool{false}) {
		t.Errorf("online %v after the active agent was revoked, want false", got)
	}
	for _, username := range []string{pi2.Username, "agent-busan"} {
		if err := f.Activate(t.Context(), username, "admin:hq"); !errors.Is(err, postgres.ErrNoAgent) {
			t.Errorf("activate %s: got %v, want ErrNoAgent", username, err)
		}
	}
}

func TestTakeoverRaisesOneAlert(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 2 {
		if err := f.TakenOver(t.Context(), agent("gangnam")); err != nil {
			t.Fatal(err)
		}
	}
	open := func() []string {
		return rows[string](f, `select kind || ' ' || branch || ' ' || subject from alert where ended_at is null`)
	}
	if got, want := open(), []string{"agent-takeover gangnam agent-gangnam"}; !cmp.Equal(got, want) {
		t.Errorf("open alerts %q, want %q", got, want)
	}
	if got := rows[int](f, `select takeovers from agent_credential where username = $1`, "agent-gangnam"); !cmp.Equal(got, []int{2}) {
		t.Errorf("takeovers %v, want 2", got)
	}
	if err := postgres.EndTakeovers(t.Context(), f.db.Pool, f.now.Add(-time.Minute), f.now); err != nil || len(open()) != 1 {
		t.Errorf("the alert ended within a minute: %q, %v", open(), err)
	}
	if err := postgres.EndTakeovers(t.Context(), f.db.Pool, f.now, f.now); err != nil || len(open()) != 0 {
		t.Errorf("the alert is still open: %q, %v", open(), err)
	}
}

// TestReplacementBecomesActiveAtOnce checks that a machine which replaces another one becomes active as soon as its doors work, although
// the other one was online a moment ago, and that the credential of the other one is then revoked.
func TestReplacementBecomesActiveAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`update branch set front_doors = $1 where code = 'gangnam'`, []string{"front_1"})
	f.exec(`insert into room (branch_id, no, lock) select id, 1, 'none' from branch where code = $1`, "gangnam") // has no door
	f.enroll(pi2)
	f.exec(`update agent_credential set replaces = $2 where username = $1`, pi2.Username, "agent-gangnam")
	f.announce(agent("gangnam"), "1", nil, "front_1")
	f.announce(pi2, "2", nil) // without settings it has no door
	if f.state(pi2.Username) != "standby" || f.state("agent-gangnam") != "active" {
		t.Error("a machine without doors has replaced the other one")
	}
	f.announce(pi2, "2", nil, "front_1")
	if f.state(pi2.Username) != "active" || f.state("agent-gangnam") != "revoked" {
		t.Errorf("the new machine is %s and the old one %s, want active and revoked", f.state(pi2.Username), f.state("agent-gangnam"))
	}
	if got := rows[bool](f, `select online from agent_inventory i join branch b on b.id = i.branch_id where b.code = $1`, "gangnam"); !cmp.Equal(got, []bool{true}) {
		t.Errorf("the branch is online: %v, want true", got)
	}
}

// TestReplacementBesideASpare checks that a spare machine on standby does not keep a machine from becoming active that replaces the
// active one, and that a machine which replaces the spare one does not.
func TestReplacementBesideASpare(t *testing.T) {
	t.Parallel()
	spare := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-spare"}
	for replaced, want := range map[string]string{"agent-gangnam": "active", spare.Username: "standby"} {
		t.Run(replaced, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(`update branch set front_doors = $1 where code = 'gangnam'`, []string{"front_1"})
			f.enroll(spare)
			f.enroll(pi2)
			f.exec(`update agent_credential set replaces = $2 where username = $1`, pi2.Username, replaced)
			f.announce(agent("gangnam"), "1", nil, "front_1")
			f.announce(spare, "1", nil, "front_1")
			f.announce(pi2, "2", nil, "front_1")
			if got := f.state(pi2.Username); got != want {
				t.Errorf("the new machine is %s, want %s", got, want)
			}
			if got := f.state(spare.Username); got != "standby" {
				t.Errorf("the spare machine is %s, want standby", got)
			}
		})
	}
}
