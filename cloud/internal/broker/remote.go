package broker

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

// RemoteConfig is what a Remote needs. URL, Doors, Devices, Climate and Log are required.
type RemoteConfig struct {
	URL *url.URL    // mqtt, mqtts, ws or wss, with user name and password if the broker requires them
	TLS *tls.Config // nil: the system's roots

	Doors   Doors
	Devices Devices
	Climate Climate
	Passes  Passes // optional
	Log     *slog.Logger
	Now     func() time.Time // for presence; nil is time.Now
}

const (
	remoteKeepAlive = 10 // seconds
	remoteTimeout   = 3 * time.Second
	// remoteQueue is the maximum number of queued messages; more would be too old when they are sent.
	remoteQueue = 1024
	// sharedBy is the prefix of shared subscriptions: each message is handled by one of the replicas.
	sharedBy = "$share/yeolda/"
	// subscribeTries is the number of attempts to subscribe before the connection is replaced.
	subscribeTries = 3
)

// Remote reaches the agents through an external broker, to which all replicas of the cloud connect. That broker enforces the
// access rules of package protocol.
type Remote struct {
	cfg      RemoteConfig
	clientID string
	inbox    *inbox
	branches *branches
	presence *presence
	outgoing chan *paho.Publish
	unsent   atomic.Int64
	up       atomic.Bool // subscribed over a connection that has not ended
}

// NewRemote prepares a client of the broker. It connects in Run.
func NewRemote(cfg RemoteConfig) *Remote {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Remote{cfg: cfg, clientID: "cloud-" + strings.ToLower(rand.Text()), branches: newBranches(cfg.Now),
		inbox: newInbox(cfg.Doors, cfg.Devices, cfg.Climate, cfg.Passes, cfg.Log), outgoing: make(chan *paho.Publish, remoteQueue)}
	r.presence = newPresence(r.inbox, r.agentOnline)
	return r
}

// Online returns the user names of the branch's connected agents: those that sent a message within
// protocol.OfflineTimeout and whose will has not arrived. "" stands for an agent that uses the topics of the branch.
func (r *Remote) Online(branch string) []string { return usernames(r.branches.online(branch)) }

func (r *Remote) agentOnline(agent protocol.Agent) bool {
	return slices.Contains(r.branches.online(agent.Branch), agent)
}

// Connected reports whether this replica receives the messages of agents.
func (r *Remote) Connected() bool { return r.up.Load() }

// Send sends a message to an agent at QoS 0, without confirmation of delivery: on the topic of its credential, or on that of
// its branch if the user name is empty. It never blocks: a message that does not fit into the queue is dropped.
func (r *Remote) Send(to protocol.Peer, m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return fmt.Errorf("broker: send to %s: %w", to.Branch, err)
	}
	topic := to.Topic(m.Kind())
	p := properties(topic, m)
	publish := &paho.Publish{Topic: topic, Payload: payload, Properties: &paho.PublishProperties{
		MessageExpiry: &p.MessageExpiryInterval, ResponseTopic: p.ResponseTopic, CorrelationData: p.CorrelationData}}
	select {
	case r.outgoing <- publish:
	default:
		r.drop()
	}
	return nil
}

