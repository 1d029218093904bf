package agent

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// ErrSettings is returned by Run when the agent is to be started again, with the settings that Config.Settings then returns.
var ErrSettings = errors.New("the settings have changed")

const (
	// restartDelay is how long a restart with other settings waits for doors that are in use.
	restartDelay = 30 * time.Second
	// fileInterval is how often settings that the cloud does not have are sent to it.
	fileInterval = time.Minute
)

// settingsState is used by superviseSettings only.
type settingsState struct {
	due  time.Time // when a restart was first due; zero: none is
	sent time.Time // when the settings of the machine were sent on this connection
}

// receiveSettings passes settings of the cloud on.
func (a *agent) receiveSettings(m protocol.Settings) {
	if a.config.Settings != nil && a.config.Settings.Receive(m, a.keys.keys) {
		a.link.Refresh()
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// superviseSettings looks after the settings until ctx is done. It returns ErrSettings when the agent is to be started again. The watchdog
// does not wait for it, because it writes to the disk.
func (a *agent) superviseSettings(ctx context.Context) error {
	if a.config.Settings == nil {
		return nil
	}
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		if a.restartDue() {
			return ErrSettings
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-a.wake:
		}
	}
}

// restartDue ends a trial of settings, sends those that the cloud does not have, and reports whether the agent is to be started again
// now. A restart waits until no door is in use.
func (a *agent) restartDue() bool {
	keeper, s := a.config.Settings, &a.settings
	connected := a.link.Connected()
	if keeper.Observe(connected, failing(a.hardwareTests())) {
		a.link.Refresh()
	}
	if !connected {
		s.sent = time.Time{}
	} else if m, ok := keeper.Unknown(); ok && time.Since(s.sent) >= fileInterval {
		s.sent = time.Now()
		a.link.Send(m, nil, fileInterval)
	}
	if !keeper.RestartDue() {
		s.due = time.Time{}
		return false
	}
	if s.due.IsZero() {
		s.due = time.Now()
	}
	return a.idle() || time.Since(s.due) >= restartDelay
}

// failing returns the names of the self-tests that fail.
func failing(tests []protocol.SelfTest) (names []string) {
	for _, t := range tests {
		if !t.OK {
			names = append(names, t.Name)
		}
	}
	return names
}
