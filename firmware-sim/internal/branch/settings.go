package branch

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// settingsOfPi returns the keeper of the simulated Pi's settings, on its disk, and their content.
func (b *Branch) settingsOfPi(username string) (*settings.Keeper, settings.Description) {
	keeper := settings.Open(settings.Config{
		Disk: settings.Dir(b.disk), File: func() (string, error) { return b.cfg.Settings, nil },
		Check: func(text string) error {
			_, err := settings.Describe(text)
			return err
		},
		TrialTimeout: b.cfg.SettingsTrial, Log: b.cfg.Logger,
	})
	keeper.Enrolled(protocol.Agent{Branch: b.cfg.Branch, Username: username})
	text, _ := keeper.Text()
	described, _ := settings.Describe(text) // the agent uses what has no mistake
	return keeper, described
}

// described returns the part of the board that the settings name: other doors are wired, but the agent does not know them. A Pi
// without settings knows every door, unless it is a new one.
func (b *Branch) described(board agent.Board, d settings.Description) agent.Board {
	if len(d.Doors) == 0 && !b.cfg.Blank {
		return board
	}
	unknown := func(device string) bool { return !slices.Contains(d.Doors, device) }
	board.Locks = slices.DeleteFunc(slices.Clone(board.Locks), func(l agent.Lock) bool { return unknown(l.Device) })
	board.Keypads = slices.DeleteFunc(slices.Clone(board.Keypads), func(k agent.Keypad) bool { return unknown(k.Device) })
	return board
}

// dialer connects through the branch's network, or to nowhere if the settings do not name the broker of the simulator.
func (b *Branch) dialer(d settings.Description, through func(context.Context, *url.URL) (net.Conn, error)) func(context.Context, *url.URL) (net.Conn, error) {
	known := func(broker *url.URL) bool { return strings.Contains(d.Broker, broker.Host) }
	if d.Broker == "" || slices.ContainsFunc(b.cfg.Brokers, known) {
		return through
	}
	return func(context.Context, *url.URL) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: d.Broker, IsNotFound: true}
	}
}
