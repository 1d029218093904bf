package rollout_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a fixture: agents that install each version they are asked for, and report it at the next step.
type fleet struct {
	*rollout.Service
	t      *testing.T
	now    time.Time
	broken string         // with this version, agents fail a self-test
	asked  map[string]int // how often a version was sent
}

func newFleet(t *testing.T, agents int) *fleet {
	t.Helper()
	packages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/p/yeolda-agent_"), ".json")
		if version == "9.9.9" {
			http.NotFound(w, r)
			return
		}
		p := protocol.SignPackage(ed25519.NewKeyFromSeed(make([]byte, 32)), version, protocol.Package{Architecture: "arm64", URL: "agent.deb", SHA256: strings.Repeat("0a", 32)})
		_ = json.NewEncoder(w).Encode(protocol.Update{Version: version, Packages: []protocol.Package{p}})
	}))
	t.Cleanup(packages.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f := &fleet{t: t, now: time.Now(), asked: make(map[string]int)}
	db := pgtest.New(t)
	db.Now = func() time.Time { return f.now }
	f.Service = &rollout.Service{DB: db, Log: slog.New(slog.DiscardHandler), Packages: packages.URL + "/p", Send: f.send}
	for i := range agents {
		branch := fmt.Sprintf("load-%03d", i+1)
		f.exec(`insert into branch (code) values ($1)`, branch)
		f.exec(`insert into agent_credential (username, branch_id, secret_hash, active, online) select $2, id, 'x', true, true from branch where code = $1`,
			branch, protocol.AgentID(branch))
		f.report(protocol.AgentID(branch), "1.0.0")
	}
	return f
}

