package rollout_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
	"github.com/yeolda/yeolda/protocol"
)

// TestReplacedAgentIsSkipped replaces the only agent of the first wave while it installs the version: another one takes its place. The
// stop of the rollout does not wait for that one either when it is replaced in turn.
func TestReplacedAgentIsSkipped(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.Send = func(protocol.Peer, protocol.Message) error { return nil } // the installation lasts
	f.start("2.0.0")
	replace := func(r postgres.Rollout) {
		t.Helper()
		asked := inState(r, "asked")
		if len(asked) != 1 || r.Wave != 1 {
			t.Fatalf("got %v asked in wave %d, want one agent in the first", asked, r.Wave)
		}
		f.exec(`update agent_credential set active = false, online = false, revoked_at = now() where username = $1`, asked[0])
	}
	replace(f.step(time.Second))
	r := f.step(time.Second)
	if r.State != "running" || count(r, "skipped") != 1 {
		t.Fatalf("got %s with %d skipped, want running without the replaced agent", r.State, count(r, "skipped"))
	}
	f.step(4 * time.Minute)
	if r = f.step(time.Second); r.State != "stopped" {
		t.Fatalf("got %s, want the second agent, which does not install the version, to stop it", r.State)
	}

	f.resume()
	r = f.step(time.Second)
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	replace(r)
	if r = f.step(time.Second); r.State != "stopped" || count(r, "skipped") != 3 {
		t.Errorf("got %s with %d skipped, want stopped at once", r.State, count(r, "skipped"))
	}
}

// TestSkipOfflineEndsTheRollout leaves out the branches that are closed: one of the first wave, whose place another agent takes, and one of the
// last wave, for which the rollout would wait. Agents of later waves that are connected stay.
func TestSkipOfflineEndsTheRollout(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	skip := func() error { return f.SkipOffline(t.Context(), "admin:hq") }
	if err := skip(); !errors.Is(err, rollout.ErrNone) {
		t.Errorf("without a rollout: got %v, want ErrNone", err)
	}
	f.start("2.0.0")
	last, err := f.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := []string{last.Members[0].Username, last.Members[39].Username}
	f.exec(`update agent_credential set online = false where username = any($1)`, closed)
	if r := f.step(time.Hour); r.Wave != 1 || count(r, "waiting") != 40 {
		t.Fatalf("got wave %d with %d waiting, want the first wave to wait for its agent", r.Wave, count(r, "waiting"))
	}
	if err := skip(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.settle()
	}
	r := f.step(time.Second)
	if skipped := inState(r, "skipped"); r.State != "done" || count(r, "healthy") != 38 || !slices.Equal(slices.Sorted(slices.Values(skipped)), slices.Sorted(slices.Values(closed))) {
		t.Errorf("got %s with %d healthy, skipped %v, want done without %v", r.State, count(r, "healthy"), skipped, closed)
	}
	if err := skip(); !errors.Is(err, rollout.ErrNone) {
		t.Errorf("after the end: got %v, want ErrNone", err)
	}
	f.start("2.0.1") // it concerns the branches that were closed, too
}

// TestLaterSettingsAreKept has an administrator change the settings of an agent after a rollout did: neither its progress nor its stop
// depends on that agent any more, and its later settings stay.
func TestLaterSettingsAreKept(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).withSettings()
	f.startSettings(rollout.Change{Old: "old", New: "new"}, 100)
	f.step(time.Second)
	f.answer("")
	f.step(time.Second)
	edit := func(username string) {
		t.Helper()
		err := f.DB.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			_, err := postgres.InsertSettings(ctx, tx, postgres.NewSettings{Username: username, Text: "edited " + username, By: "admin:hq"}, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		f.answer("")
	}
	edit("agent-load-001")
	if r := f.step(time.Second); r.State != "running" || count(r, "skipped") != 1 || count(r, "asked") != 2 {
		t.Fatalf("got %s with %d skipped, want the edited agent to be skipped", r.State, count(r, "skipped"))
	}
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	edit("agent-load-002") // before it has returned, together with the way back of the others
	f.answer("")
	f.step(time.Second)
	r := f.step(62 * time.Second)
	if got := f.inUse(); r.State != "stopped" || got["edited"] != 2 || got["old"] != 1 {
		t.Errorf("got %s, settings %v, want stopped with both edits kept", r.State, got)
	}
}

// TestSettingsOnTheirWayAreKept has an administrator change the settings of an agent just before a rollout asks it. The rollout changes these, not
// the previous ones, which would undo the edit: the agent is asked when it has answered, or if it does not.
func TestSettingsOnTheirWayAreKept(t *testing.T) {
	t.Parallel()
	edited := func(agents int) *fleet {
		f := newFleet(t, agents).withSettings()
		err := f.DB.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			_, err := postgres.InsertSettings(ctx, tx, postgres.NewSettings{Username: "agent-load-001", Text: "edited old agent-load-001", By: "admin:lee"}, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		f.startSettings(rollout.Change{Old: "old", New: "new"}, 100)
		if r := f.step(time.Second); count(r, "asked") != agents-1 || count(r, "waiting") != 1 {
			t.Errorf("%d agents asked, %d waiting, want the edited one to wait", count(r, "asked"), count(r, "waiting"))
		}
		return f
	}
	f := edited(3)
	f.answer("")
	f.step(time.Second)
	f.answer("")
	if got, want := f.inUse(), map[string]int{"edited new": 1, "new": 2}; !maps.Equal(got, want) {
		t.Errorf("got settings %v, want %v", got, want)
	}
	f = edited(1)
	if r := f.step(10 * time.Minute); count(r, "asked") != 1 {
		t.Error("an agent that does not answer keeps the rollout waiting")
	}
}
