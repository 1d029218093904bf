package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

// Config is what a Broker needs. Listener, Credentials, Doors, Devices, Climate and Log are required.
type Config struct {
	Listener net.Listener // plain MQTT
	TLS      net.Listener // optional: TCP on which TLS is spoken, with TLSConfig
	// TLSConfig is the server side of TLS. Its minimum version is raised to 1.2.
	TLSConfig *tls.Config

	// Credentials looks up credentials. It calls found for each that exists and is not revoked, with its branch the
	// SHA-256 of its password, and its public key, if it has one. An error means that the lookup failed.
	Credentials func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error

	// MaxConnections bounds the connections, so that files remain for the database and for requests; 0: no limit.
	MaxConnections int
	// PeerSecretHash is the SHA-256 of the password with which other replicas connect as PeerUsername; nil: none may.
	PeerSecretHash []byte

	Doors   Doors
	Devices Devices
	Climate Climate
	Passes  Passes // optional
	Log     *slog.Logger
	Now     func() time.Time // for presence; nil is time.Now
}

const (
	// readBuffer is the size of the read buffer of each connection. Most messages of agents are shorter.
	readBuffer = 512
	// closeGrace is how long agents have to close their connections. Closing takes at most closeLimit altogether.
	closeGrace = time.Second
	closeLimit = 3 * time.Second

	listenerPlain     = "tcp"
	listenerTLS       = "tls"
	listenerWebSocket = "websocket"
)

// Broker is the embedded MQTT broker. It accepts connections while Run runs.
type Broker struct {
	cfg         Config
	log         *slog.Logger
	server      *mqtt.Server
	admission   *admission
	sessions    *sessions
	inbox       *inbox
	peers       *peers
	credentials *credentials
	presence    *presence
	elsewhere   *branches // agents at other brokers of the pool; nil: there is no pool
	unsent      atomic.Int64
}

// New prepares a broker. Nothing is accepted before Run, which also closes the listeners.
func New(cfg Config) (*Broker, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	caps := mqtt.NewDefaultServerCapabilities()
	caps.MaximumClientWritesPending = 1 // not used: see Send
	caps.MaximumPacketSize = protocol.MaxPacket
	caps.MaximumSessionExpiryInterval = 0
	caps.MaximumMessageExpiryInterval = 0 // not used: mochi keeps no message
	caps.MinimumProtocolVersion = 5
	caps.MaximumQos = 1
	caps.ReceiveMaximum = acksWaiting
	caps.TopicAliasMaximum = 0 // the access check sees the empty topic of an aliased publish
	caps.SharedSubAvailable = 0
	caps.WildcardSubAvailable = 0
	caps.Compatibilities.NoInheritedPropertiesOnAck = true
	server := mqtt.New(&mqtt.Options{
		Capabilities:            caps,
		ClientNetReadBufferSize: readBuffer,
		// No client may read $SYS, so it is computed as rarely as possible.
		SysTopicResendInterval: 3600,
		// mochi logs whole packets, including the password of a CONNECT. The hook logs what is needed.
		Logger: slog.New(slog.DiscardHandler),
	})
	b := &Broker{
		cfg: cfg, log: cfg.Log, server: server,
		admission:   newAdmission(connectTimeout, cfg.MaxConnections),
		inbox:       newInbox(cfg.Doors, cfg.Devices, cfg.Climate, cfg.Passes, cfg.Log),
		credentials: newCredentials(cfg.Credentials), peers: newPeers(cfg.PeerSecretHash),
	}
	b.presence = newPresence(b.inbox, b.agentOnline)
	b.sessions = newSessions(cfg.Now, b.peers, func(agent protocol.Agent) { b.presence.announce(agent) }, b.left)
	if err := server.AddHook(&hook{Broker: b}, nil); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return b, b.listen()
}

func (b *Broker) listen() error {
	all := []listeners.Listener{
		listeners.NewNet(listenerPlain, &listener{b.cfg.Listener, b.admission, b.log}),
		// Connections that came by HTTP need a listener to be closed with.
		listeners.NewMockListener(listenerWebSocket, ""),
	}
	if b.cfg.TLS != nil {
		config := b.cfg.TLSConfig.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
		all = append(all, listeners.NewNet(listenerTLS, tls.NewListener(&listener{b.cfg.TLS, b.admission, b.log}, config)))
	}
	for _, l := range all {
		if err := b.server.AddListener(l); err != nil {
			return fmt.Errorf("broker: listener %s: %w", l.ID(), err)
		}
	}
	return nil
}

// Run serves until ctx ends, then closes within three seconds whatever the agents do.
func (b *Broker) Run(ctx context.Context) error {
	// mochi's Serve would also start its event loop, which copies the list of clients and looks at each of them every second:
	// at 17,500 agents at rest, a quarter of the broker's processor time. It looks for what does not exist here: sessions and
	// messages that outlive a connection, delayed wills, and readers of $SYS.
	b.server.Listeners.ServeAll(b.server.EstablishConnection)
	// These outlive the connections, so that messages received before the end are still handled.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work errgroup.Group
	work.Go(func() error { return b.inbox.run(serving) })
	for range lookupWorkers {
		work.Go(func() error { return b.credentials.work(serving) })
	}
	b.watch(ctx)
	err := b.close()
	stop()
	return errors.Join(err, work.Wait())
}

// Online returns the user names of the branch's agents that sent a message within protocol.OfflineTimeout.
func (b *Broker) Online(branch string) []string { return usernames(b.sessions.online(branch)) }

func (b *Broker) agentOnline(agent protocol.Agent) bool {
	return b.sessions.present(agent) || b.elsewhere != nil && slices.Contains(b.elsewhere.online(agent.Branch), agent)
}

// close closes every connection before it closes mochi: mochi's own Close waits for connections without limit, and deadlocks
// if one is removed from its list meanwhile, because it takes the lock of the list twice.
func (b *Broker) close() error {
	b.admission.shut()
	err := b.cfg.Listener.Close()
	if b.cfg.TLS != nil {
		err = errors.Join(err, b.cfg.TLS.Close())
	}
	for _, s := range append(b.sessions.all(), b.peers.all()...) {
		go func() { _ = b.server.DisconnectClient(s.client, packets.ErrServerShuttingDown) }()
	}
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-b.admission.emptied:
	case <-time.After(closeGrace):
		b.admission.cut()
	}
	closed := make(chan error, 1)
	go func() {
		// mochi removes a connection from its list after it was closed.
		b.server.Listeners.ClientsWg.Wait()
		closed <- b.server.Close()
	}()
	select {
	case closeErr := <-closed:
		return errors.Join(err, closeErr)
	case <-limit.C:
		return errors.Join(err, errors.New("broker: not closed in time"))
	}
}

// Stats are counters since the start, except for Sessions.
type Stats struct {
	Sessions int   // connected agents now
	Unsent   int64 // messages dropped for agents that do not read

	Brokers map[string]bool // whether this replica is connected, by the address of the broker; nil with the embedded one
}

// Connected returns true: agents connect to this process.
func (b *Broker) Connected() bool { return true }

// Stats returns the counters for metrics.
func (b *Broker) Stats() Stats {
	return Stats{Sessions: b.sessions.count(), Unsent: b.unsent.Load()}
}
