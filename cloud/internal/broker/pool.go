package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

// PoolConfig is what a Pool needs. Brokers or Own, Doors, Devices, Climate and Log are required.
type PoolConfig struct {
	Brokers []*url.URL  // mqtt, mqtts, ws or wss, with user name and password if the broker requires them
	TLS     *tls.Config // nil: the system's roots

	// Own is the embedded broker of this replica, which runs with the pool; nil: none. It was made with the same services.
	Own *Broker
	// Peers returns the embedded brokers of the other replicas, with PeerUsername and their passwords. It is called every
	// PeerInterval. Required with Own.
	Peers func(ctx context.Context) ([]*url.URL, error)

	Doors   Doors
	Devices Devices
	Climate Climate
	Passes  Passes // optional
	Log     *slog.Logger
	Now     func() time.Time // for presence; nil is time.Now
}

// PeerInterval is how often the list of peers is read.
const PeerInterval = 2 * time.Second

// Pool reaches the agents through several brokers, to each of which all replicas of the cloud connect. The brokers are
// independent of each other: an agent is connected to one of them, and messages to it are published at all. Each broker
// enforces the access rules of package protocol. The embedded broker of a replica can be one of them; the messages of its
// agents are handled by that replica.
type Pool struct {
	cfg      PoolConfig
	inbox    *inbox
	branches *branches
	presence *presence
	seed     maphash.Seed // of the lanes
	unsent   atomic.Int64
	settled  atomic.Bool // every peer was connected once

	mu      sync.RWMutex
	remotes []*remote
}

// NewPool prepares clients of the brokers. They connect in Run.
func NewPool(cfg PoolConfig) *Pool {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Pool{cfg: cfg, branches: newBranches(cfg.Now), seed: maphash.MakeSeed()}
	if cfg.Own != nil {
		p.inbox, p.presence, cfg.Own.elsewhere = cfg.Own.inbox, cfg.Own.presence, p.branches
	} else {
		p.inbox = newInbox(cfg.Doors, cfg.Devices, cfg.Climate, cfg.Passes, cfg.Log)
		p.presence = newPresence(p.inbox, p.agentOnline)
	}
	for _, address := range cfg.Brokers {
		p.remotes = append(p.remotes, newRemote(p, address, false))
	}
	return p
}

// Online returns the user names of the branch's connected agents, at whichever broker: those that sent a message within
// protocol.OfflineTimeout and whose will has not arrived. "" stands for an agent that uses the topics of the branch.
func (p *Pool) Online(branch string) []string {
	agents := p.branches.online(branch)
	if p.cfg.Own != nil {
		agents = append(agents, p.cfg.Own.sessions.online(branch)...)
	}
	return usernames(agents)
}

func (p *Pool) agentOnline(agent protocol.Agent) bool {
	return slices.Contains(p.branches.online(agent.Branch), agent)
}

// Connected reports whether this replica receives the messages of agents, from at least one broker. A replica with an
// embedded broker does so after it has connected to every peer once.
func (p *Pool) Connected() bool {
	if p.cfg.Own != nil {
		return p.settled.Load()
	}
	return slices.ContainsFunc(p.all(), func(r *remote) bool { return r.up.Load() })
}

func (p *Pool) all() []*remote {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.remotes)
}

// Send sends a message to an agent at QoS 0, without confirmation of delivery: on the topic of its credential, or on that of
// its branch if the user name is empty. Each broker receives it, because the agent may have moved to another one. Send
// never blocks: a message that does not fit into a queue is dropped.
func (p *Pool) Send(to protocol.Peer, m protocol.Message) error {
	if p.cfg.Own != nil {
		if err := p.cfg.Own.Send(to, m); err != nil || to.Session != 0 {
			return err // an agent with a session is connected here
		}
	}
	payload, err := protocol.Encode(m)
	if err != nil {
		return fmt.Errorf("broker: send to %s: %w", to.Branch, err)
	}
	topic := to.Topic(m.Kind())
	extra := properties(topic, m)
	publish := paho.Publish{Topic: topic, Payload: payload, Properties: &paho.PublishProperties{
		MessageExpiry: &extra.MessageExpiryInterval, ResponseTopic: extra.ResponseTopic, CorrelationData: extra.CorrelationData}}
	remotes := p.all()
	away := p.cfg.Own == nil && !slices.ContainsFunc(remotes, func(r *remote) bool { return r.connected() })
	for _, r := range remotes {
		if away || r.connected() { // what is sent while all brokers are away counts as lost
			r.put(to.Branch, publish)
		}
	}
	return nil
}

