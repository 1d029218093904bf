package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// TestNewSettingsWaitForOpenDoors sends settings while a door is open: the agent ends after the pulse, not before, and with every
// message delivered.
func TestNewSettingsWaitForOpenDoors(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	me := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	b.config.Settings = settings.Open(settings.Config{
		Disk: settings.Dir(t.TempDir()), File: func() (string, error) { return "file", nil }, Check: func(string) error { return nil },
		Log: slog.New(slog.DiscardHandler),
	})
	b.config.Settings.Enrolled(me)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { done <- agent.Run(ctx, b.config, b.board) }()
	brokertest.Await[protocol.Status](b.broker)
	g := grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1")
	b.broker.Send("gangnam", g)
	if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
		t.Fatalf("got %+v, want opened", r)
	}
	b.broker.SendTo(me, protocol.Settings{Version: 1, Text: "one"}.Sign(brokertest.Key, me))
	if err := <-done; !errors.Is(err, agent.ErrSettings) {
		t.Fatalf("the agent ended with %v, want ErrSettings", err)
	}
	for {
		for _, e := range brokertest.Await[protocol.Telemetry](b.broker).Events {
			if e.Kind == protocol.EventReleased {
				if e.EnergizedMs < 1000 {
					t.Errorf("the pulse ended after %d ms, want 1000", e.EnergizedMs)
				}
				return
			}
		}
	}
}

// stopping is a disk that has the agent stopped when it has stored something.
type stopping struct {
	settings.Disk
	stop func()
}

func (d *stopping) Replace(name string, data []byte) error {
	defer d.stop()
	return d.Disk.Replace(name, data)
}

// TestStopComesBeforeARestart stops the agent in the moment in which it returns to the previous settings. If it was started again, the service
// manager would have to kill it.
func TestStopComesBeforeARestart(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.BrokerURL = "mqtt://127.0.0.1:1" // which does not answer
	me := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	disk := &stopping{settings.Dir(t.TempDir()), func() {}}
	open := func() *settings.Keeper {
		k := settings.Open(settings.Config{
			Disk: disk, File: func() (string, error) { return "file", nil }, Check: func(string) error { return nil },
			TrialTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		})
		k.Enrolled(me)
		return k
	}
	if !open().Receive(protocol.Settings{Version: 1, Text: "one"}.Sign(brokertest.Key, me), brokertest.PublicKeys()) {
		t.Fatal("the settings were not taken")
	}
	b.config.Settings = open() // with the trial
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	disk.stop = stop
	time.AfterFunc(10*time.Second, stop)
	err := agent.Run(ctx, b.config, b.board)
	if s := b.config.Settings.Status(); s.Ended == nil || s.Ended.State != protocol.SettingsRolledBack {
		t.Errorf("got %+v, want settings that were rolled back", s)
	}
	if err != nil {
		t.Errorf("the agent that was stopped ended with %v", err)
	}
}
