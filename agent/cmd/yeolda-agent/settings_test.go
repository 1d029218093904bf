package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestDamagedSettings starts with a damaged file of the settings of the cloud: the copy of those that worked last is in use.
func TestDamagedSettings(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	c := testRun(t, t.TempDir(), b, "")
	worked := "broker = 'mqtt://" + b.Addr + "'\n[[sensor]]\nlocation = '로비'\nkind = 'sht4x'\nbus = '1'\n"
	write(t, c.savedSettings(), worked)
	write(t, c.stateFile("cloud-settings.json"), "{\x00")
	if got, fromFile := c.keeper(slog.New(slog.DiscardHandler)).Text(); got != worked || fromFile {
		t.Errorf("got %q, from the file %t, want the copy", got, fromFile)
	}
}

// TestSettingsOfTheCloud sends settings to the program. Valid ones come into use with a restart, those with a mistake are refused, and
// those with which the program does not reach the broker are rolled back.
func TestSettingsOfTheCloud(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	b := brokertest.Start(t, "127.0.0.1:0")
	c := testRun(t, t.TempDir(), b, "")
	trials := make(chan time.Duration, 1) // the limit of the next start
	ends := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ends)
		for c.SettingsTrial = range trials {
			ends <- c.run(ctx, slog.New(slog.DiscardHandler))
		}
	}()
	t.Cleanup(func() {
		cancel()
		close(trials)
		for range ends { // until the program has ended
		}
	})
	const ample, short = 24 * time.Second, 2 * time.Second // until a trial has failed
	status := func(what string, ok func(protocol.Status) bool) {
		t.Helper()
		for range 1000 {
			s := brokertest.Await[protocol.Status](b)
			if s.State == protocol.Online && s.Settings != nil && ok(s) {
				return
			}
		}
		t.Fatalf("no status shows %s", what)
	}
	restarted := func(trial time.Duration) {
		t.Helper()
		if err := <-ends; !errors.Is(err, agent.ErrSettings) {
			t.Fatalf("the program ended with %v, want ErrSettings", err)
		}
		trials <- trial
	}
	trials <- ample
	me := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	send := func(version uint64, text string) {
		t.Helper()
		b.SendTo(me, protocol.Settings{Version: version, Text: text}.Sign(brokertest.Key, me))
	}

	file := brokertest.Await[protocol.SettingsFile](b)
	if file.Base != 0 || !strings.Contains(file.Text, b.Addr) {
		t.Errorf("got %+v, want the settings file", file)
	}
	send(1, file.Text)
	status("the number of the file", func(s protocol.Status) bool { return s.Settings.Version == 1 })

	broker := "broker = 'mqtt://" + b.Addr + "'\n"
	send(2, broker+"[[sensor]]\nlocation = '로비'\nkind = 'sht4x'\nbus = '1'\n")
	restarted(ample)
	status("the sensor", func(s protocol.Status) bool { return s.Settings.Version == 2 && len(s.Inventory.Sensors) == 1 })

	for i, mistake := range []string{
		"[[sensor]]\nplace = 'x'\n", "[[door]\n", "broker = 'http://x'\n", "[[air_conditioner]]\nname = 'x'\ncodes = 'none'\n", "ca = '/nonexistent'\n",
	} {
		send(uint64(i)+3, mistake)
		status("a refusal of "+mistake, func(s protocol.Status) bool {
			e := s.Settings.Ended
			return s.Settings.Version == 2 && e != nil && e.Version == uint64(i)+3 && e.State == protocol.SettingsRefused && e.Detail != ""
		})
	}

	send(9, "broker = 'mqtt://127.0.0.1:1'\n")
	restarted(short)
	restarted(ample)
	status("the roll-back", func(s protocol.Status) bool {
		e := s.Settings.Ended
		return s.Settings.Version == 2 && len(s.Inventory.Sensors) == 1 && e != nil && e.Version == 9 && e.State == protocol.SettingsRolledBack && strings.Contains(e.Detail, "not connected")
	})
}
