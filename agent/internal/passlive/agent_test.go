package passlive

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/boardtest"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/keypad"
	"github.com/yeolda/yeolda/protocol"
)

// settings are the settings of an agent's process, as JSON in the environment.
type settings struct {
	Broker, Username, Dir string
	GrantKeys             []ed25519.PublicKey
	Boot                  string        // id of the start of the machine
	Booted                time.Time     // when the machine started
	Offset                time.Duration // of the time from this computer's
	Wall, Hardware        time.Duration // offsets of the system clock and the hardware clock from the time
	NoHardware            bool
}

// command is a line on the standard input of an agent's process.
type command struct {
	Do             string // type, jump, wall, hardware, cut, restore
	Device, Digits string
	By             time.Duration
}

// report is a line on its standard output.
type report struct {
	What           string // opened, verdict, done
	Device, Reason string
	Source         protocol.Source
	Accepted       bool
	At             time.Time
}

// machine is the agent's side of its machine: clocks, network and keypads.
type machine struct {
	settings
	mu    sync.Mutex
	conn  net.Conn
	cut   bool
	typed map[string]chan string
	out   sync.Mutex
}

func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.Offset)
}

// Uptime implements agent.Clocks.
func (m *machine) Uptime() (boot string, since time.Duration) { return m.Boot, m.now().Sub(m.Booted) }

// HardwareClock implements agent.Clocks.
func (m *machine) HardwareClock() (int64, bool) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Add(m.Hardware).Unix(), !m.NoHardware
}

func (m *machine) report(r report) {
	line, _ := json.Marshal(r)
	m.out.Lock()
	defer m.out.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func (m *machine) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	m.mu.Lock()
	cut := m.cut
	m.mu.Unlock()
	if cut {
		return nil, errors.New("network is unreachable")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn = conn
	return conn, nil
}

// pad is a keypad.
type pad struct {
	m      *machine
	device string
}

func (pad) Err() error { return nil }

func (p pad) Read(ctx context.Context, enter keypad.Enter) {
	for {
		select {
		case <-ctx.Done():
			return
		case digits := <-p.m.typed[p.device]:
			v := enter(digits, time.Now())
			p.m.report(report{What: "verdict", Device: p.device, Accepted: v.Accepted, Reason: v.Reason})
		}
	}
}

// runAgent is the process of an agent. It ends with its standard input.
func runAgent(text string) error {
	m := &machine{typed: map[string]chan string{}}
	if err := json.Unmarshal([]byte(text), &m.settings); err != nil {
		return err
	}
	var board agent.Board
	for _, device := range devices {
		kind, _, _ := protocol.ParseDevice(device)
		m.typed[device] = make(chan string)
		board.Locks = append(board.Locks, agent.Lock{Device: device, Kind: kind, Pulse: 50 * time.Millisecond, Relay: new(boardtest.Lock).Relay()})
		board.Keypads = append(board.Keypads, agent.Keypad{Device: device, Reader: pad{m, device}})
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var c command
			if json.Unmarshal(lines.Bytes(), &c) == nil {
				m.obey(ctx, c)
			}
		}
	}()
	return agent.Run(ctx, agent.Config{
		Branch: branch, BrokerURL: "mqtt://" + m.Broker, Username: m.Username, Password: brokertest.Password, GrantKeys: m.GrantKeys,
		PassDir: m.Dir, Clocks: m, Dial: m.dial, Version: "1", Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return m.now().Add(m.Wall) },
		Observe: func(e protocol.Event) {
			if e.Kind == protocol.EventEnergized {
				m.report(report{What: "opened", Device: e.Device, Source: e.Source, At: m.now()})
			}
		},
	}, board)
}

func (m *machine) obey(ctx context.Context, c command) {
	if c.Do == "type" {
		select {
		case m.typed[c.Device] <- c.Digits:
		case <-ctx.Done():
		}
		return
	}
	m.mu.Lock()
	switch c.Do {
	case "jump":
		m.Offset += c.By
	case "wall":
		m.Wall += c.By
	case "hardware":
		m.Hardware += c.By
	case "cut":
		if m.cut = true; m.conn != nil {
			_ = m.conn.Close()
		}
	case "restore":
		m.cut = false
	}
	m.mu.Unlock()
	m.report(report{What: "done"})
}
