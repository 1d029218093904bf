// Package link maintains the agent's connection to the cloud: one MQTT v5 connection that is re-established indefinitely, the
// outbox of undelivered messages, and the presence messages.
//
//	dial ─► CONNECT (clean start, will) ─► SUBSCRIBE ─► status online ─► heartbeats, outbox ─┐
//	  ▲                                                                                      │ on any error the connection
//	  └───────────────── next broker, back-off, 100 ms to 15 s ◄─────────────────────────────┘ is closed
//
// If the cloud has a pool of brokers, the link uses the one that its branch prefers. When that one is away it uses the next one,
// and returns as soon as the preferred one answers: the new connection is complete before the old one ends, so that no door
// request meets a branch without a connection.
//
// A connection is closed as soon as any packet, at the latest a heartbeat, is not acknowledged within three seconds: on a
// half-open connection this is much faster than TCP. On a slow network, packets have twice as long as the last answer took, at most
// ten seconds: no door opens over such a connection, but keypads receive the time and their passes. No state of a connection outlives it
// except the outbox. The package therefore uses paho's plain client: the reconnecting one keeps a session across clean-start connections.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/protocol"
)

const (
	connectTimeout    = 20 * time.Second // name resolution, TCP, TLS, WebSocket upgrade and CONNACK together
	failoverTimeout   = 5 * time.Second  // the same, while there are brokers that were not tried yet
	packetTimeout     = 3 * time.Second  // for a write, and for the acknowledgement of anything sent; see session.timeout
	maxPacketTimeout  = 10 * time.Second // for the acknowledgement while the network is slow
	subscribeAttempts = 3
	senders           = 8           // publishes that may wait for their acknowledgement at the same time, beside one of telemetry
	shutdownTimeout   = time.Second // for the outbox when the agent stops

	stableTime     = time.Minute            // a connection that lasted this long resets the back-off
	backoffMin     = 100 * time.Millisecond // shortest delay
	backoffFirst   = 200 * time.Millisecond // upper limit of the first delays
	quickAttempts  = 4                      // failures in a row before the limit begins to double
	failoverSpread = 2 * time.Second        // added at random when a connection of a pool is lost; see pacer.next
	unreachableMax = 5 * time.Second        // limit while the broker is unreachable: it may return at any time
	rejectedMax    = 15 * time.Second       // limit while the broker ends each connection: it must not be flooded
	takeoverFirst  = time.Second            // delay after the session was taken over; it doubles with each takeover in a row
	takeoverMax    = 30 * time.Second

	returnInterval = 30 * time.Second // between attempts to return to a preferred broker, and as much again at random

	sessionTakenOver = 0x8E // DISCONNECT reason: session taken over (MQTT 5, 3.14.2.1)
)

// errSessionTakenOver is returned when another client connected under this client id. Reconnecting at once would disconnect
// that client, and so on, several times a second.
var errSessionTakenOver = errors.New("another client has connected under this client id")

// errUnreachable is returned when no MQTT connection could be established at all.
var errUnreachable = errors.New("the broker is unreachable")

// errEnded is returned with the reason in the broker's DISCONNECT.
var errEnded = errors.New("the broker ended the connection")

var errStopped = errors.New("the agent is stopping")

// errTryAgain is returned when a connection that uses the topics of the branch is to be replaced by one that tries those of the credential.
var errTryAgain = errors.New("the topics of the credential are tried again")

// errReturned is returned when the agent has connected to a broker that it prefers.
var errReturned = errors.New("connected to a preferred broker")

// Config configures a link.
type Config struct {
	Branch   string
	Brokers  []*url.URL // of the pool; see ParseURLs
	Last     []*url.URL // tried when none of these answers
	ClientID string
	Username string
	Password string
	TLS      *tls.Config
	Dial     func(ctx context.Context, u *url.URL) (net.Conn, error) // opens the TCP connection; nil: the system's network
	Proxy    func(*http.Request) (*url.URL, error)                   // for ws and wss without Dial; nil: HTTP_PROXY, HTTPS_PROXY, NO_PROXY

	// HandshakeFailed is called with the error of each TLS handshake that fails; nil: not.
	HandshakeFailed func(error)

	// AddressFile stores the last address of the broker that worked, for use while no name server answers; empty: none.
	AddressFile string

	// Secrets returns the secrets to connect with, in the order in which they are tried; nil: Password. Accepted is called with
	// the one that the broker accepted; it may be nil.
	Secrets  func() []Secret
	Accepted func(Secret)

	ReturnInterval time.Duration // between attempts to return to a preferred broker; 0: half a minute

	LegacyTime time.Duration // until the topics of the credential are tried again that a broker has rejected; 0: ten minutes

	Receive func(Message) // receives messages from the cloud; must not block
	Logger  *slog.Logger
}

