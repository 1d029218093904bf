package light

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// MaxAgents is the number of addresses that [Source] gives out.
const MaxAgents = 1 << 20

// Config configures a fleet.
type Config struct {
	Brokers   []netip.AddrPort // of a pool, at least one
	First     int              // index of the first agent among all fleets of the machine; it decides the addresses
	Agents    []Identity
	GrantKeys []ed25519.PublicKey
	Version   string
}

// Identity is the credential of an agent.
type Identity struct{ Branch, Password string }

// Stats are counters of a fleet.
type Stats struct {
	Online   int64 `json:"online"`   // agents whose status the broker has acknowledged on the current connection
	Accepted int64 `json:"accepted"` // connections that came so far
	Failed   int64 `json:"failed"`   // attempts and connections that ended
	Silent   int64 `json:"silent"`   // of these, without an answer in time
	Rejected int64 `json:"rejected"` // of these, by the broker
	Opened   int64 `json:"opened"`   // doors
	// Changed is the time in Unix milliseconds at which Online last changed.
	Changed int64 `json:"changed"`
	// Problem is the last error.
	Problem string `json:"problem,omitempty"`
}

// counters are the atomic form of Stats.
type counters struct {
	online, accepted, failed, silent, rejected, opened, changed atomic.Int64
	problem                                                     atomic.Pointer[string]
}

// Fleet is a number of light agents. Run runs them.
type Fleet struct {
	config  Config
	started time.Time
	counted counters
	present []atomic.Uint32 // of each agent: its connection while it is online, else 0
}

// New returns a fleet.
func New(config Config) (*Fleet, error) {
	if len(config.Brokers) == 0 || len(config.Brokers) > protocol.MaxBrokers {
		return nil, fmt.Errorf("light: %d brokers, want 1 to %d", len(config.Brokers), protocol.MaxBrokers)
	}
	for _, broker := range config.Brokers {
		if !broker.Addr().Unmap().Is4() {
			return nil, fmt.Errorf("light: the broker's address %s is not an IPv4 address", broker)
		}
	}
	if config.First < 0 || config.First+len(config.Agents) > MaxAgents {
		return nil, fmt.Errorf("light: more than %d agents", MaxAgents)
	}
	for _, a := range config.Agents {
		if !protocol.ValidBranch(a.Branch) {
			return nil, fmt.Errorf("light: %q is not a branch code", a.Branch)
		}
	}
	return &Fleet{config: config, started: time.Now(), present: make([]atomic.Uint32, len(config.Agents))}, nil
}

// Run runs the agents until ctx ends. It returns an error if the process cannot open a socket for each.
func (f *Fleet) Run(ctx context.Context) error { return f.run(ctx) }

// Connection returns the number of the connection on which an agent is online, or 0 if it is not.
func (f *Fleet) Connection(agent int) uint32 { return f.present[agent].Load() }

// Stats returns the counters.
func (f *Fleet) Stats() Stats {
	c := &f.counted
	s := Stats{Online: c.online.Load(), Accepted: c.accepted.Load(), Failed: c.failed.Load(), Silent: c.silent.Load(),
		Rejected: c.rejected.Load(), Opened: c.opened.Load(), Changed: c.changed.Load()}
	if problem := c.problem.Load(); problem != nil {
		s.Problem = *problem
	}
	return s
}

// Broker returns the broker that the agent of a branch tries first, second and so on.
func (c Config) Broker(branch string, attempt int) netip.AddrPort {
	if len(c.Brokers) == 1 {
		return c.Brokers[0]
	}
	byAddress := make(map[string]netip.AddrPort, len(c.Brokers))
	for _, broker := range c.Brokers {
		byAddress["mqtt://"+broker.String()] = broker
	}
	order := protocol.BrokerOrder(branch, slices.Collect(maps.Keys(byAddress)))
	return byAddress[order[attempt%len(order)]]
}

// Source returns the address of an agent: 127.16.0.0 and those that follow.
func Source(index int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(16 + index>>16), byte(index >> 8), byte(index)})
}

// doors are the doors of every light agent: those of fleetconfig.Fleet.
var doors = []string{"front_1", "room_1", "room_2"}

func hasDoor(device string) bool { return slices.Contains(doors, device) }

// inventory, selfTest and noSettings are those of every agent. noSettings is that of a Pi without settings.
var (
	noSettings protocol.SettingsStatus

	inventory = func() (v protocol.Inventory) {
		for _, device := range doors {
			kind, _, err := protocol.ParseDevice(device)
			if err != nil {
				panic(err)
			}
			v.Doors = append(v.Doors, protocol.Door{Device: device, Kind: kind, Sense: true})
		}
		v.AirConditioners, v.Sensors = []protocol.AirConditioner{}, []string{}
		return v
	}()
	selfTest = func() (tests []protocol.SelfTest) {
		for _, device := range doors {
			tests = append(tests, protocol.SelfTest{Name: "relay " + device, OK: true})
		}
		return tests
	}()
)

// status returns the status of an agent.
func (f *Fleet) status(a *agent) protocol.Status {
	return protocol.Status{State: protocol.Online, BootID: a.bootID, Connection: a.connection, AgentVersion: f.config.Version,
		StartedAt: f.started, Inventory: &inventory, SelfTest: selfTest, Settings: &noSettings}
}
