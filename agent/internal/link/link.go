// Package link is the agent's line to the cloud: one MQTT v5 connection that is made again for ever, the outbox of what
// has not arrived yet, and the presence that tells the cloud who is there.
//
//	dial ─► CONNECT (clean start, will) ─► SUBSCRIBE ─► status online ─► heartbeats, outbox ─┐
//	  ▲                                                                                      │ any error: drop the
//	  └───────────────── back-off, 100 ms to 5 s; 30 s when taken over ◄─────────────────────┘ connection, start anew
//
// A connection is thrown away at the first thing that is not acknowledged within three seconds, a heartbeat at the
// latest: over a half-open line a new connection comes up long before TCP notices. Nothing of a connection outlives it;
// the outbox does. This is why paho's single-connection client is used and not its reconnecting one, which keeps a
// session over connections that MQTT was told to forget.
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
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/protocol"
)

const (
	connectTimeout    = 3 * time.Second // dial, TLS, WebSocket upgrade and CONNACK together
	packetTimeout     = 3 * time.Second // for a write, and for the acknowledgement of anything sent
	subscribeAttempts = 3
	senders           = 8           // publishes that may wait for their acknowledgement at a time
	shutdownTimeout   = time.Second // for what is in the outbox when the agent stops

	backoffMin       = 100 * time.Millisecond
	backoffFirst     = 200 * time.Millisecond // upper bound of the first wait; it doubles from there
	backoffMax       = 5 * time.Second
	takeoverDelay    = 30 * time.Second
	sessionTakenOver = 0x8E // DISCONNECT reason: session taken over (MQTT 5, 3.14.2.1)
)

// errSessionTakenOver means that somebody else connected under our client id. Coming back at once would throw them off, and
// them us, several times a second for ever.
var errSessionTakenOver = errors.New("another client has connected under this client id")

var errStopped = errors.New("the agent stops")

// Config is what a link needs.
type Config struct {
	Branch   string
	URL      *url.URL // see ParseURL
	ClientID string
	Username string
	Password string
	TLS      *tls.Config
	Dial     func(ctx context.Context, u *url.URL) (net.Conn, error) // opens the TCP connection; nil: a plain net.Dialer
	Proxy    func(*http.Request) (*url.URL, error)                   // for ws and wss without Dial; nil: HTTP_PROXY, HTTPS_PROXY, NO_PROXY

	Receive func(Message) // what the cloud sends; must not block
	Logger  *slog.Logger
}

// Message is what the cloud sent to one of the branch's topics.
type Message struct {
	Kind            protocol.Kind
	Payload         []byte
	ResponseTopic   string
	CorrelationData []byte
}

// Link is the line. Make it with New.
type Link struct {
	config     Config
	outbox     *outbox
	self       Self   // as given to Run
	connection uint32 // counts; used by Run's goroutine only
}

// New makes a link that is down until Run.
func New(config Config) *Link { return &Link{config: config, outbox: newOutbox()} }

// Send puts a message into the outbox. It is delivered at least once, or not at all when its life ends before that; two
// messages may overtake each other. Send never blocks: when the outbox is full the oldest message is lost.
func (l *Link) Send(m protocol.Message, correlationData []byte, life time.Duration) {
	payload, err := protocol.Encode(m)
	if err != nil {
		l.config.Logger.Error("message not sent", "error", err)
		return
	}
	l.outbox.put(outboxItem{kind: m.Kind(), payload: payload, correlationData: correlationData, until: time.Now().Add(life)})
}

