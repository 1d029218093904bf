package settings

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/protocol"
)

var (
	signer  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	trusted = []ed25519.PublicKey{signer.Public().(ed25519.PublicKey)}
	gangnam = protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
)

var errPower = errors.New("power failure")

// disk is a Disk in memory whose power can fail before or after a write.
type disk struct {
	content []byte
	fail    func() (before, after bool) // nil: never
}

func (d *disk) Read(string) ([]byte, error) {
	if d.content == nil {
		return nil, fs.ErrNotExist
	}
	return d.content, nil
}

func (d *disk) Replace(_ string, data []byte) error {
	var before, after bool
	if d.fail != nil {
		before, after = d.fail()
	}
	if before {
		return errPower
	}
	d.content = data
	if after {
		return errPower
	}
	return nil
}

// machine is a fixture: a disk, a settings file, and the keeper of the agent that runs.
type machine struct {
	*Keeper
	disk *disk
	file string
	// saved is the copy of the settings that worked last; empty: none.
	saved string
}

func newMachine(file string) *machine {
	m := &machine{disk: new(disk), file: file}
	m.start()
	return m
}

// start starts the agent.
func (m *machine) start() { m.startAs(gangnam) }

func (m *machine) startAs(agent protocol.Agent) {
	m.Keeper = Open(Config{Disk: m.disk, File: func() (string, error) { return m.file, nil }, Saved: func() string { return m.saved }, Check: check, Log: slog.New(slog.DiscardHandler)})
	m.Enrolled(agent)
}

func check(text string) error {
	if strings.Contains(text, "mistake") {
		return errors.New("there is a mistake")
	}
	return nil
}

func (m *machine) receive(version uint64, text string) bool {
	return m.Receive(protocol.Settings{Version: version, Text: text}.Sign(signer, gangnam), trusted)
}

// observe lets a time pass with the agent connected or not.
func (m *machine) observe(d time.Duration, connected bool, failing ...string) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		m.Observe(connected, failing)
	}
	m.Observe(connected, failing)
}

func (m *machine) want(t *testing.T, text string, status protocol.SettingsStatus) {
	t.Helper()
	if got, _ := m.Text(); got != text {
		t.Errorf("got settings %q, want %q", got, text)
	}
	got := *m.Status()
	if (got.Ended == nil) != (status.Ended == nil) || got.Ended != nil && (got.Ended.Version != status.Ended.Version || got.Ended.State != status.Ended.State || !strings.Contains(got.Ended.Detail, status.Ended.Detail)) {
		t.Errorf("got end %+v, want %+v", got.Ended, status.Ended)
	}
	if got.Version != status.Version || got.Trial != status.Trial {
		t.Errorf("got version %d and trial %d, want %d and %d", got.Version, got.Trial, status.Version, status.Trial)
	}
}

func refused(version uint64, detail string) *protocol.SettingsOutcome {
	return &protocol.SettingsOutcome{Version: version, State: protocol.SettingsRefused, Detail: detail}
}

func rolledBack(version uint64, detail string) *protocol.SettingsOutcome {
	return &protocol.SettingsOutcome{Version: version, State: protocol.SettingsRolledBack, Detail: detail}
}

// TestNewSettingsComeIntoUse receives a version, restarts with it and is connected for the settle time.
func TestNewSettingsComeIntoUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("file")
		m.want(t, "file", protocol.SettingsStatus{})
		if !m.receive(1, "one") || !m.RestartDue() {
			t.Fatal("no restart is due")
		}
		m.want(t, "file", protocol.SettingsStatus{Trial: 1})
		m.start()
		m.want(t, "one", protocol.SettingsStatus{Trial: 1})
		m.observe(SettleTime-time.Second, true)
		m.want(t, "one", protocol.SettingsStatus{Trial: 1})
		m.observe(time.Second, false) // it loses the connection
		m.observe(SettleTime-2*time.Second, true)
		m.want(t, "one", protocol.SettingsStatus{Trial: 1})
		m.observe(2*time.Second, true)
		m.want(t, "one", protocol.SettingsStatus{Version: 1})
		if m.RestartDue() {
			t.Error("a restart is due with the settings in use")
		}
		m.start()
		m.want(t, "one", protocol.SettingsStatus{Version: 1})
	})
}

