package device_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

var grantKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

// settingsFixture is a fixture whose messages to agents are recorded.
type settingsFixture struct {
	*fixture
	sent []protocol.Settings // to the agent of gangnam
}

func newSettingsFixture(t *testing.T) *settingsFixture {
	t.Helper()
	f := &settingsFixture{fixture: newFixture(t)}
	f.db.Now = func() time.Time { return f.now }
	f.SigningKey = func(context.Context, uint64) (ed25519.PrivateKey, error) { return grantKey, nil }
	f.Send = func(to protocol.Peer, m protocol.Message) error {
		s := m.(protocol.Settings)
		if err := s.Verify(to.Agent, grantKey.Public().(ed25519.PublicKey)); err != nil || to.Agent != agent("gangnam") {
			t.Errorf("settings for %v: %v", to.Agent, err)
		}
		f.sent = append(f.sent, s)
		return nil
	}
	return f
}

// report has the agent of gangnam report the state of its settings.
func (f *settingsFixture) report(status *protocol.SettingsStatus) {
	f.t.Helper()
	f.sendStatus(agent("gangnam"), protocol.Status{Settings: status})
}

// step returns the versions that are sent.
func (f *settingsFixture) step() (versions []uint64) {
	f.t.Helper()
	f.sent = nil
	if err := f.StepSettings(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	for _, s := range f.sent {
		versions = append(versions, s.Version)
	}
	return versions
}

// reopen makes the step that reads the reports of all agents.
func (f *settingsFixture) reopen() {
	f.t.Helper()
	if err := postgres.ReopenSettings(f.t.Context(), f.db.Pool, f.now); err != nil {
		f.t.Fatal(err)
	}
}

func (f *settingsFixture) change(text string) {
	f.t.Helper()
	if _, err := f.ChangeSettings(f.t.Context(), agent("gangnam").Username, nil, text, "admin:hq"); err != nil {
		f.t.Fatal(err)
	}
}

// use changes the settings and has the agent use them. version is the one that it receives.
func (f *settingsFixture) use(version uint64, text string) {
	f.t.Helper()
	f.change(text)
	f.report(&protocol.SettingsStatus{Highest: version, Version: version})
	f.step()
}

// states returns "version state" of all versions.
func (f *settingsFixture) states() (states []string) {
	f.t.Helper()
	all, err := postgres.SettingsOf(f.t.Context(), f.db.Pool, agent("gangnam").Username)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, s := range all {
		states = append(states, strings.TrimSpace(fmt.Sprintf("%d %s %s", s.Version, s.State, s.Detail)))
	}
	return states
}

func (f *settingsFixture) want(states ...string) {
	f.t.Helper()
	if got := f.states(); !slices.Equal(got, states) {
		f.t.Errorf("got versions %q, want %q", got, states)
	}
}

// TestSettingsAreSentUntilAnswered follows versions to each of their ends.
func TestSettingsAreSentUntilAnswered(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.report(nil)
	f.change("one")
	if got := f.step(); got != nil {
		t.Errorf("versions %v were sent to an agent that takes none", got)
	}
	f.report(&protocol.SettingsStatus{})
	for range 2 {
		if got := f.step(); !slices.Equal(got, []uint64{1}) || f.sent[0].Text != "one" {
			t.Errorf("got %+v, want version 1", f.sent)
		}
	}
	f.report(&protocol.SettingsStatus{Highest: 1, Trial: 1})
	if got := f.step(); got != nil {
		t.Errorf("versions %v were sent during the trial", got)
	}
	f.want("1 asked")
	f.report(&protocol.SettingsStatus{Highest: 1, Version: 1})
	f.step()
	f.want("1 in-use")

	f.change("two")
	f.change("three")
	if got := f.step(); !slices.Equal(got, []uint64{3}) {
		t.Errorf("got versions %v, want the last one only", got)
	}
	f.report(&protocol.SettingsStatus{Highest: 3, Version: 1, Ended: &protocol.SettingsOutcome{Version: 3, State: protocol.SettingsRolledBack, Detail: "not connected"}})
	f.step()
	f.want("3 rolled-back not connected", "2 superseded", "1 in-use")
	f.change("four")
	f.report(&protocol.SettingsStatus{Highest: 4, Version: 1, Ended: &protocol.SettingsOutcome{Version: 4, State: protocol.SettingsRefused, Detail: "no line"}})
	f.step()
	f.change("five")
	f.report(&protocol.SettingsStatus{Highest: 5, Version: 5})
	f.step()
	f.want("5 in-use", "4 refused no line", "3 rolled-back not connected", "2 superseded", "1 replaced")
	if got := f.step(); got != nil {
		t.Errorf("versions %v were sent after the answer", got)
	}
	audited := rows[string](f.fixture, `select action || ' ' || actor || ' ' || coalesce(detail ->> 'version', '') from audit where action like 'agent.settings%' order by id`)
	want := []string{"agent.settings admin:hq 1", "agent.settings-in-use system 1", "agent.settings admin:hq 2", "agent.settings admin:hq 3", "agent.settings-rolled-back system 3",
		"agent.settings admin:hq 4", "agent.settings-refused system 4", "agent.settings admin:hq 5", "agent.settings-in-use system 5"}
	if !slices.Equal(audited, want) {
		t.Errorf("got audit entries %q, want %q", audited, want)
	}
}

// TestLostSettingsAreSentAgain reports the state of a machine with a new SD card.
func TestLostSettingsAreSentAgain(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.use(1, "one")
	f.report(&protocol.SettingsStatus{})
	f.reopen()
	if got := f.step(); !slices.Equal(got, []uint64{1}) {
		t.Errorf("got versions %v, want 1 again", got)
	}
	f.report(&protocol.SettingsStatus{Highest: 1, Version: 1})
	f.step()
	f.want("1 in-use")
}

// TestSettingsAfterRestore restores a backup from before the last versions of an agent: the next one is higher than those that the agent
// has received, so the agent takes it, and none of its versions counts as one of another text.
func TestSettingsAfterRestore(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.change("one")
	f.report(&protocol.SettingsStatus{Highest: 5, Version: 4})
	f.step()
	f.want("1 asked")
	f.change("two")
	if got := f.step(); !slices.Equal(got, []uint64{6}) || f.sent[0].Text != "two" {
		t.Errorf("got %+v, want version 6", f.sent)
	}
	f.want("6 asked", "1 superseded")
	f.report(&protocol.SettingsStatus{Highest: 6, Version: 6})
	f.step()
	f.want("6 in-use", "1 superseded")

	f.report(&protocol.SettingsStatus{Highest: 8})
	f.now = f.now.Add(time.Minute)
	if err := f.SettingsFile(t.Context(), agent("gangnam"), protocol.SettingsFile{Base: 8, Text: "edited"}); err != nil {
		t.Fatal(err)
	}
	f.want("9 asked", "6 in-use", "1 superseded")
	f.report(&protocol.SettingsStatus{Highest: math.MaxUint64})
	f.change("after a wrong number")
	if got := f.states()[0]; !strings.HasSuffix(got, " asked") {
		t.Errorf("got version %q, want one that was asked", got)
	}
}

// TestSettingsLostByARestoration restores a backup from before versions that an agent uses. None of the backup's is listed as in use, or waits for an
// answer: an editor would take settings for present that the agent has left, such as the lines of other doors.
func TestSettingsLostByARestoration(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.use(1, "one")
	f.change("two")
	f.want("2 asked", "1 in-use")
	f.report(&protocol.SettingsStatus{Highest: 4, Version: 1}) // it has refused three versions
	f.reopen()
	f.want("2 superseded", "1 in-use")
	f.report(&protocol.SettingsStatus{Highest: 4, Version: 2}) // it has returned to this one
	f.reopen()
	f.step()
	f.reopen()
	f.want("2 in-use", "1 replaced")
	f.report(&protocol.SettingsStatus{Highest: 5, Version: 5})
	f.reopen()
	f.want("2 replaced", "1 replaced")
	f.use(6, "six")
	f.reopen()
	f.want("6 in-use", "2 replaced", "1 replaced")
}

// TestSupersededSettingsInUse adds a version during the trial of another. The agent refuses it and keeps the earlier one, which is
// then in use although a later one came before the answer.
func TestSupersededSettingsInUse(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.use(1, "one")
	f.change("two")
	f.report(&protocol.SettingsStatus{Highest: 2, Version: 1, Trial: 2})
	f.step()
	f.change("three")
	refused := &protocol.SettingsOutcome{Version: 3, State: protocol.SettingsRefused, Detail: "no line"}
	f.report(&protocol.SettingsStatus{Highest: 3, Version: 1, Trial: 2, Ended: refused})
	f.reopen()
	f.step()
	f.want("3 refused no line", "2 superseded", "1 in-use")
	f.report(&protocol.SettingsStatus{Highest: 3, Version: 2})
	f.reopen()
	if got := f.step(); got != nil {
		t.Errorf("versions %v were sent, want none: the agent has them", got)
	}
	f.want("3 refused no line", "2 in-use", "1 replaced")
}

// TestEditorsAtTheSameTime has several editors change the same version at once: one of them succeeds, and the others learn that the
// settings have changed.
func TestEditorsAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	const editors = 8
	results := make(chan error, editors)
	for i := range editors {
		go func() {
			_, err := f.ChangeSettings(t.Context(), agent("gangnam").Username, new(uint64), fmt.Sprint("# ", i), "admin:hq")
			results <- err
		}()
	}
	changed := 0
	for range editors {
		if err := <-results; err == nil {
			changed++
		} else if !errors.Is(err, device.ErrSettingsChanged) {
			t.Errorf("got %v, want ErrSettingsChanged", err)
		}
	}
	if changed != 1 {
		t.Errorf("%d editors changed the settings, want 1", changed)
	}
}

