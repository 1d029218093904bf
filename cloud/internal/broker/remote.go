package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

const (
	remoteKeepAlive = 10 // seconds
	remoteTimeout   = 3 * time.Second
	// remoteQueue is the maximum number of queued messages of a lane; more would be too old when they are sent.
	remoteQueue = 1024
	// remoteLanes is the number of connections over which messages go to an external broker. Mosquitto takes one packet of each
	// connection in turn. Over one connection, asks and grants waited for up to three seconds while 5,000 agents of another broker
	// connected, and up to a third of the presses failed (yeolda-bench -pool 10000 -mosquittos 2); over eight, 3 of 1,800 on a quiet machine.
	remoteLanes = 8
	// sharedBy is the prefix of shared subscriptions: each message is handled by one of the replicas.
	sharedBy = "$share/yeolda/"
	// sharedID is the subscription identifier of shared subscriptions. It distinguishes the replica that handles a status or heartbeat
	// from the others, which receive it too.
	sharedID = 1
	// subscribeTries is the number of attempts to subscribe before the connection is replaced.
	subscribeTries = 3
)

// remote is what connects a replica to one broker of its pool.
type remote struct {
	pool     *Pool
	peer     bool    // the embedded broker of another replica
	address  url.URL // without user name and password
	user     *url.Userinfo
	clientID string
	lanes    []*lane // the messages of a branch have one; the connection of the first also receives

	up atomic.Bool // subscribed over a connection that has not ended

	source atomic.Pointer[source] // the present connection to a peer
}

// lane is a connection to a broker with its queue.
type lane struct {
	outgoing  chan *paho.Publish
	connected atomic.Bool
}

func newRemote(pool *Pool, address *url.URL, peer bool) *remote {
	// Two addresses may belong to one broker, so each connection has a client id of its own.
	r := &remote{pool: pool, peer: peer, address: *address, user: address.User, clientID: "cloud-" + strings.ToLower(rand.Text())}
	r.address.User = nil
	lanes := remoteLanes
	if peer {
		lanes = 1 // an embedded broker reads all connections at the same time
	}
	for range lanes {
		r.lanes = append(r.lanes, &lane{outgoing: make(chan *paho.Publish, remoteQueue)})
	}
	return r
}

// connected reports whether messages can be sent.
func (r *remote) connected() bool { return r.lanes[0].connected.Load() }

// put queues a message to an agent of a branch: in the lane of the branch, so that messages keep their order, or in the first one if
// that is not connected.
func (r *remote) put(branch string, publish paho.Publish) {
	l := r.lanes[maphash.String(r.pool.seed, branch)%uint64(len(r.lanes))]
	if !l.connected.Load() {
		l = r.lanes[0]
	}
	select {
	case l.outgoing <- &publish:
	default:
		r.pool.drop()
	}
}

// run stays connected until ctx ends.
func (r *remote) run(ctx context.Context) error {
	var subscribing sync.WaitGroup
	var work errgroup.Group
	var connections []*autopaho.ConnectionManager
	for n, l := range r.lanes {
		config := r.sending(n)
		if n == 0 {
			config = r.receiving(ctx, config, &subscribing)
		}
		connection, err := autopaho.NewConnection(ctx, config)
		if err != nil {
			return fmt.Errorf("broker: %w", err)
		}
		connections = append(connections, connection)
		work.Go(func() error { r.send(ctx, connection, l); return nil })
	}
	<-ctx.Done()
	closed := time.After(closeLimit)
	var err error
	for _, connection := range connections {
		select {
		case <-connection.Done():
		case <-closed:
			err = errors.New("broker: connection not closed in time")
		}
	}
	subscribing.Wait()
	r.up.Store(false)
	r.lost()
	return errors.Join(err, work.Wait())
}

// sending configures the connection of a lane, which only sends.
func (r *remote) sending(n int) autopaho.ClientConfig {
	l := r.lanes[n]
	password, _ := r.user.Password()
	return autopaho.ClientConfig{
		ServerUrls: []*url.URL{&r.address}, TlsCfg: r.pool.cfg.TLS, KeepAlive: remoteKeepAlive,
		ConnectUsername: r.user.Username(), ConnectPassword: []byte(password),
		ConnectTimeout: remoteTimeout, ReconnectBackoff: autopaho.NewExponentialBackoff(100*time.Millisecond, 5*time.Second, 200*time.Millisecond, 2),
		ConnectPacketBuilder: func(c *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			c.CleanStart = true // also on reconnect: the broker keeps no messages for us
			return c, nil
		},
		OnConnectionUp:   func(*autopaho.ConnectionManager, *paho.Connack) { l.connected.Store(true) },
		OnConnectionDown: func() bool { l.connected.Store(false); return true },
		OnConnectError: func(err error) {
			if r.connected() { // otherwise the first connection reports it
				r.log().Warn("mqtt: no further connection to the broker", "error", err)
			}
		},
		ClientConfig: paho.ClientConfig{ClientID: fmt.Sprintf("%s-%d", r.clientID, n), PacketTimeout: remoteTimeout},
	}
}