// TestSettingsAreRolledBack checks each reason. The previous settings are in use again after the restart.
func TestSettingsAreRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     func(m *machine)
		detail string
	}{
		"no connection":      {func(m *machine) { m.observe(TrialTimeout, false) }, "not connected for 10s within 2m0s"},
		"unsteady":           {func(m *machine) { unsteady(m) }, "not connected for 10s within 2m0s"},
		"a worse self-test":  {func(m *machine) { m.observe(SettleTime, true, "relay front_1", "sense front_1") }, "this self-test fails: sense front_1"},
		"crashes":            {func(m *machine) { m.start(); m.start(); m.start() }, "was started 3 times"},
		"edited on the site": {func(m *machine) { m.file = "edited"; m.start() }, "edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMachine("file")
				m.receive(1, "one")
				m.start()
				m.observe(SettleTime, true, "relay front_1")
				m.start()
				m.observe(2*time.Second, true, "relay front_1")
				m.want(t, "file", protocol.SettingsStatus{Ended: rolledBack(1, "this self-test fails: relay front_1")})
				m.receive(2, "two")
				m.start()
				m.want(t, "two", protocol.SettingsStatus{Trial: 2, Ended: rolledBack(1, "relay front_1")})
				c.do(m)
				if m.trying && !m.RestartDue() {
					t.Error("no restart is due")
				}
				m.start()
				m.want(t, m.file, protocol.SettingsStatus{Ended: rolledBack(2, c.detail)})
				if m.receive(2, "two") || m.RestartDue() {
					t.Error("the version that was rolled back is tried again")
				}
				m.receive(3, "three")
				m.start()
				m.want(t, "three", protocol.SettingsStatus{Trial: 3, Ended: rolledBack(2, c.detail)})
			})
		})
	}
}

func unsteady(m *machine) {
	for range 12 {
		m.observe(8*time.Second, true, "relay front_1")
		m.observe(2*time.Second, false, "relay front_1")
	}
}

// TestFirstSettingsStay gives a machine without settings, such as one that replaces another, settings with which the lock of a door
// fails: without them no door at all would work. Settings with which it does not reach the cloud are rolled back there, too.
func TestFirstSettingsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("# the file of the package\n")
		m.receive(1, "one")
		m.start()
		m.observe(SettleTime, true, "relay room_4")
		m.want(t, "one", protocol.SettingsStatus{Version: 1})
		m.receive(2, "two")
		m.start()
		m.observe(SettleTime, true, "relay room_4", "relay room_5")
		m.want(t, "two", protocol.SettingsStatus{Version: 1, Ended: rolledBack(2, "relay room_5")})

		m = newMachine("")
		m.receive(1, "one")
		m.start()
		m.observe(TrialTimeout, false)
		m.want(t, "one", protocol.SettingsStatus{Ended: rolledBack(1, "not connected")})
	})
}

// TestTrialAfterATrial receives version 3 while version 2, with which the lock of a door fails, is on trial or rolled back. Version 3 is
// compared with version 1, to which the agent returns, and not with the version on trial.
func TestTrialAfterATrial(t *testing.T) {
	t.Parallel()
	for name, trial := range map[string]time.Duration{"on trial": SettleTime / 2, "rolled back": SettleTime} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMachine("")
				m.receive(1, "one")
				m.start()
				m.observe(SettleTime, true, "relay room_1")
				m.receive(2, "two")
				m.start()
				m.observe(trial, true, "relay room_1", "relay room_3")
				m.receive(3, "three")
				m.start()
				m.observe(SettleTime, true, "relay room_1", "relay room_3")
				if !m.RestartDue() {
					t.Error("the agent continues with settings that break a door")
				}
				m.start()
				m.want(t, "one", protocol.SettingsStatus{Version: 1, Ended: rolledBack(3, "relay room_3")})
			})
		})
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	m := newMachine("file")
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	foreign := protocol.Settings{Version: 9, Text: "x"}
	for name, s := range map[string]protocol.Settings{
		"another key":    foreign.Sign(other, gangnam),
		"another agent":  foreign.Sign(signer, protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}),
		"another branch": foreign.Sign(signer, protocol.Agent{Branch: "hongdae", Username: "agent-gangnam"}),
	} {
		if m.Receive(s, trusted) {
			t.Errorf("%s: the settings are not ignored", name)
		}
	}
	m.want(t, "file", protocol.SettingsStatus{})
	m.receive(4, "a mistake")
	m.want(t, "file", protocol.SettingsStatus{Ended: refused(4, "there is a mistake")})
	if m.RestartDue() || m.receive(4, "four") || m.receive(3, "three") {
		t.Error("a version that is not newer was taken")
	}
	m.receive(5, "file") // what runs already
	if m.RestartDue() {
		t.Error("a restart is due with the same settings")
	}
	m.want(t, "file", protocol.SettingsStatus{Version: 5})
	m.receive(6, "six")
	m.receive(7, "file") // it was taken back before the restart
	if m.RestartDue() {
		t.Error("a restart is due with the same settings")
	}
	m.want(t, "file", protocol.SettingsStatus{Version: 7})
}

