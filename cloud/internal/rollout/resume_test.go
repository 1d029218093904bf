package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
	"github.com/yeolda/yeolda/protocol"
)

func (f *fleet) resume() {
	f.t.Helper()
	if err := f.Resume(f.t.Context(), "admin:hq"); err != nil {
		f.t.Fatal(err)
	}
}

// settle lets a wave that was asked become healthy, or go back.
func (f *fleet) settle() postgres.Rollout {
	f.t.Helper()
	f.step(time.Second)
	f.step(time.Second)
	return f.step(61 * time.Second)
}

func inState(r postgres.Rollout, state string) (usernames []string) {
	for _, m := range r.Members {
		if m.State == state {
			usernames = append(usernames, m.Username)
		}
	}
	return usernames
}

// TestResumeContinuesAtItsWave stops a rollout by hand in the second of its waves of 1, 4 and 40 agents. It continues there: the agents
// of both waves install the version at once, the others wait.
func TestResumeContinuesAtItsWave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.start("2.0.0")
	f.settle()
	f.step(time.Second) // the second wave is asked
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	if err := f.Resume(t.Context(), "admin:hq"); !errors.Is(err, rollout.ErrOpen) {
		t.Errorf("while agents return: got %v, want ErrOpen", err)
	}
	if r := f.settle(); r.State != "stopped" || f.versions()["1.0.0"] != 40 {
		t.Fatalf("got %s, versions %v, want stopped with the previous version", r.State, f.versions())
	}
	f.resume()
	if r := f.step(time.Second); r.State != "running" || r.Wave != 2 || r.Reason != "" || !r.EndedAt.IsZero() || f.versions()["2.0.0"] != 4 {
		t.Errorf("got %s in wave %d, versions %v, want the 4 agents of the first two waves", r.State, r.Wave, f.versions())
	}
	f.settle()
	f.settle()
	if r := f.step(time.Second); r.State != "done" || f.versions()["2.0.0"] != 40 {
		t.Errorf("got %s, versions %v, want done", r.State, f.versions())
	}
	var audited []string
	if err := f.DB.Pool.QueryRow(t.Context(), `select array_agg(action || ' ' || target || ' ' || coalesce(detail ->> 'wave', '') order by id) from audit`).Scan(&audited); err != nil {
		t.Fatal(err)
	}
	if want := "[agent.rollout 2.0.0  agent.rollout-stop 2.0.0  agent.rollout-resume 2.0.0 2]"; fmt.Sprint(audited) != want {
		t.Errorf("got audit entries %v, want %s", audited, want)
	}
}

// TestResumeLeavesOutTheAgentThatFailed resumes a rollout that one defective agent has stopped: another one takes its place in the
// first wave. The defective agent keeps the previous version.
func TestResumeLeavesOutTheAgentThatFailed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.start("2.0.0")
	f.broken = "2.0.0"
	f.step(time.Second)
	f.broken = "" // only this agent
	f.step(time.Second)
	f.step(61 * time.Second)
	if r := f.settle(); r.State != "stopped" || len(inState(r, "reverted")) != 1 {
		t.Fatalf("got %s, want stopped with one agent reverted", r.State)
	}
	f.resume()
	r := f.step(time.Second)
	out := inState(r, "skipped")
	if len(out) != 1 || count(r, "asked") != 1 || r.Wave != 1 {
		t.Fatalf("got %d skipped and %d asked in wave %d, want one of each in the first", len(out), count(r, "asked"), r.Wave)
	}
	for _, m := range r.Members {
		if m.State == "asked" && m.Wave != 1 || m.State == "skipped" && !strings.Contains(m.Detail, "1 failed self-tests") {
			t.Errorf("got %+v, want an agent in the first wave, and the reason for the one that is skipped", m)
		}
	}
	for range 3 {
		f.settle()
	}
	if r := f.step(time.Second); r.State != "done" || count(r, "healthy") != 39 || f.versions()["1.0.0"] != 1 {
		t.Errorf("got %s with %d healthy, versions %v, want 39 agents updated", r.State, count(r, "healthy"), f.versions())
	}
}

// TestResumedBadVersionStopsAgain checks that a version which is bad for all agents still reaches only one agent more.
func TestResumedBadVersionStopsAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40)
	f.broken = "2.0.0+broken"
	f.start(f.broken)
	f.settle()
	f.settle()
	f.resume()
	f.settle()
	r := f.settle()
	if r.State != "stopped" || r.Wave != 1 || count(r, "skipped") != 1 || count(r, "reverted") != 1 || f.asked[f.broken] != 2 {
		t.Errorf("got %s in wave %d, %d skipped, %d reverted, sent %d times; want the second agent to stop it", r.State, r.Wave, count(r, "skipped"), count(r, "reverted"), f.asked[f.broken])
	}
	f.resume()
	if r := f.step(time.Second); count(r, "skipped") != 2 {
		t.Errorf("got %d skipped, want both agents that failed", count(r, "skipped"))
	}
}