// Message is a message from the cloud on one of the branch's topics.
type Message struct {
	Kind            protocol.Kind
	Payload         []byte
	ResponseTopic   string
	CorrelationData []byte
}

// Link is the connection to the cloud. New creates it.
type Link struct {
	config      Config
	dialer      *dialer
	outbox      *outbox
	info        AgentInfo // as passed to Run
	brokers     brokers
	receiving   sync.Mutex          // for the moment in which two connections receive
	legacyUntil time.Time           // when the topics of the credential are tried again
	rejections  int                 // times the broker rejected the agent's identity
	ended       int                 // connections in a row that ended while subscribing to them
	connection  uint32              // number of the last connection; used only by establish
	broker      condition.Condition // whether the broker is reachable
	rejected    condition.Condition // whether the broker accepts messages
	connected   atomic.Bool
	refresh     chan struct{} // holds a token if the status has changed
}

// New creates a link, which is down until Run.
func New(config Config) *Link {
	l := &Link{config: config, dialer: newDialer(config), outbox: newOutbox(), refresh: make(chan struct{}, 1), brokers: brokers{branch: config.Branch}}
	l.brokers.set(config.Brokers, config.Last)
	if config.ReturnInterval == 0 {
		l.config.ReturnInterval = returnInterval
	}
	if config.LegacyTime == 0 {
		l.config.LegacyTime = legacyTime
	}
	l.broker.Log, l.broker.Name = config.Logger, "connection to the broker"
	l.rejected.Log, l.rejected.Name = config.Logger, "publishing a message"
	return l
}

// SetBrokers replaces the brokers of the pool, and those that are tried when none of them answers. One of the lists has a broker.
func (l *Link) SetBrokers(pool, last []*url.URL) { l.brokers.set(pool, last) }

// Connected reports whether the cloud has acknowledged the status of the current connection.
func (l *Link) Connected() bool { return l.connected.Load() }

// Refresh publishes the status again, because a self-test has changed.
func (l *Link) Refresh() {
	select {
	case l.refresh <- struct{}{}:
	default:
	}
}

// Send puts a message into the outbox. The message is delivered at least once, or not at all if its lifetime ends first;
// messages may overtake each other, except telemetry. Send never blocks: if the outbox is full, the oldest message is lost.
func (l *Link) Send(m protocol.Message, correlationData []byte, life time.Duration) {
	l.send(m, correlationData, life, false)
}

func (l *Link) send(m protocol.Message, correlationData []byte, life time.Duration, offered bool) {
	payload, err := protocol.Encode(m)
	if err != nil {
		l.config.Logger.Error("message not sent", "error", err)
		return
	}
	item := outboxItem{kind: m.Kind(), payload: payload, correlationData: correlationData, queued: time.Now(), expires: time.Now().Add(life), offered: offered}
	if t, ok := m.(protocol.Telemetry); ok {
		item.telemetry = &t
	}
	l.outbox.put(item)
}

// Offer is Send for messages that must neither displace nor delay others. While there is no connection, another offered message is
// not delivered, or several messages wait, it sends nothing and reports false.
func (l *Link) Offer(m protocol.Message, life time.Duration) bool {
	if !l.Connected() || l.outbox.offered.Load() > 0 || l.outbox.open.Load() >= senders {
		return false
	}
	l.send(m, nil, life, true)
	return true
}