// Run keeps the line up until the context is done, and then says goodbye: an agent without a network goes on trying. It
// returns an error at once if self could never be told to the cloud, because of names that are not allowed or option
// trees that do not fit into a status.
func (l *Link) Run(ctx context.Context, self Self) error {
	if _, err := protocol.Encode(self.status(math.MaxUint32)); err != nil {
		return err
	}
	l.self = self
	for failures := 0; ; failures++ {
		up, err := l.serve(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end was asked for, and the error is its consequence
		}
		if up {
			failures = 0
		}
		wait := backoff(failures)
		if errors.Is(err, errSessionTakenOver) {
			wait = takeoverDelay
		}
		if up || failures%12 == 0 { // every minute at most while the broker is away
			l.config.Logger.Warn("no connection to the broker", "error", err, "failures", failures, "retry_in", wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// backoff is how long to wait after so many failures in a row. The spread keeps the branches of a broker that comes
// back from arriving in step.
func backoff(failures int) time.Duration {
	limit := min(backoffFirst<<min(failures, 10), backoffMax)
	return backoffMin + rand.N(limit-backoffMin)
}

// serve makes one connection and uses it until it fails or the context is done. up says that it was ever of use.
func (l *Link) serve(ctx context.Context) (up bool, err error) {
	l.connection++
	ended := make(chan error, 2) // paho reports the end once or twice
	client, err := l.connect(ctx, ended)
	if err != nil {
		return false, err
	}
	defer func() {
		// However it ends, the broker is to publish the will: it says what is true then.
		_ = client.Disconnect(&paho.Disconnect{ReasonCode: packets.DisconnectDisconnectWithWillMessage})
		err = cause(err, ended)
	}()
	if err := l.subscribe(ctx, client); err != nil {
		return false, err
	}
	status := l.self.online(l.connection)
	if err := l.publish(ctx, client, outboxItem{kind: protocol.KindStatus, payload: status}); err != nil {
		return false, err
	}
	l.config.Logger.Info("connected to the broker", "connection", l.connection)
	return true, l.use(ctx, client, ended, status)
}

// cause is why a connection ended. Whoever was publishing learns of it first, and only that; what matters is whether
// the broker gave our place away, which paho tells a moment later.
func cause(err error, ended <-chan error) error {
	select {
	case reported := <-ended:
		if errors.Is(reported, errSessionTakenOver) {
			return reported
		}
	case <-time.After(backoffMin):
	}
	return err
}

// use serves a connection that is up until it ends, which is always an error.
func (l *Link) use(ctx context.Context, client *paho.Client, ended <-chan error, status []byte) error {
	// The context ends this connection by way of goodbye only: until then the outbox is emptied.
	g, gctx := errgroup.WithContext(context.WithoutCancel(ctx))
	g.Go(func() error {
		select {
		case err := <-ended:
			return err
		case <-gctx.Done():
			return nil
		}
	})
	g.Go(func() error { return l.keepPresent(gctx, client, status) })
	for range senders {
		g.Go(func() error { return l.drainOutbox(gctx, client) })
	}
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return l.shutdown(gctx)
		case <-gctx.Done():
			return nil
		}
	})
	return g.Wait()
}

func (l *Link) connect(ctx context.Context, ended chan<- error) (*paho.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := dial(ctx, l.config)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", l.config.URL.Redacted(), err)
	}
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	client := paho.NewClient(paho.ClientConfig{
		Conn:              conn,
		PacketTimeout:     packetTimeout,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){l.receive},
		OnClientError:     end,
		OnServerDisconnect: func(d *paho.Disconnect) {
			if d.ReasonCode == sessionTakenOver {
				end(errSessionTakenOver)
				return
			}
			end(fmt.Errorf("broker disconnected with reason 0x%02X", d.ReasonCode))
		},
	})
	connack, err := client.Connect(ctx, l.connectPacket())
	if connack != nil && connack.ReasonCode >= 0x80 {
		return nil, fmt.Errorf("broker refused the connection with reason 0x%02X", connack.ReasonCode)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return client, nil
}

// receiveMaximum bounds messages to us at QoS 1 and above. There are none; without a bound the client reserves half a
// megabyte for 65,535 of them. (The embedded broker ignores it: see the hook in cloud/internal/broker.)
const receiveMaximum = 64