func (f *fleet) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.DB.Pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) report(username, version string) {
	f.t.Helper()
	text, err := json.Marshal(postgres.AgentReport{Version: version,
		SelfTest: []protocol.SelfTest{{Name: "relay room_1", OK: true}, {Name: "update", OK: version != f.broken}}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec(`update agent_credential set report = $2 where username = $1`, username, text)
}

// withSettings gives each agent settings in use, version 1, that contain the text "old".
func (f *fleet) withSettings() *fleet {
	f.t.Helper()
	f.exec(`insert into agent_settings (username, version, settings, created_by, created_at, state, state_at)
		select username, 1, 'old ' || username, 'test', now(), 'in-use', now() from agent_credential`)
	f.exec(`update agent_credential set report = report || '{"settings": {"version": 1, "highest": 1}}'`)
	return f
}

// answer has the agents answer the settings that are sent to them: they use them, or return to the previous ones if the text contains bad.
func (f *fleet) answer(bad string) {
	f.t.Helper()
	err := f.DB.InTx(f.t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		open, err := postgres.LockOpenSettings(ctx, tx)
		if err != nil {
			return err
		}
		for _, o := range open {
			status := protocol.SettingsStatus{Version: o.Version, Highest: o.Version}
			state := postgres.SettingsInUse
			if bad != "" && strings.Contains(o.Text, bad) {
				status.Version, state = o.Status.Version, postgres.SettingsRolledBack
				status.Ended = &protocol.SettingsOutcome{Version: o.Version, State: protocol.SettingsRolledBack, Detail: "not connected"}
			}
			if err := postgres.EndSettings(ctx, tx, o.Agent.Username, o.Version, state, "", now); err != nil {
				return err
			}
			text, err := json.Marshal(status)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `update agent_credential set report = jsonb_set(report, '{settings}', $2) where username = $1`, o.Agent.Username, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// inUse counts the settings in use by the text after which the user name follows.
func (f *fleet) inUse() map[string]int {
	f.t.Helper()
	texts, err := postgres.SettingsOfAll(f.t.Context(), f.DB.Pool)
	if err != nil {
		f.t.Fatal(err)
	}
	counts := make(map[string]int)
	for username, text := range texts {
		counts[strings.TrimSuffix(text, " "+username)]++
	}
	return counts
}

func (f *fleet) startSettings(change rollout.Change, waves ...int) {
	f.t.Helper()
	if err := f.StartSettings(f.t.Context(), change, waves, time.Minute, "admin:hq"); err != nil {
		f.t.Fatal(err)
	}
}

// TestSettingsInWaves changes the settings of 40 agents in waves of 1, 4 and 40.
func TestSettingsInWaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40).withSettings()
	f.startSettings(rollout.Change{Old: "old", New: "new"})
	for i, want := range []int{1, 4, 40} {
		f.step(time.Second)
		f.answer("")
		if got := f.inUse()["new"]; got != want {
			t.Fatalf("wave %d: %d agents use the new settings, want %d", i+1, got, want)
		}
		f.step(time.Second)
		if r := f.step(61 * time.Second); count(r, "healthy") != want {
			t.Fatalf("wave %d: %d agents healthy, want %d", i+1, count(r, "healthy"), want)
		}
	}
	if r := f.step(time.Second); r.State != "done" || r.Kind != "settings" {
		t.Errorf("got %s of %s, want done", r.State, r.Kind)
	}
}

// TestBadSettingsStopAtTheFirstWave checks that settings which an agent rolls back reach the first wave only, and that the agents of
// that wave which use them return to the previous ones.
func TestBadSettingsStopAtTheFirstWave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40).withSettings()
	f.exec(`update agent_settings set settings = 'old worse agent-load-001' where username = 'agent-load-001'`)
	f.startSettings(rollout.Change{Agents: []string{"agent-load-001", "agent-load-002", "agent-load-003", "agent-load-004"}, Old: "old", New: "new"}, 75, 100)
	f.step(time.Second)
	if got := f.inUse(); got["new"] != 0 {
		t.Fatalf("settings are in use before they were sent: %v", got)
	}
	f.answer("worse")
	asked := f.inUse()["new"]
	r := f.step(time.Second)
	if first := count(r, "failed") == 1; !first { // the agent with the bad settings is in the second wave
		f.step(62 * time.Second)
		f.step(time.Second)
		f.answer("worse")
		r = f.step(time.Second)
		asked = 3
	}
	if r.State != "reverting" || !strings.Contains(r.Reason, "rolled-back: not connected") {
		t.Fatalf("got %s, %q, want reverting", r.State, r.Reason)
	}
	f.answer("")
	f.step(time.Second)
	r = f.step(62 * time.Second)
	got := f.inUse()
	if r.State != "stopped" || got["new"] != 0 || got["old"] != 39 || count(r, "reverted") != asked {
		t.Errorf("got %s, %v in use, %d reverted, want stopped with the previous settings", r.State, got, count(r, "reverted"))
	}
}

func TestInvalidChangesOfSettings(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2).withSettings()
	for name, c := range map[string]struct {
		change rollout.Change
		waves  []int
		want   error
	}{
		"no text":       {rollout.Change{New: "x"}, nil, rollout.ErrInvalid},
		"waves":         {rollout.Change{Old: "old"}, []int{10}, rollout.ErrInvalid},
		"a NUL":         {rollout.Change{Old: "old", New: "\x00"}, nil, rollout.ErrInvalid},
		"not contained": {rollout.Change{Old: "older"}, nil, rollout.ErrUnchanged},
		"other agents":  {rollout.Change{Old: "old", Agents: []string{"agent-busan"}}, nil, rollout.ErrUnchanged},
	} {
		if err := f.StartSettings(context.WithoutCancel(t.Context()), c.change, c.waves, time.Minute, "admin:hq"); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// send installs an update.
func (f *fleet) send(to protocol.Peer, m protocol.Message) error {
	u := m.(protocol.Update)
	if u.Packages[0].URL == "agent.deb" {
		return errors.New("the address of a package is relative")
	}
	if u.Rollout == 0 {
		return errors.New("the update names no rollout")
	}
	f.asked[u.Version]++
	f.report(to.Username, u.Version)
	return nil
}

// step lets a time pass and returns the rollout.
func (f *fleet) step(d time.Duration) postgres.Rollout {
	f.t.Helper()
	f.now = f.now.Add(d)
	if err := f.Step(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	last, err := f.Last(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return last
}

func (f *fleet) start(version string, waves ...int) {
	f.t.Helper()
	if err := f.Start(f.t.Context(), version, waves, time.Minute, "admin:hq"); err != nil {
		f.t.Fatal(err)
	}
}

func count(r postgres.Rollout, state string) (n int) {
	for _, m := range r.Members {
		if m.State == state {
			n++
		}
	}
	return n
}

func (f *fleet) versions() (of map[string]int) {
	f.t.Helper()
	of = make(map[string]int)
	all, err := postgres.AgentCredentials(f.t.Context(), f.DB.Pool)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range all {
		of[a.Version]++
	}
	return of
}

// TestRolloutInWaves updates 40 agents, of which one is away, in waves of 1, 4 and 40.
func TestRolloutInWaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.exec(`update agent_credential set online = false where username = 'agent-load-007'`)
	f.start("2.0.0")
	if err := f.Start(t.Context(), "3.0.0", nil, time.Minute, "admin:hq"); !errors.Is(err, rollout.ErrOpen) {
		t.Errorf("second rollout: got %v, want ErrOpen", err)
	}
	for i, want := range []int{1, 4, 39} {
		f.step(time.Second)
		if got := f.versions()["2.0.0"]; got != want {
			t.Fatalf("wave %d: %d agents updated, want %d", i+1, got, want)
		}
		f.step(time.Second) // the new version is seen
		if r := f.step(30 * time.Second); r.Wave != i+1 || count(r, "healthy") == want {
			t.Fatalf("wave %d has ended before the settle time: %+v", i+1, r)
		}
		if r := f.step(31 * time.Second); count(r, "healthy") != want {
			t.Fatalf("wave %d: %d agents healthy, want %d", i+1, count(r, "healthy"), want)
		}
	}
	if r := f.step(time.Hour); r.State != "running" || count(r, "waiting") != 1 {
		t.Errorf("got %s with %d waiting, want running until the agent that is away is back", r.State, count(r, "waiting"))
	}
	f.exec(`update agent_credential set online = true where username = 'agent-load-007'`)
	f.step(time.Second)
	f.step(time.Second)
	f.step(61 * time.Second)
	if r := f.step(time.Second); r.State != "done" || f.versions()["2.0.0"] != 40 {
		t.Errorf("got %s, versions %v, want done", r.State, f.versions())
	}
}

// TestBadVersionStopsAtTheFirstWave checks that a version with which a self-test fails reaches one agent only, which then
// returns to the previous version.
func TestBadVersionStopsAtTheFirstWave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.broken = "2.0.0+broken"
	f.start(f.broken)
	f.step(time.Second)
	f.step(time.Second)
	r := f.step(61 * time.Second)
	if r.State != "reverting" || !strings.Contains(r.Reason, "1 failed self-tests, before 0") {
		t.Fatalf("got %s, %q, want reverting for the self-test", r.State, r.Reason)
	}
	f.step(time.Second)
	r = f.step(62 * time.Second)
	if r.State != "stopped" || count(r, "reverted") != 1 || count(r, "waiting") != 39 || f.versions()["1.0.0"] != 40 {
		t.Errorf("got %s, %d reverted, versions %v", r.State, count(r, "reverted"), f.versions())
	}
	if f.asked[f.broken] != 1 {
		t.Errorf("the broken version was sent %d times, want 1", f.asked[f.broken])
	}
	f.start("2.0.1") // a repaired one
}

// TestAgentThatRollsBack checks that the trial on the Pi stops the rollout at once.
func TestAgentThatRollsBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.start("2.0.0")
	f.Send = func(protocol.Peer, protocol.Message) error { return nil }
	f.step(time.Second)
	f.exec(`update agent_credential set report = report || '{"update": {"version": "2.0.0", "state": "rolled-back", "detail": "it does not connect"}}'`)
	f.step(time.Second)
	if r := f.step(time.Second); r.State != "stopped" || !strings.Contains(r.Reason, "it does not connect") || count(r, "failed") != 1 {
		t.Errorf("got %s, %q, %d failed, want stopped", r.State, r.Reason, count(r, "failed"))
	}
}

// TestRepairedPackageOfTheSameVersion begins a rollout while the last status of each agent names the failure of an earlier package.
func TestRepairedPackageOfTheSameVersion(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.start("2.0.0")
	f.exec(`update agent_credential set report = report || '{"update": {"version": "2.0.0", "state": "failed", "detail": "not signed"}}'`)
	install := f.Send
	f.Send = func(protocol.Peer, protocol.Message) error { return nil }
	for range 4 {
		if r := f.step(3 * time.Second); r.State != "running" {
			t.Fatalf("got %s, %q, want running", r.State, r.Reason)
		}
	}
	f.Send = install
	for range 60 {
		f.step(20 * time.Second)
	}
	if r := f.step(time.Second); r.State != "done" || count(r, "healthy") != 3 {
		t.Errorf("got %s, %q, %d healthy, want done", r.State, r.Reason, count(r, "healthy"))
	}
}

// TestAgentThatLosesItsConnection checks that a version with which an agent connects again and again is never healthy, neither
// the new one nor the previous one.
func TestAgentThatLosesItsConnection(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	online := func(is bool) { f.exec(`update agent_credential set online = $1`, is) }
	f.start("2.0.0")
	f.step(time.Second)
	var r postgres.Rollout
	for range 7 { // each connection is shorter than the settle time of a minute
		online(true)
		f.step(time.Second)
		r = f.step(50 * time.Second)
		if count(r, "healthy") > 0 {
			t.Fatal("an agent that was connected for 50 s is healthy, want a minute without interruption")
		}
		online(false)
		r = f.step(11 * time.Second)
	}
	if r.State != "reverting" || !strings.Contains(r.Reason, "not connected") {
		t.Fatalf("got %s, %q, want reverting", r.State, r.Reason)
	}
	online(true)
	f.step(time.Second)
	f.step(time.Second)
	online(false)
	f.step(2 * time.Minute)
	online(true)
	if r = f.step(time.Second); count(r, "reverted") > 0 {
		t.Error("the previous version is back at its first connection, want a minute without interruption")
	}
	if r = f.step(61 * time.Second); count(r, "reverted") != 1 || r.State != "stopped" {
		t.Errorf("got %s, want stopped with one agent reverted", r.State)
	}
}

// TestOneAgentCannotBeReached checks that the others are asked nevertheless.
func TestOneAgentCannotBeReached(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.start("2.0.0", 100)
	unreachable := errors.New("no connection")
	f.Send = func(to protocol.Peer, m protocol.Message) error {
		if to.Username == "agent-load-001" {
			return unreachable
		}
		return f.send(to, m)
	}
	f.now = f.now.Add(time.Second)
	if err := f.Step(t.Context()); !errors.Is(err, unreachable) {
		t.Errorf("got %v, want the error of the agent", err)
	}
	if f.asked["2.0.0"] != 2 {
		t.Errorf("%d agents were asked, want 2", f.asked["2.0.0"])
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	if err := f.Stop(t.Context(), "admin:hq"); !errors.Is(err, rollout.ErrNone) {
		t.Errorf("without a rollout: got %v, want ErrNone", err)
	}
	f.start("2.0.0", 100)
	f.step(time.Second)
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	f.step(time.Second)
	if err := f.Stop(t.Context(), "admin:other"); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	if r, err := f.Last(t.Context()); err != nil || r.Reason != "stopped by admin:hq" {
		t.Errorf("got reason %q (%v), want that of the first stop", r.Reason, err)
	}
	f.step(time.Second)
	if r := f.step(62 * time.Second); r.State != "stopped" || f.versions()["1.0.0"] != 3 {
		t.Errorf("got %s, versions %v, want stopped with the old version", r.State, f.versions())
	}
}

// TestStopDuringAStep stops a rollout while the service judges its agents: the stop waits.
func TestStopDuringAStep(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.start("2.0.0", 100)
	stopped := make(chan error, 1)
	err := f.DB.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if _, err := postgres.LockRollout(ctx, tx); err != nil {
			return err
		}
		go func() { stopped <- f.Stop(context.WithoutCancel(ctx), "admin:hq") }()
		for waiting := 0; waiting == 0; {
			select {
			case err := <-stopped:
				return fmt.Errorf("the stop did not wait: %w", err)
			case <-time.After(5 * time.Millisecond):
			}
			if err := f.DB.Pool.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1`, "Lock").Scan(&waiting); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("got %v, want the rollout stopped", err)
	}
}

func TestInvalidRollouts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	for name, c := range map[string]struct {
		version string
		waves   []int
		settle  time.Duration
		want    error
	}{
		"version":     {"latest", nil, 0, rollout.ErrInvalid},
		"not rising":  {"2.0.0", []int{10, 10, 100}, 0, rollout.ErrInvalid},
		"not to 100":  {"2.0.0", []int{1, 10}, 0, rollout.ErrInvalid},
		"zero":        {"2.0.0", []int{0, 100}, 0, rollout.ErrInvalid},
		"settle time": {"2.0.0", nil, 2 * time.Hour, rollout.ErrInvalid},
		"no package":  {"9.9.9", nil, 0, rollout.ErrNoPackage},
	} {
		if err := f.Start(context.WithoutCancel(t.Context()), c.version, c.waves, c.settle, "admin:hq"); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := f.Last(t.Context()); !errors.Is(err, rollout.ErrNone) {
		t.Errorf("got %v, want no rollout", err)
	}
}