// Run maintains the connection until ctx is done, and then disconnects in order. It returns an error at once if info can never
// be sent: names that are not allowed, or option trees that exceed the size of a status.
func (l *Link) Run(ctx context.Context, info AgentInfo) error {
	if _, err := protocol.EncodeStatus(info.constant(math.MaxUint32)); err != nil {
		return err
	}
	l.info = info
	var pause pacer
	var established *session // beside the connection that has just ended
	broker, failures := l.brokers.home(), 0
	for {
		var used time.Duration
		var err error
		current := established
		if established = nil; current == nil {
			timeout := connectTimeout
			if failures++; failures < l.brokers.count() {
				timeout = failoverTimeout
			}
			current, err = l.establish(ctx, broker, timeout)
		}
		if err == nil {
			broker, failures = current.broker, 0
			used, established, err = l.serve(ctx, current)
		}
		if ctx.Err() != nil {
			if established != nil {
				established.close()
			}
			return nil //nolint:nilerr // the end was requested, and the error is its consequence
		}
		if established != nil {
			l.config.Logger.Info("connected to a preferred broker", "broker", established.broker.Redacted())
			continue
		}
		if errors.Is(err, errTryAgain) {
			continue
		}
		l.broker.Set(err)
		if !errors.Is(err, errSessionTakenOver) {
			broker = l.brokers.after(broker)
		}
		if sleep(ctx, pause.next(used, err, l.brokers.count() > 1)) != nil {
			return nil //nolint:nilerr // as above
		}
	}
}

// pacer chooses the delay before the next connection.
type pacer struct{ failures, takeovers int }

// next returns the delay after a connection that was used for a while and ended with err. The random spread keeps branches
// from reconnecting simultaneously when the broker returns. In a pool, all agents of a lost broker go to the next one. If they came at
// once, it would answer neither them nor its own agents for seconds. A press is asked for longer than the spread.
func (p *pacer) next(used time.Duration, err error, pool bool) time.Duration {
	if used >= stableTime {
		*p = pacer{}
	}
	if errors.Is(err, errSessionTakenOver) {
		p.takeovers++
		return min(takeoverFirst<<min(p.takeovers-1, 10), takeoverMax)
	}
	limit := rejectedMax
	if errors.Is(err, errUnreachable) {
		limit = unreachableMax
	}
	p.failures++
	limit = min(backoffFirst<<min(max(p.failures-quickAttempts, 0), 10), limit)
	delay := backoffMin + rand.N(limit-backoffMin)
	if pool && used > 0 {
		delay += rand.N(failoverSpread)
	}
	return delay
}

// session is a connection whose status the cloud has acknowledged.
type session struct {
	client     *paho.Client
	broker     *url.URL
	ended      chan error     // paho reports the end once or twice
	connection uint32         // its number since the start of the agent
	publisher  protocol.Agent // whose topics it publishes to
	timeout    atomic.Int64   // for an acknowledgement, in nanoseconds
}

// answered adapts the timeout to the time that an answer took. It falls slowly, because the delays of a congested network vary. Calls are sequential.
func (s *session) answered(took time.Duration) {
	falling := time.Duration(s.timeout.Load()) - time.Second
	s.timeout.Store(int64(min(max(packetTimeout, 2*took, falling), maxPacketTimeout)))
}

// limit returns a context for a packet that is to be acknowledged.
func (s *session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(s.timeout.Load()))
}

func (s *session) subscribe(ctx context.Context, request *paho.Subscribe) (*paho.Suback, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	return s.client.Subscribe(ctx, request)
}

// close ends the connection. The broker publishes the will for every end of a connection, because the will is then true.
func (s *session) close() {
	_ = s.client.Disconnect(&paho.Disconnect{ReasonCode: packets.DisconnectDisconnectWithWillMessage})
}

// establish connects to a broker. Calls are sequential.
func (l *Link) establish(ctx context.Context, broker *url.URL, timeout time.Duration) (_ *session, err error) {
	l.connection++
	s := &session{broker: broker, ended: make(chan error, 2), connection: l.connection}
	if err := l.connect(ctx, s, timeout); err != nil {
		return nil, err
	}
	if err = l.subscribe(ctx, s); err == nil {
		err = l.publishStatus(ctx, s)
	}
	if err != nil {
		s.close()
		return nil, cause(err, s.ended)
	}
	return s, nil
}

// serve uses a connection until it fails or ctx is done. used is how long it was usable. better is a connection to a preferred
// broker that replaces it, or nil.
func (l *Link) serve(ctx context.Context, s *session) (used time.Duration, better *session, err error) {
	defer func() {
		s.close()
		err = cause(err, s.ended)
	}()
	if l.connection == 1 {
		l.config.Logger.Info("connected to the broker")
	}
	l.broker.Set(nil)
	store := l.dialer.tcp.cache.confirm()
	go func() { // a card can stall
		if err := store(); err != nil {
			l.config.Logger.Debug("connection", "error", err)
		}
	}()
	l.connected.Store(true)
	began := time.Now()
	better, err = l.use(ctx, s)
	l.connected.Store(better != nil)
	return time.Since(began), better, err
}