func (l *Link) connectPacket() *paho.Connect {
	maxPacket, window := uint32(protocol.MaxPacket), uint16(receiveMaximum)
	return &paho.Connect{
		ClientID:     l.config.ClientID,
		CleanStart:   true,
		KeepAlive:    uint16(protocol.KeepAlive / time.Second),
		UsernameFlag: l.config.Username != "",
		Username:     l.config.Username,
		PasswordFlag: l.config.Password != "",
		Password:     []byte(l.config.Password),
		// Session expiry 0 is the default.
		Properties: &paho.ConnectProperties{MaximumPacketSize: &maxPacket, ReceiveMaximum: &window},
		WillMessage: &paho.WillMessage{
			Topic:   protocol.Topic(l.config.Branch, protocol.KindStatus),
			Payload: l.self.offline(l.connection),
			QoS:     protocol.KindStatus.QoS(),
			Retain:  true,
		},
		WillProperties: &paho.WillProperties{},
	}
}

func (l *Link) subscribe(ctx context.Context, client *paho.Client) error {
	var packet paho.Subscribe
	for filter := range (protocol.Agent{Branch: l.config.Branch}).Filters() {
		packet.Subscriptions = append(packet.Subscriptions, paho.SubscribeOptions{Topic: filter})
	}
	var err error
	for range subscribeAttempts {
		if _, err = client.Subscribe(ctx, &packet); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

func (l *Link) receive(p paho.PublishReceived) (bool, error) {
	branch, kind, ok := protocol.ParseTopic(p.Packet.Topic)
	if !ok || branch != l.config.Branch || p.Packet.Retain {
		l.config.Logger.Warn("message on a foreign topic or retained, ignored", "topic", p.Packet.Topic)
		return true, nil
	}
	m := Message{Kind: kind, Payload: p.Packet.Payload}
	if p.Packet.Properties != nil {
		m.ResponseTopic, m.CorrelationData = p.Packet.Properties.ResponseTopic, p.Packet.Properties.CorrelationData
	}
	l.config.Receive(m)
	return true, nil
}

// attend keeps the presence of this connection fresh.
func (l *Link) keepPresent(ctx context.Context, client *paho.Client, status []byte) error {
	heartbeat := time.NewTicker(protocol.HeartbeatInterval)
	defer heartbeat.Stop()
	again := time.NewTicker(protocol.StatusInterval)
	defer again.Stop()
	for {
		p := outboxItem{kind: protocol.KindStatus, payload: status}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		case <-heartbeat.C:
			p = outboxItem{kind: protocol.KindHeartbeat, payload: l.self.heartbeat(l.connection)}
		}
		if err := l.publish(ctx, client, p); err != nil {
			return err
		}
	}
}

// deliver empties the outbox. What could not be delivered goes back for the next connection.
func (l *Link) drainOutbox(ctx context.Context, client *paho.Client) error {
	for {
		p, ok := l.outbox.take(ctx)
		if !ok {
			return nil
		}
		err := l.publish(ctx, client, p)
		l.outbox.done(p, err == nil)
		if err != nil {
			return err
		}
	}
}

// publish sends a message and waits until the broker has it. A broker that has it and will not pass it on is not an
// error: the same message would meet the same answer on the next connection.
func (l *Link) publish(ctx context.Context, client *paho.Client, p outboxItem) error {
	packet := &paho.Publish{
		Topic:   protocol.Topic(l.config.Branch, p.kind),
		Payload: p.payload,
		QoS:     p.kind.QoS(),
		Retain:  p.kind.Retained(),
	}
	if p.correlationData != nil {
		packet.Properties = &paho.PublishProperties{CorrelationData: p.correlationData}
	}
	response, err := client.Publish(ctx, packet)
	if response != nil && response.ReasonCode >= 0x80 {
		l.config.Logger.Error("broker refused a message", "kind", p.kind, "reason", fmt.Sprintf("0x%02X", response.ReasonCode))
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", p.kind, err)
	}
	return nil
}

// goodbye lets the outbox empty. Its error ends the connection.
func (l *Link) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	l.outbox.drain(ctx)
	return errStopped
}
