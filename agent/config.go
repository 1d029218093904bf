package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/logtail"
	"github.com/yeolda/yeolda/agent/internal/pass"
	"github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// Config configures an agent.
type Config struct {
	Branch    string // branch code
	BrokerURL string // mqtt://host:1883, mqtts://host:8883, ws://host/mqtt or wss://host/mqtt; several of a pool with commas
	ClientID  string // empty: Username
	Username  string // empty: protocol.AgentID(Branch)
	Password  string
	Key       ed25519.PrivateKey // answers the broker's challenge at connect; nil: the password is used

	GrantKeys []ed25519.PublicKey // public keys of the cloud; each of them may sign grants

	TLS  *tls.Config                                             // nil: the system's root certificates
	Dial func(ctx context.Context, u *url.URL) (net.Conn, error) // opens the TCP connection; nil: a net.Dialer

	// HandshakeFailed is called with the error of each TLS handshake with a broker that fails. It must not block; it may be nil.
	HandshakeFailed func(error)

	SecretFile  string // stores secrets that replace Password and Key; empty: they cannot be replaced
	BrokerFile  string // stores the last list of brokers of the cloud; empty: the agent takes none
	KeyFile     string // stores the last list of grant keys; empty: it lasts until the agent ends
	PassDir     string // stores the passes, their journal and the clock; empty: no keypad is read
	AddressFile string // stores the last address of the broker that worked; empty: none

	Clocks Clocks // of the machine; nil: the system's

	Version  string
	Logger   *slog.Logger               // nil: slog.Default()
	Now      func() time.Time           // wall clock for timestamps; no door decision depends on it; nil: time.Now
	Observe  func(protocol.Event)       // receives door events as they happen; must not block; may be nil
	SelfTest func() []protocol.SelfTest // checks of the machine for the status; called often; may be nil
	// Update is called with each update that the cloud asks for; it must not block. UpdateStatus returns the state of the last
	// one, for the status; a change is published within two seconds, or at once if UpdateChanged receives a value. All may be nil.
	Update        func(ctx context.Context, m protocol.Update)
	UpdateStatus  func() *protocol.UpdateStatus
	UpdateChanged <-chan struct{}

	// StopDelay is how long the agent, when it is to end, serves doors that are in use: the end of the process would end their pulses.
	StopDelay time.Duration

	// Settings keeps the settings that the cloud sends; nil: the agent takes none.
	Settings *settings.Keeper

	// Tail keeps the lines of Logger, which writes to it, for diagnostics. nil: lines are kept from the start of Run on.
	Tail *logtail.Tail
	// Doctor examines the machine for diagnostics and returns the report; it drives nothing. nil: the self-tests are the report.
	Doctor func(context.Context) string

	Health func(Health) // called every two seconds; may be nil
	Alive  func()       // called every two seconds while all relay lines respond, to feed a watchdog; may be nil
}

// Clocks gives access to the clocks of the machine on which passes are judged.
type Clocks interface {
	// Uptime returns an id that changes at each start of the machine, and the time since that start, suspended time included.
	Uptime() (boot string, since time.Duration)
	// HardwareClock returns the hardware clock's time in whole seconds; ok is false if there is none or it cannot be read.
	HardwareClock() (seconds int64, ok bool)
}

// Health is the state of an agent.
type Health struct {
	Connected bool // the cloud has acknowledged the status
	Failed    int  // self-tests
}

func (c Config) validate() ([]*url.URL, error) {
	if !protocol.ValidBranch(c.Branch) {
		return nil, fmt.Errorf("%q is not a branch code", c.Branch)
	}
	if len(c.GrantKeys) == 0 {
		return nil, errors.New("no public key to verify grants: no door could be opened")
	}
	for _, key := range c.GrantKeys {
		if len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("grant key of %d bytes, want %d", len(key), ed25519.PublicKeySize)
		}
	}
	return link.ParseURLs(c.BrokerURL)
}

func (c Config) withDefaults() Config {
	if c.Username == "" {
		c.Username = protocol.AgentID(c.Branch)
	}
	if c.ClientID == "" {
		c.ClientID = c.Username
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(protocol.Event) {}
	}
	if c.SelfTest == nil {
		c.SelfTest = func() []protocol.SelfTest { return nil }
	}
	if c.Update == nil {
		c.Update = func(context.Context, protocol.Update) {}
	}
	if c.UpdateStatus == nil {
		c.UpdateStatus = func() *protocol.UpdateStatus { return nil }
	}
	if c.Health == nil {
		c.Health = func(Health) {}
	}
	if c.Clocks == nil {
		c.Clocks = pass.System{}
	}
	if c.Alive == nil {
		c.Alive = func() {}
	}
	return c
}

// keepLog makes the tail of the log, unless there is one.
func (c *Config) keepLog() {
	if c.Tail == nil {
		c.Tail = new(logtail.Tail)
		c.Logger = slog.New(c.Tail.Handler(c.Logger.Handler()))
	}
}