// Run stays connected until ctx ends.
func (r *Remote) Run(ctx context.Context) error {
	var subscribing sync.WaitGroup
	password, _ := r.cfg.URL.User.Password()
	address := *r.cfg.URL
	address.User = nil
	connection, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{&address}, TlsCfg: r.cfg.TLS, KeepAlive: remoteKeepAlive,
		ConnectUsername: r.cfg.URL.User.Username(), ConnectPassword: []byte(password),
		ConnectTimeout: remoteTimeout, ReconnectBackoff: autopaho.NewExponentialBackoff(100*time.Millisecond, 5*time.Second, 200*time.Millisecond, 2),
		ConnectPacketBuilder: func(c *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			c.CleanStart = true // also on reconnect: the broker keeps no messages for us
			return c, nil
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			r.cfg.Log.Info("mqtt: connected to the broker", "broker", address.Host)
			subscribing.Go(func() { r.subscribe(ctx, m) }) // this callback must not block
		},
		OnConnectionDown: func() bool {
			r.up.Store(false)
			r.cfg.Log.Warn("mqtt: connection to the broker lost", "broker", address.Host)
			return true
		},
		OnConnectError: func(err error) {
			r.cfg.Log.Error("mqtt: no connection to the broker", "broker", address.Host, "error", err)
		},
		ClientConfig: paho.ClientConfig{
			ClientID: r.clientID, PacketTimeout: remoteTimeout,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
				r.receive(p.Packet)
				return true, nil
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	inboxCtx, stopInbox := context.WithCancel(context.WithoutCancel(ctx))
	var work errgroup.Group
	work.Go(func() error { return r.inbox.run(inboxCtx) })
	work.Go(func() error { r.send(ctx, connection); return nil })
	work.Go(func() error { r.watch(ctx); return nil })
	<-ctx.Done()
	select {
	case <-connection.Done():
	case <-time.After(closeLimit):
		err = errors.New("broker: connection not closed in time")
	}
	subscribing.Wait()
	stopInbox()
	return errors.Join(err, work.Wait())
}

// subscribe subscribes to all messages of agents. One replica handles each claim, result and telemetry message; all
// replicas receive presence and the answers to commands.
func (r *Remote) subscribe(ctx context.Context, m *autopaho.ConnectionManager) {
	request := &paho.Subscribe{}
	for kind, filter := range protocol.CloudFilters() {
		switch kind {
		case protocol.KindDoorClaim, protocol.KindDoorResult, protocol.KindTelemetry, protocol.KindPassApplied, protocol.KindPassEntry:
			filter = sharedBy + filter
		}
		request.Subscriptions = append(request.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: kind.QoS()})
	}
	for range subscribeTries {
		limited, cancel := context.WithTimeout(ctx, remoteTimeout)
		_, err := m.Subscribe(limited, request)
		cancel()
		if err == nil {
			r.up.Store(true)
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.cfg.Log.Error("mqtt: not subscribed", "error", err)
	}
	// A connection without subscriptions is useless. autopaho reconnects.
	m.TerminateConnectionForTest()
}

// receive runs in the client's read loop.
func (r *Remote) receive(p *paho.Publish) {
	agent, kind, ok := protocol.ParseAgentTopic(p.Topic)
	if !ok {
		return
	}
	takenOver := false
	switch kind {
	case protocol.KindHeartbeat:
		if m, err := protocol.Decode[protocol.Heartbeat](p.Payload); err == nil {
			takenOver = r.branches.hear(agent, connID{m.BootID, m.Connection})
		}
	case protocol.KindStatus:
		m, err := protocol.Decode[protocol.Status](p.Payload)
		if err != nil {
			r.cfg.Log.Warn("mqtt: message not handled", "branch", agent.Branch, "username", agent.Username, "kind", string(kind), "error", err)
			return
		}
		if m.State == protocol.Online {
			takenOver = r.branches.hear(agent, connID{m.BootID, m.Connection})
		} else {
			r.branches.lose(agent.Branch, connID{m.BootID, m.Connection})
		}
	}
	if takenOver {
		takeoversTotal.Inc()
		r.cfg.Log.Warn("mqtt: agent taken over by another machine", "branch", agent.Branch, "username", agent.Username)
		r.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kindTakeover})
	}
	for _, of := range r.branches.all(agent.Branch) {
		r.presence.announce(of)
	}
	if kind != protocol.KindHeartbeat || asksForTime(p.Payload) {
		r.inbox.put(delivery{from: protocol.Peer{Agent: agent}, kind: kind, payload: p.Payload})
	}
}

func (r *Remote) send(ctx context.Context, m *autopaho.ConnectionManager) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-r.outgoing:
			if _, err := m.Publish(ctx, p); err != nil {
				r.drop()
			}
		}
	}
}

func (r *Remote) drop() {
	r.unsent.Add(1)
	droppedOut.Inc()
}

func (r *Remote) watch(ctx context.Context) {
	silent := time.NewTicker(silenceInterval)
	defer silent.Stop()
	var lost int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-silent.C:
		}
		r.presence.announceAll()
		if now := r.inbox.dropped.Load() + r.unsent.Load(); now > lost {
			r.cfg.Log.Warn("mqtt: messages dropped", "in", r.inbox.dropped.Load(), "out", r.unsent.Load())
			lost = now
		}
	}
}

// Stats returns the counters for metrics. Sessions is the number of connected agents.
func (r *Remote) Stats() Stats {
	return Stats{Sessions: r.branches.count(), Dropped: r.inbox.dropped.Load(), Unsent: r.unsent.Load()}
}
