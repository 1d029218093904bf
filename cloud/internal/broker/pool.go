package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

// PoolConfig is what a Pool needs. Brokers, Doors, Devices, Climate and Log are required.
type PoolConfig struct {
	Brokers []*url.URL  // mqtt, mqtts, ws or wss, with user name and password if the broker requires them
	TLS     *tls.Config // nil: the system's roots

	Doors   Doors
	Devices Devices
	Climate Climate
	Passes  Passes // optional
	Log     *slog.Logger
	Now     func() time.Time // for presence; nil is time.Now
}

// Pool reaches the agents through external brokers, to each of which all replicas of the cloud connect. The brokers are
// independent of each other: an agent is connected to one of them, and messages to it are published at all. Each broker
// enforces the access rules of package protocol.
type Pool struct {
	cfg      PoolConfig
	inbox    *inbox
	branches *branches
	presence *presence
	remotes  []*remote
	unsent   atomic.Int64
}

// NewPool prepares clients of the brokers. They connect in Run.
func NewPool(cfg PoolConfig) *Pool {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Pool{cfg: cfg, branches: newBranches(cfg.Now), inbox: newInbox(cfg.Doors, cfg.Devices, cfg.Climate, cfg.Passes, cfg.Log)}
	p.presence = newPresence(p.inbox, p.agentOnline)
	for _, address := range cfg.Brokers {
		p.remotes = append(p.remotes, newRemote(p, address))
	}
	return p
}

// Online returns the user names of the branch's connected agents, at whichever broker: those that sent a message within
// protocol.OfflineTimeout and whose will has not arrived. "" stands for an agent that uses the topics of the branch.
func (p *Pool) Online(branch string) []string { return usernames(p.branches.online(branch)) }

func (p *Pool) agentOnline(agent protocol.Agent) bool {
	return slices.Contains(p.branches.online(agent.Branch), agent)
}

// Connected reports whether this replica receives the messages of agents, from at least one broker.
func (p *Pool) Connected() bool {
	return slices.ContainsFunc(p.remotes, func(r *remote) bool { return r.up.Load() })
}

// Send sends a message to an agent at QoS 0, without confirmation of delivery: on the topic of its credential, or on that of
// its branch if the user name is empty. Each broker receives it, because the agent may have moved to another one. Send
// never blocks: a message that does not fit into a queue is dropped.
func (p *Pool) Send(to protocol.Peer, m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return fmt.Errorf("broker: send to %s: %w", to.Branch, err)
	}
	topic := to.Topic(m.Kind())
	extra := properties(topic, m)
	publish := paho.Publish{Topic: topic, Payload: payload, Properties: &paho.PublishProperties{
		MessageExpiry: &extra.MessageExpiryInterval, ResponseTopic: extra.ResponseTopic, CorrelationData: extra.CorrelationData}}
	away := !slices.ContainsFunc(p.remotes, func(r *remote) bool { return r.connected.Load() })
	for _, r := range p.remotes {
		if away || r.connected.Load() { // what is sent while all brokers are away counts as lost
			r.put(publish)
		}
	}
	return nil
}

// Run stays connected until ctx ends.
func (p *Pool) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var handling errgroup.Group
	handling.Go(func() error { return p.inbox.run(serving) })
	connections, connected := errgroup.WithContext(ctx)
	for _, r := range p.remotes {
		connections.Go(func() error { return r.run(connected) })
	}
	connections.Go(func() error { p.watch(connected); return nil })
	err := connections.Wait()
	stop() // after the last message was received
	return errors.Join(err, handling.Wait())
}

// receive handles a message of an agent. It runs in the read loops of the clients. retained: the broker kept the message and
// sends it to a new subscriber.
func (p *Pool) receive(topic string, payload []byte, retained bool) {
	agent, kind, ok := protocol.ParseAgentTopic(topic)
	if !ok {
		return
	}
	takenOver := false
	switch kind {
	case protocol.KindHeartbeat:
		if m, err := protocol.Decode[protocol.Heartbeat](payload); err == nil {
			takenOver = p.branches.hear(agent, connID{m.BootID, m.Connection})
		}
	case protocol.KindStatus:
		m, err := protocol.Decode[protocol.Status](payload)
		if err != nil {
			p.cfg.Log.Warn("mqtt: message not handled", "branch", agent.Branch, "username", agent.Username, "kind", string(kind), "error", err)
			return
		}
		from := connID{m.BootID, m.Connection}
		switch {
		case retained && p.branches.outdated(agent, from):
			return // the agent has moved to another broker since
		case m.State == protocol.Online:
			takenOver = p.branches.hear(agent, from)
		default:
			p.branches.lose(agent.Branch, from)
		}
	}
	if takenOver {
		takeoversTotal.Inc()
		p.cfg.Log.Warn("mqtt: agent taken over by another machine", "branch", agent.Branch, "username", agent.Username)
		p.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kindTakeover})
	}
	for _, of := range p.branches.all(agent.Branch) {
		p.presence.announce(of)
	}
	if kind != protocol.KindHeartbeat || asksForTime(payload) {
		p.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kind, payload: payload})
	}
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

// Stats returns the counters for metrics. Sessions is the number of connected agents.
func (p *Pool) Stats() Stats {
	s := Stats{Sessions: p.branches.count(), Dropped: p.inbox.dropped.Load(), Unsent: p.unsent.Load(), Brokers: make(map[string]bool)}
	for _, r := range p.remotes {
		s.Brokers[r.address.Host] = r.up.Load()
	}
	return s
}