// TestFileOfTheMachine checks that settings edited on the machine become a version if the agent knows the last one.
func TestFileOfTheMachine(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	file := func(base uint64, text string) {
		t.Helper()
		if err := f.SettingsFile(t.Context(), agent("gangnam"), protocol.SettingsFile{Base: base, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	f.report(&protocol.SettingsStatus{})
	file(0, "file")
	if f.step(); len(f.sent) != 1 || f.sent[0].Text != "file" {
		t.Errorf("got %+v, want the file as a version", f.sent)
	}
	file(0, "file") // repeated
	file(1, "too soon")
	f.want("1 asked")
	f.report(&protocol.SettingsStatus{Highest: 1, Version: 1})
	f.step()
	f.now = f.now.Add(time.Minute)
	f.change("two")
	file(1, "edited at the same time")
	f.want("2 asked", "1 in-use")
	f.report(&protocol.SettingsStatus{Highest: 2, Version: 2})
	f.step()
	file(2, "edited")
	f.want("3 asked", "2 in-use", "1 replaced")
	if last, err := postgres.SettingsVersion(t.Context(), f.db.Pool, agent("gangnam").Username, 0); err != nil || last.CreatedBy != "agent:agent-gangnam" {
		t.Errorf("got %+v, %v, want the agent as author", last, err)
	}
}

func TestChangeSettings(t *testing.T) {
	t.Parallel()
	f := newSettingsFixture(t)
	f.change("one")
	base := uint64(0)
	name := agent("gangnam").Username
	for what, c := range map[string]struct {
		username, text string
		base           *uint64
		want           error
	}{
		"empty":              {name, "", nil, device.ErrSettings},
		"control characters": {name, "\x00", nil, device.ErrSettings},
		"too long":           {name, strings.Repeat("x", protocol.MaxSettings+1), nil, device.ErrSettings},
		"too long in JSON":   {name, strings.Repeat("<", protocol.MaxSettings), nil, device.ErrSettings},
		"an old base":        {name, "two", &base, device.ErrSettingsChanged},
		"no agent":           {"agent-nowhere", "two", nil, postgres.ErrNoAgent},
	} {
		if _, err := f.ChangeSettings(t.Context(), c.username, c.base, c.text, "admin:hq"); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
	if err := postgres.RevokeAgent(t.Context(), f.db.Pool, name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ChangeSettings(t.Context(), name, nil, "two", "admin:hq"); !errors.Is(err, postgres.ErrNoAgent) {
		t.Errorf("a revoked agent: got %v, want ErrNoAgent", err)
	}
}