// cause returns why a connection ended. A publisher may notice the end first, with an unspecific error; paho reports the
// reason of the broker shortly afterwards.
func cause(err error, ended <-chan error) error {
	select {
	case reported := <-ended:
		if errors.Is(reported, errSessionTakenOver) || errors.Is(reported, errEnded) {
			return reported
		}
	case <-time.After(backoffMin):
	}
	return err
}

// use serves an established connection until it ends, always with an error.
func (l *Link) use(ctx context.Context, s *session) (better *session, err error) {
	// When ctx is done, shutdown empties the outbox before it ends the connection.
	g, gctx := errgroup.WithContext(context.WithoutCancel(ctx))
	g.Go(func() error {
		select {
		case err := <-s.ended:
			return err
		case <-gctx.Done():
			return nil
		}
	})
	g.Go(func() error { return l.keepPresent(gctx, s) })
	if s.publisher.Username == "" && protocol.ValidUsername(l.config.Username) {
		again := time.Until(l.legacyUntil)
		g.Go(func() error {
			if sleep(gctx, again) != nil {
				return nil //nolint:nilerr // the connection has ended
			}
			return errTryAgain
		})
	}
	for range senders {
		g.Go(func() error { return l.drainOutbox(gctx, s) })
	}
	g.Go(func() error { return l.drainTelemetry(gctx, s) })
	g.Go(func() error {
		if better = l.findBetter(ctx, gctx, s); better != nil {
			return errReturned
		}
		return nil
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return l.shutdown(gctx)
		case <-gctx.Done():
			return nil
		}
	})
	err = g.Wait()
	return better, err
}

// findBetter connects to a broker that the agent prefers, as soon as one answers. It returns nil when the connection in use has
// ended, which is the end of using, or when ctx is done.
func (l *Link) findBetter(ctx, using context.Context, s *session) *session {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Two addresses may belong to one broker, which ends the old connection before the new one is complete.
	defer context.AfterFunc(using, func() {
		if !errors.Is(context.Cause(using), errSessionTakenOver) {
			cancel()
		}
	})()
	for sleep(using, l.config.ReturnInterval+rand.N(l.config.ReturnInterval)) == nil {
		for _, broker := range l.brokers.better(s.broker) {
			better, err := l.establish(ctx, broker, failoverTimeout)
			if err == nil {
				return better
			}
			l.config.Logger.Debug("a preferred broker is still away", "broker", broker.Redacted(), "error", err)
		}
	}
	return nil
}

func (l *Link) connect(ctx context.Context, s *session, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	conn, err := l.dialer.dial(ctx, s.broker)
	dialed := time.Since(began)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errUnreachable, s.broker.Redacted(), err)
	}
	end := func(err error) {
		select {
		case s.ended <- err:
		default:
		}
	}
	way := l.way()
	client := paho.NewClient(paho.ClientConfig{
		AuthHandler:       signer{l.config.Username, way.secret.Key},
		Conn:              conn,
		PacketTimeout:     connectTimeout, // each packet has a limit of its own
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){l.receive},
		OnClientError:     end,
		OnServerDisconnect: func(d *paho.Disconnect) {
			if d.ReasonCode == sessionTakenOver {
				end(errSessionTakenOver)
				return
			}
			end(fmt.Errorf("%w with reason 0x%02X", errEnded, d.ReasonCode))
		},
	})
	// An answer to CONNECT takes two round trips if the agent signs, a connection one at least.
	limited, cancelConnect := context.WithTimeout(ctx, max(packetTimeout, 3*dialed))
	defer cancelConnect()
	connack, err := client.Connect(limited, l.connectPacket(way, s.connection))
	if connack != nil && connack.ReasonCode >= 0x80 {
		if rejectsIdentity(connack.ReasonCode) {
			l.rejections++
			return fmt.Errorf("the broker rejects the credentials (reason 0x%02X): they were revoked or replaced, or are of another service", connack.ReasonCode)
		}
		return fmt.Errorf("the broker rejected the connection with reason 0x%02X", connack.ReasonCode)
	}
	if err != nil {
		return fmt.Errorf("MQTT connect: %w", err)
	}
	if l.config.Accepted != nil {
		l.config.Accepted(way.secret)
	}
	s.client = client
	s.answered(time.Since(began) - dialed)
	return nil
}