// TestResumeSkipsAgentsThatWereReplaced checks that a rollout does not wait for an agent that was revoked while it was stopped.
func TestResumeSkipsAgentsThatWereReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.start("2.0.0", 100)
	f.settle()
	f.start("3.0.0", 50, 100)
	f.step(time.Second)
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	r := f.settle()
	f.exec(`update agent_credential set active = false, revoked_at = now() where username = $1`, inState(r, "waiting")[0])
	f.resume()
	f.settle()
	f.settle()
	if r := f.step(time.Second); r.State != "done" || count(r, "healthy") != 2 || count(r, "skipped") != 1 {
		t.Errorf("got %s with %d healthy and %d skipped, want done without the revoked agent", r.State, count(r, "healthy"), count(r, "skipped"))
	}
}

// TestResumeOfSettings resumes changed settings that one agent has refused. The settings of another agent have changed in the meantime:
// its change is kept. Those of a third one no longer contain the text.
func TestResumeOfSettings(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 40).withSettings()
	f.startSettings(rollout.Change{Old: "old", New: "new"}, 10, 100)
	f.step(time.Second)
	asked := inState(f.step(time.Second), "asked")
	if len(asked) != 4 {
		t.Fatalf("%d agents were asked, want 4", len(asked))
	}
	f.answer(asked[0]) // it rolls back
	f.step(time.Second)
	f.answer("")
	r := f.settle()
	if r.State != "stopped" || f.inUse()["old"] != 40 {
		t.Fatalf("got %s, settings %v, want stopped with the previous ones", r.State, f.inUse())
	}
	waiting := inState(r, "waiting")
	f.exec(`update agent_settings set settings = 'louder old ' || username where username = $1`, waiting[1])
	f.exec(`update agent_settings set settings = 'else ' || username where username = $1`, waiting[2])
	f.resume()
	f.step(time.Second)
	f.answer("")
	if got := f.inUse(); got["new"] != 4 || got["old"] != 34 {
		t.Errorf("got settings %v, want the new ones for 4 agents of the first wave", got)
	}
	f.settle()
	f.step(time.Second)
	f.answer("")
	f.settle()
	r = f.step(time.Second)
	if got := f.inUse(); r.State != "done" || got["new"] != 37 || got["louder new"] != 1 || got["else"] != 1 || got["old"] != 1 {
		t.Errorf("got %s, settings %v, want done, with the changes of the meantime", r.State, got)
	}
}

// TestResumeOfOlderSettings resumes a rollout of an earlier version, which has the texts of its agents instead of the change.
func TestResumeOfOlderSettings(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2).withSettings()
	f.startSettings(rollout.Change{Old: "old", New: "new"}, 100)
	f.exec(`update agent_rollout set change = null`)
	if err := f.Stop(t.Context(), "admin:hq"); err != nil {
		t.Fatal(err)
	}
	f.step(time.Second)
	f.resume()
	f.step(time.Second)
	f.answer("")
	if got := f.inUse(); got["new"] != 2 {
		t.Errorf("got settings %v, want the new ones", got)
	}
}

func TestNothingToResume(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	want := func(what string, want error) {
		t.Helper()
		if err := f.Resume(context.WithoutCancel(t.Context()), "admin:hq"); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	want("no rollout", rollout.ErrNotStopped)
	f.start("2.0.0", 100)
	want("a running one", rollout.ErrOpen)
	f.settle()
	if r := f.step(time.Second); r.State != "done" {
		t.Fatalf("got %s, want done", r.State)
	}
	want("one that is done", rollout.ErrNotStopped)
	f.start("3.0.0")
	f.Send = func(protocol.Peer, protocol.Message) error { return nil }
	f.step(time.Second)
	f.exec(`update agent_credential set report = report || '{"update": {"version": "3.0.0", "state": "failed", "detail": "no disk"}}'`)
	f.step(time.Second)
	f.step(time.Second)
	want("no agent is left", rollout.ErrNotStopped)
	if r := f.step(time.Second); r.State != "stopped" {
		t.Errorf("got %s, want stopped", r.State)
	}
	f.exec(`update agent_rollout set version = '9.9.9'`)
	want("no package", rollout.ErrNoPackage)
}