// Run stays connected until ctx ends.
func (p *Pool) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var handling errgroup.Group
	connections, connected := errgroup.WithContext(ctx)
	for _, r := range p.all() {
		connections.Go(func() error { return r.run(connected) })
	}
	if p.cfg.Own != nil {
		connections.Go(func() error { return p.cfg.Own.Run(connected) })
		connections.Go(func() error { return p.followPeers(connected) })
	} else {
		handling.Go(func() error { return p.inbox.run(serving) })
		connections.Go(func() error { p.watch(connected); return nil })
	}
	err := connections.Wait()
	stop() // after the last message was received
	return errors.Join(err, handling.Wait())
}

// copyOf is the copy of a message that a broker has delivered.
type copyOf uint8

const (
	plainCopy    copyOf = iota // every replica receives one
	sharedCopy                 // one replica receives it
	retainedCopy               // the broker kept the message and sends it to a new subscriber
)

// receive handles a message of an agent. It runs in the read loops of the clients. A status or heartbeat comes as a plain copy,
// for presence, and as a shared one; some brokers deliver both as one shared copy. via is the peer that passes the message on;
// nil: the broker is external.
func (p *Pool) receive(topic string, payload []byte, of copyOf, via *source) {
	agent, kind, ok := protocol.ParseAgentTopic(topic)
	if !ok {
		return
	}
	if p.hear(agent, kind, payload, of, via) {
		return
	}
	for _, a := range p.branches.all(agent.Branch) {
		switch {
		case via != nil:
			p.presence.follow(a)
		case a == agent && kind == protocol.KindStatus && of != plainCopy:
			p.presence.announceAnyway(a)
		default:
			p.presence.followOnline(a)
		}
	}
	switch {
	case via != nil && (kind == protocol.KindStatus || kind == protocol.KindHeartbeat): // only presence
	case kind == protocol.KindHeartbeat && (of != sharedCopy || !asksForTime(payload)): // only presence
	default:
		p.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kind, payload: payload, elsewhere: kind == protocol.KindStatus && of == plainCopy})
	}
}

// hear takes the presence of an agent from its status or heartbeat. It reports whether the message is to be ignored: it is invalid, or the agent has
// moved to another broker since.
func (p *Pool) hear(agent protocol.Agent, kind protocol.Kind, payload []byte, of copyOf, via *source) (ignore bool) {
	takenOver := false
	switch kind {
	case protocol.KindHeartbeat:
		if m, err := protocol.Decode[protocol.Heartbeat](payload); err == nil {
			takenOver = p.branches.hear(agent, connID{m.BootID, m.Connection}, via)
		}
	case protocol.KindStatus:
		m, err := protocol.Decode[protocol.Status](payload)
		if err != nil {
			p.cfg.Log.Warn("mqtt: message not handled", "branch", agent.Branch, "username", agent.Username, "kind", string(kind), "error", err)
			return true
		}
		from := connID{m.BootID, m.Connection}
		switch {
		case of == retainedCopy && p.branches.outdated(agent, from):
			return true
		case m.State == protocol.Online:
			takenOver = p.branches.hear(agent, from, via)
		default:
			p.branches.lose(agent.Branch, from)
		}
	}
	if takenOver {
		takeoversTotal.Inc()
		p.cfg.Log.Warn("mqtt: agent taken over by another machine", "branch", agent.Branch, "username", agent.Username)
		p.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kindTakeover})
	}
	return false
}

func (p *Pool) drop() {
	p.unsent.Add(1)
	droppedOut.Inc()
}

func (p *Pool) watch(ctx context.Context) {
	silent := time.NewTicker(silenceInterval)
	defer silent.Stop()
	var lost int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-silent.C:
		}
		p.presence.announceAll()
		if now := p.inbox.dropped.Load() + p.unsent.Load(); now > lost {
			p.cfg.Log.Warn("mqtt: messages dropped", "in", p.inbox.dropped.Load(), "out", p.unsent.Load())
			lost = now
		}
	}
}

// Stats returns the counters for metrics. Sessions is the number of connected agents, of those at the embedded broker if there is
// one.
func (p *Pool) Stats() Stats {
	s := Stats{Sessions: p.branches.count(), Unsent: p.unsent.Load(), Brokers: make(map[string]bool)}
	if p.cfg.Own != nil {
		own := p.cfg.Own.Stats()
		s.Sessions, s.Unsent = own.Sessions, s.Unsent+own.Unsent
	}
	for _, r := range p.all() {
		s.Brokers[r.address.Host] = r.up.Load()
	}
	return s
}