// TestFullDisk checks that settings that cannot be stored are not used.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	m := newMachine("file")
	m.disk.fail = func() (bool, bool) { return true, false }
	m.receive(1, "one")
	if m.RestartDue() {
		t.Error("a restart is due")
	}
	m.want(t, "file", protocol.SettingsStatus{Ended: refused(1, "power failure")})
	m.disk.fail = nil
	m.receive(1, "one")
	m.want(t, "file", protocol.SettingsStatus{Trial: 1, Ended: refused(1, "power failure")})
	m.disk.fail = func() (bool, bool) { return true, false }
	m.start() // the start cannot be counted, so settings that end the agent would do so indefinitely
	if got, _ := m.Text(); got != "file" {
		t.Errorf("got settings %q, want the previous ones", got)
	}
}

// TestEditedFile checks that the last edit counts: of the file on the machine, or of the settings in the cloud.
func TestEditedFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("# nothing yet\n\n")
		if _, ok := m.Unknown(); ok {
			t.Error("an empty file is sent to the cloud")
		}
		m.file = "file"
		m.start()
		if got, ok := m.Unknown(); !ok || got != (protocol.SettingsFile{Text: "file"}) {
			t.Errorf("got %+v, %v, want the file", got, ok)
		}
		m.receive(1, "file") // the cloud has stored it
		if _, ok := m.Unknown(); ok {
			t.Error("the cloud has the settings already")
		}
		m.receive(2, "two")
		m.start()
		if _, ok := m.Unknown(); ok {
			t.Error("settings on trial are sent to the cloud")
		}
		m.observe(SettleTime, true)
		m.file = "a mistake"
		m.start()
		m.want(t, "two", protocol.SettingsStatus{Version: 2})
		if m.Mistake() == nil {
			t.Error("the mistake in the file is not reported")
		}
		m.file = "# from an update of the package\n"
		m.start()
		m.want(t, "two", protocol.SettingsStatus{Version: 2})
		m.file = "edited"
		m.start()
		m.want(t, "edited", protocol.SettingsStatus{})
		if got, ok := m.Unknown(); !ok || got != (protocol.SettingsFile{Base: 2, Text: "edited"}) {
			t.Errorf("got %+v, %v, want the file with base 2", got, ok)
		}
		m.receive(3, "edited")
		m.want(t, "edited", protocol.SettingsStatus{Version: 3})
	})
}

// TestEnrolledAgain checks that a new credential keeps the settings of the hardware, without a number of the old credential.
func TestEnrolledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("file")
		m.receive(7, "seven")
		m.start()
		m.observe(SettleTime, true)
		m.want(t, "seven", protocol.SettingsStatus{Version: 7})
		again := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}
		for range 2 {
			m.startAs(again)
			m.want(t, "seven", protocol.SettingsStatus{})
			if got, ok := m.Unknown(); !ok || got != (protocol.SettingsFile{Text: "seven"}) {
				t.Errorf("got %+v, %v, want the settings without a base", got, ok)
			}
		}
		m.Receive(protocol.Settings{Version: 1, Text: "seven"}.Sign(signer, again), trusted)
		m.want(t, "seven", protocol.SettingsStatus{Version: 1})
	})
}

func TestWithoutDisk(t *testing.T) {
	t.Parallel()
	k := Open(Config{File: func() (string, error) { return "file", nil }, Check: check, Log: slog.New(slog.DiscardHandler)})
	k.Enrolled(gangnam)
	if k.Receive(protocol.Settings{Version: 1, Text: "one"}.Sign(signer, gangnam), trusted) || k.Status() != nil {
		t.Error("settings were taken without a place to store them")
	}
	if _, ok := k.Unknown(); ok {
		t.Error("the file is sent to a cloud whose answer cannot be stored")
	}
}