// receiveMaximum limits incoming messages of QoS 1 and above. There are none, but without a limit the client allocates half a
// megabyte for 65,535 of them. (The embedded broker ignores it: see the hook in cloud/internal/broker.)
const receiveMaximum = 64

func (l *Link) connectPacket(way way, connection uint32) *paho.Connect {
	maxPacket, window := uint32(protocol.MaxAgentPacket), uint16(receiveMaximum)
	connect := &paho.Connect{
		ClientID:     l.config.ClientID,
		CleanStart:   true,
		KeepAlive:    uint16(protocol.KeepAlive / time.Second),
		UsernameFlag: l.config.Username != "",
		Username:     l.config.Username,
		// Session expiry 0 is the default.
		Properties: &paho.ConnectProperties{MaximumPacketSize: &maxPacket, ReceiveMaximum: &window},
		WillMessage: &paho.WillMessage{
			Topic:   protocol.Topic(l.config.Branch, protocol.KindStatus),
			Payload: l.info.offline(connection),
			QoS:     protocol.KindStatus.QoS(),
			Retain:  true,
		},
		WillProperties: &paho.WillProperties{},
	}
	if way.sign {
		connect.Properties.AuthMethod = protocol.AuthMethod
	} else if way.secret.Password != "" {
		connect.PasswordFlag, connect.Password = true, []byte(way.secret.Password)
	}
	return connect
}

// legacyTime is how long the link uses only the topics of the branch after the broker rejected those of the credential: without these, the
// agent receives neither the time nor passes, keys and settings.
const legacyTime = 10 * time.Minute