// receiving configures the connection that also receives.
func (r *remote) receiving(ctx context.Context, config autopaho.ClientConfig, subscribing *sync.WaitGroup) autopaho.ClientConfig {
	config.OnConnectionUp = func(m *autopaho.ConnectionManager, _ *paho.Connack) {
		r.log().Info("mqtt: connected to the broker")
		if r.peer {
			r.source.Store(new(source))
		}
		r.lanes[0].connected.Store(true)
		subscribing.Go(func() { r.subscribe(ctx, m) }) // this callback must not block
	}
	config.OnConnectionDown = func() bool {
		r.lanes[0].connected.Store(false)
		r.up.Store(false)
		r.lost()
		r.log().Warn("mqtt: connection to the broker lost")
		return true
	}
	config.OnConnectError = func(err error) { r.log().Error("mqtt: no connection to the broker", "error", err) }
	config.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
		of := plainCopy
		if id := p.Packet.Properties.SubscriptionIdentifier; id != nil && *id == sharedID {
			of = sharedCopy
		} else if p.Packet.Retain {
			of = retainedCopy
		}
		r.pool.receive(p.Packet.Topic, p.Packet.Payload, of, r.source.Load())
		return true, nil
	}}
	return config
}

func (r *remote) log() *slog.Logger { return r.pool.cfg.Log.With("broker", r.address.Host) }

// lost ends the time in which the agents of a peer are present without a sign of life.
func (r *remote) lost() {
	if s := r.source.Load(); s != nil {
		r.pool.branches.lostSource(s)
	}
}

// subscribe subscribes to all messages of agents. All replicas receive presence and the answers to commands. One replica
// handles each claim, result and telemetry message, stores each status and answers each heartbeat. A peer does so itself.
func (r *remote) subscribe(ctx context.Context, m *autopaho.ConnectionManager) {
	plain := &paho.Subscribe{}
	shared := &paho.Subscribe{Properties: &paho.SubscribeProperties{SubscriptionIdentifier: new(sharedID)}}
	for kind, filter := range protocol.CloudFilters() {
		byOne, byAll := handledBy(kind)
		if byOne && !r.peer {
			shared.Subscriptions = append(shared.Subscriptions, paho.SubscribeOptions{Topic: sharedBy + filter, QoS: kind.QoS()})
		}
		if byAll && (!r.peer || peerFilters[filter] != 0) {
			plain.Subscriptions = append(plain.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: kind.QoS()})
		}
	}
	requests := []*paho.Subscribe{plain}
	if !r.peer {
		requests = []*paho.Subscribe{shared, plain} // in this order, so that no retained status comes before its successors can be stored
	}
	for _, request := range requests {
		if err := r.try(ctx, m, request); err != nil {
			if ctx.Err() == nil {
				m.TerminateConnectionForTest() // a connection without subscriptions is useless; autopaho reconnects
			}
			return
		}
	}
	r.up.Store(true)
}

// handledBy reports whether messages of a kind are handled by one replica, and whether all replicas receive them.
func handledBy(kind protocol.Kind) (one, all bool) {
	switch kind {
	case protocol.KindStatus, protocol.KindHeartbeat:
		return true, true
	case protocol.KindDoorClaim, protocol.KindDoorResult, protocol.KindTelemetry, protocol.KindPassApplied, protocol.KindPassEntry, protocol.KindSettingsFile,
		protocol.KindDiagnosticsLog, protocol.KindDiagnosticsReport:
		return true, false
	}
	return false, true
}

// try subscribes, several times if necessary.
func (r *remote) try(ctx context.Context, m *autopaho.ConnectionManager, request *paho.Subscribe) (err error) {
	for range subscribeTries {
		limited, cancel := context.WithTimeout(ctx, remoteTimeout)
		_, err = m.Subscribe(limited, request)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.log().Error("mqtt: not subscribed", "error", err)
	}
	return err
}

// send publishes the messages of a lane.
func (r *remote) send(ctx context.Context, m *autopaho.ConnectionManager, l *lane) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-l.outgoing:
			if _, err := m.Publish(ctx, p); err != nil {
				r.pool.drop()
			}
		}
	}
}