// TestPowerFailures lets the power fail before and after any write, and restarts the machine at any moment. The
// agent runs with settings that were in use or are on trial, and settings with which it never connects never stay.
func TestPowerFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 25).Draw(r, "steps")
		power := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 25).Draw(r, "power")
		var text string
		synctest.Test(t, func(*testing.T) { text = survive(steps, power) })
		if text != "file" && text != "good" {
			r.Fatalf("the agent stays with settings %q", text)
		}
	})
}

// survive returns the settings with which the agent runs after these steps and a while without power failures.
func survive(steps, power []int) (text string) {
	m := newMachine("file")
	connects := func() bool {
		text, _ = m.Text()
		return text != "bad"
	}
	writes := 0
	m.disk.fail = func() (before, after bool) {
		writes++
		p := power[writes%len(power)]
		return p == 0, p == 1
	}
	for i, step := range steps {
		switch step {
		case 0, 1, 2, 3:
			m.receive(uint64(i+1), []string{"good", "bad", "file", "a mistake"}[step])
		case 4:
			m.start()
		case 5:
			m.observe(SettleTime+time.Second, connects())
		case 6:
			m.observe(TrialTimeout, connects())
		}
	}
	m.disk.fail = nil
	for range 2 { // a trial that has just begun, and the previous settings
		m.start()
		m.observe(TrialTimeout, connects())
	}
	m.start()
	connects()
	return text
}

// TestDamagedState starts with a state that the card has lost. The copy of the settings that worked last is in use, because without settings
// no door opens, until the cloud has sent its own again.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for saved, want := range map[string]string{"from the cloud": "from the cloud", "# nothing": "file", "a mistake": "file"} {
			m := newMachine("file")
			m.disk.content, m.saved = []byte(`{"username": "ag`), saved
			m.start()
			m.want(t, want, protocol.SettingsStatus{})
			m.start()
			m.want(t, want, protocol.SettingsStatus{})
			if want == "file" {
				continue
			}
			m.receive(3, saved)
			m.want(t, saved, protocol.SettingsStatus{Version: 3})
			if m.RestartDue() {
				t.Error("the agent restarts with the settings that it uses")
			}
			m.saved = ""
			m.start()
			m.want(t, saved, protocol.SettingsStatus{Version: 3})

			m.disk.content, m.saved = []byte("{"), saved
			m.start()
			m.file = "edited since"
			m.start()
			m.want(t, "edited since", protocol.SettingsStatus{})
		}
	})
}

// TestDir checks that a write that a power failure has interrupted leaves the previous content.
func TestDir(t *testing.T) {
	t.Parallel()
	dir := Dir(t.TempDir())
	if _, err := dir.Read("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	if err := dir.Replace("x", []byte("one")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(string(dir), "x")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that only its owner can read", info, err)
	}
	if err := os.WriteFile(name+".new", []byte("tw"), 0o600); err != nil { // half of the next content
		t.Fatal(err)
	}
	if got, err := dir.Read("x"); err != nil || string(got) != "one" {
		t.Errorf("got %q, %v, want the content before", got, err)
	}
	if err := dir.Replace("x", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.Read("x"); err != nil || string(got) != "two" {
		t.Errorf("got %q, %v, want the new content", got, err)
	}
}

// TestSettledTrialIsStoredLater: the card cannot be written when a trial has ended well. The settings are stored when it can be, so that a later
// restart without a network does not return to the previous settings.
func TestSettledTrialIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("file")
		m.receive(1, "from the cloud")
		m.start()
		full := true
		m.disk.fail = func() (before, after bool) { return full, false }
		m.observe(time.Minute, true)
		m.want(t, "from the cloud", protocol.SettingsStatus{Version: 1})
		full = false
		m.observe(2*storeInterval, true)
		m.start()
		m.observe(2*TrialTimeout, false)
		m.want(t, "from the cloud", protocol.SettingsStatus{Version: 1})
	})
}

// TestFullCardIsNotWrittenWithoutEnd counts the attempts to store the end of a trial.
func TestFullCardIsNotWrittenWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine("file")
		m.receive(1, "from the cloud")
		m.start()
		attempts := 0
		m.disk.fail = func() (before, after bool) { attempts++; return true, false }
		m.observe(time.Hour, true)
		if limit := int(time.Hour/storeInterval) + 1; attempts < 2 || attempts > limit {
			t.Errorf("got %d attempts in an hour, want at most %d", attempts, limit)
		}
	})
}