// subscribe subscribes to the topics of the credential, which no other agent of the branch can use, and to those of the branch.
// A broker of an older release rejects the former, or ends the connection.
func (l *Link) subscribe(ctx context.Context, s *session) error {
	s.publisher = protocol.Agent{Branch: l.config.Branch}
	own := protocol.Agent{Branch: l.config.Branch, Username: l.config.Username}
	if protocol.ValidUsername(own.Username) && time.Now().After(l.legacyUntil) {
		request := subscription(own)
		suback, err := s.subscribe(ctx, request)
		switch {
		case err == nil || suback != nil && onlyNewKinds(request, suback):
			s.publisher, l.ended = own, 0
		case suback != nil:
			l.legacyUntil = time.Now().Add(l.config.LegacyTime)
		default:
			if len(s.ended) == 0 { // a broker or a network that is too busy
				return fmt.Errorf("subscribe: %w", err)
			}
			if l.ended++; l.ended == subscribeAttempts {
				l.ended, l.legacyUntil = 0, time.Now().Add(l.config.LegacyTime)
			}
			return fmt.Errorf("subscribe: %w", err)
		}
	}
	var err error
	for range subscribeAttempts {
		if _, err = s.subscribe(ctx, subscription(protocol.Agent{Branch: l.config.Branch})); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// onlyNewKinds reports whether a broker rejected nothing but kinds that are younger than the topics of credentials: it belongs
// to a cloud of an older release, which never sends them.
func onlyNewKinds(request *paho.Subscribe, suback *paho.Suback) bool {
	for i, reason := range suback.Reasons {
		if _, kind, _ := protocol.ParseTopic(request.Subscriptions[i].Topic); reason >= 0x80 && !kind.OwnTopic() {
			return false
		}
	}
	return len(suback.Reasons) == len(request.Subscriptions)
}

// subscription returns the subscriptions of an agent. Some kinds are never sent to a whole branch, and a broker of an older
// release would reject them.
func subscription(agent protocol.Agent) *paho.Subscribe {
	var packet paho.Subscribe
	for kind := range protocol.Kinds() {
		if kind.FromCloud() && (!kind.OwnTopic() || agent.Username != "") {
			packet.Subscriptions = append(packet.Subscriptions, paho.SubscribeOptions{Topic: agent.Topic(kind), QoS: kind.QoS()})
		}
	}
	return &packet
}

func (l *Link) receive(p paho.PublishReceived) (bool, error) {
	to, kind, ok := protocol.ParseAgentTopic(p.Packet.Topic)
	if !ok || to.Branch != l.config.Branch || p.Packet.Retain {
		l.config.Logger.Warn("message on a foreign topic, or retained, ignored", "topic", p.Packet.Topic)
		return true, nil
	}
	m := Message{Kind: kind, Payload: p.Packet.Payload}
	if p.Packet.Properties != nil {
		m.ResponseTopic, m.CorrelationData = p.Packet.Properties.ResponseTopic, p.Packet.Properties.CorrelationData
	}
	l.receiving.Lock()
	defer l.receiving.Unlock()
	l.config.Receive(m)
	return true, nil
}

// keepPresent publishes heartbeats and the status.
func (l *Link) keepPresent(ctx context.Context, s *session) error {
	heartbeat := time.NewTimer(protocol.FirstHeartbeat())
	defer heartbeat.Stop()
	again := time.NewTimer(protocol.FirstStatusAgain())
	defer again.Stop()
	if l.info.Nonce != nil { // the first beacon must not take an interval
		if err := l.publishHeartbeat(ctx, s); err != nil {
			return err
		}
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			again.Reset(protocol.StatusInterval)
			err = l.publishStatus(ctx, s)
		case <-l.refresh:
			err = l.publishStatus(ctx, s)
		case <-heartbeat.C:
			heartbeat.Reset(protocol.HeartbeatInterval)
			err = l.publishHeartbeat(ctx, s)
		}
		if err != nil {
			return err
		}
	}
}

func (l *Link) publishHeartbeat(ctx context.Context, s *session) error {
	sent := time.Now()
	err := l.publish(ctx, s, outboxItem{kind: protocol.KindHeartbeat, payload: l.info.heartbeat(s.connection)})
	s.answered(time.Since(sent))
	return err
}

func (l *Link) publishStatus(ctx context.Context, s *session) error {
	return l.publish(ctx, s, outboxItem{kind: protocol.KindStatus, payload: l.info.online(s.connection)})
}

// drainOutbox publishes the messages of the outbox. Undelivered messages return to it for the next connection.
func (l *Link) drainOutbox(ctx context.Context, s *session) error {
	for {
		p, ok := l.outbox.take(ctx)
		if !ok {
			return nil
		}
		err := l.publish(ctx, s, p.aged(time.Now()))
		l.outbox.done(p, err == nil)
		if err != nil {
			return err
		}
	}
}

// drainTelemetry publishes the telemetry of the outbox in its order.
func (l *Link) drainTelemetry(ctx context.Context, s *session) error {
	for {
		p, ok := l.outbox.telemetry.take(ctx)
		if !ok {
			return nil
		}
		err := l.publish(ctx, s, p.aged(time.Now()))
		l.outbox.telemetry.done(err == nil)
		if err != nil {
			return err
		}
	}
}

// publish sends a message and waits for its acknowledgement. A message that the broker rejects is not an error: it would be
// rejected on the next connection too.
func (l *Link) publish(ctx context.Context, s *session, p outboxItem) error {
	if p.kind.OwnTopic() && s.publisher.Username == "" {
		return nil // the broker of an older release knows neither the topic nor the kind
	}
	packet := &paho.Publish{
		Topic:   s.publisher.Topic(p.kind),
		Payload: p.payload,
		QoS:     p.kind.QoS(),
		Retain:  p.kind.Retained(),
	}
	if p.correlationData != nil {
		packet.Properties = &paho.PublishProperties{CorrelationData: p.correlationData}
	}
	limited, cancel := s.limit(ctx)
	defer cancel()
	response, err := s.client.Publish(limited, packet)
	if response != nil && response.ReasonCode >= 0x80 {
		l.config.Logger.Debug("the broker rejected a message", "kind", p.kind, "reason", fmt.Sprintf("0x%02X", response.ReasonCode))
		l.rejected.Set(fmt.Errorf("%s: reason 0x%02X", p.kind, response.ReasonCode))
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", p.kind, err)
	}
	return nil
}

// shutdown waits until the outbox is empty. Its error ends the connection.
func (l *Link) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	l.outbox.drain(ctx)
	return errStopped
}
