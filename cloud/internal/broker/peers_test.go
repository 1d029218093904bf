package broker

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

const peerSecret = "secret of a peer"

// member is a replica whose embedded broker is one of a pool.
type member struct {
	replica
	own  *Broker
	addr string
	stop func()
}

// pool starts replicas with embedded brokers that are peers of each other. Their messages go to the same verbs.
func pool(t *testing.T, replicas int) []member {
	t.Helper()
	shared := newVerbs()
	members, addrs := make([]member, replicas), make([]string, replicas)
	hash := sha256.Sum256([]byte(peerSecret))
	for i := range members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		own, err := New(Config{Listener: l, Credentials: demoCredentials, PeerSecretHash: hash[:], Doors: shared, Devices: shared, Climate: shared, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = l.Addr().String()
		members[i] = member{own: own, addr: addrs[i]}
	}
	for i := range members {
		peers := func(context.Context) (list []*url.URL, _ error) {
			for n, addr := range addrs {
				if n != i {
					list = append(list, &url.URL{Scheme: "mqtt", Host: addr, User: url.UserPassword(PeerUsername, peerSecret)})
				}
			}
			return list, nil
		}
		m := &members[i]
		m.replica = replica{verbs: shared, Pool: NewPool(PoolConfig{Own: m.own, Peers: peers, Doors: shared, Devices: shared, Climate: shared,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil))})}
	}
	for i := range members {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- members[i].Run(ctx) }()
		members[i].stop = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(members[i].stop)
	}
	for _, m := range members {
		wait(t, "all peers", m.Connected)
	}
	return members
}

// Each of three replicas reaches agents at each embedded broker. When one replica ends, the agents of the others do not notice,
// and its own are reached at another broker.
func TestPoolOfEmbeddedBrokers(t *testing.T) {
	t.Parallel()
	members := pool(t, 3)
	branches := []string{"gangnam", "hongdae", "jamsil"}
	moving := agentAt(t, branches[0], members[0].addr, 1)
	agentAt(t, branches[1], members[1].addr, 1)
	agentAt(t, branches[2], members[2].addr, 1)
	reach := func(members []member, branches ...string) {
		t.Helper()
		for _, m := range members {
			for _, branch := range branches {
				wait(t, branch+" to be online", func() bool { return len(m.Online(branch)) == 1 })
				mustClaim(t, branch, m.replica)
			}
		}
	}
	reach(members, branches...)
	for _, m := range members {
		if n := m.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	}

	members[0].stop()
	<-moving.Gone()
	reach(members[1:], branches[1:]...)
	agentAt(t, branches[0], members[1].addr, 2)
	reach(members[1:], branches...)
}

// TestReplacedReplicaEnds: a replica with a connection to a peer ends if another one has taken its address.
func TestReplacedReplicaEnds(t *testing.T) {
	t.Parallel()
	peer, verbs := pool(t, 1)[0], newVerbs()
	reads := 0
	p := NewPool(PoolConfig{Doors: verbs, Devices: verbs, Climate: verbs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Peers: func(context.Context) ([]*url.URL, error) {
			if reads++; reads > 1 {
				return nil, ErrReplaced
			}
			return []*url.URL{{Scheme: "mqtt", Host: peer.addr, User: url.UserPassword(PeerUsername, peerSecret)}}, nil
		}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.followPeers(ctx); !errors.Is(err, ErrReplaced) || ctx.Err() != nil {
		t.Errorf("got %v, and the context is %v", err, ctx.Err())
	}
}

// An agent that moves to another broker stays online at every replica: the end of its earlier connection comes late.
func TestEndOfTheEarlierConnectionComesLate(t *testing.T) {
	t.Parallel()
	members := pool(t, 3)
	earlier := agentAt(t, "gangnam", members[0].addr, 1)
	known := func(m member, connection uint32) func() bool {
		return func() bool {
			m.branches.mu.RLock()
			defer m.branches.mu.RUnlock()
			of := m.branches.byCode["gangnam"]
			return of != nil && of.agents[to("gangnam").Agent] != nil && of.agents[to("gangnam").Agent].connection == connection
		}
	}
	wait(t, "the first connection", known(members[1], 1))
	wait(t, "the first connection", known(members[2], 1))
	agentAt(t, "gangnam", members[1].addr, 2)
	wait(t, "the second connection", known(members[0], 2))
	wait(t, "the second connection", known(members[2], 2))
	earlier.Close()
	for _, m := range []member{members[1], members[2]} {
		wait(t, "the end of the first connection", func() bool {
			m.branches.mu.RLock()
			defer m.branches.mu.RUnlock()
			return m.branches.byCode["gangnam"].lost.connection == 1
		})
	}
	wait(t, "the end of the session", func() bool { return len(members[0].own.sessions.all()) == 0 })
	for _, m := range members {
		if len(m.Online("gangnam")) != 1 || !m.presence.online(to("gangnam").Agent) {
			t.Error("offline after the end of the connection that the agent has left")
		}
	}
}

// The replica whose broker an agent is connected to announces it; the others follow.
func TestPresenceIsAnnouncedByOneReplica(t *testing.T) {
	t.Parallel()
	members := pool(t, 3)
	shared, gangnam := members[0].verbs, to("gangnam")
	knows := func(m member, online bool) {
		t.Helper()
		wait(t, "the presence", func() bool {
			m.presence.mu.Lock()
			defer m.presence.mu.Unlock()
			return m.presence.agents[gangnam.Agent].online() == online
		})
		m.inbox.put(delivery{from: gangnam, kind: kindTakeover}) // behind the announcements of this branch
		<-shared.takeovers
	}
	announced := func(members []member, online bool, want int) {
		t.Helper()
		for _, m := range members {
			knows(m, online)
		}
		for n := range len(shared.comings) {
			if h := receive(t, shared.comings); h.online != online {
				t.Errorf("announcement %d: online %t, want %t", n, h.online, online)
			}
			want--
		}
		if want != 0 {
			t.Errorf("%d announcements missing", want)
		}
	}
	agent := agentAt(t, gangnam.Branch, members[0].addr, 1)
	announced(members, true, 1)
	agent.Close()
	announced(members, false, 1)
	agentAt(t, gangnam.Branch, members[0].addr, 2)
	announced(members, true, 1)

	// A replica that had lost its connection to that broker corrects its own announcement.
	members[1].presence.mu.Lock()
	members[1].presence.put(gangnam.Agent, false)
	members[1].presence.mu.Unlock()
	announced(members[1:2], false, 1)
	agentAt(t, gangnam.Branch, members[2].addr, 3)
	announced(members, true, 1)
}

// A replica that joins learns which agents are connected, and loses them when their broker is lost and they do not come back.
func TestPresenceOfAPeerThatIsLost(t *testing.T) {
	t.Parallel()
	var clock fakeClock
	clock.set(time.Now())
	b := newBranches(clock.now)
	gangnam, via := to("gangnam").Agent, new(source)
	clock.set(clock.now().Add(time.Second))
	b.hear(gangnam, connID{"boot", 1}, via)
	clock.set(clock.now().Add(time.Hour)) // a peer tells changes only
	if len(b.online("gangnam")) != 1 {
		t.Error("offline although its peer is connected")
	}
	b.lostSource(via)
	clock.set(clock.now().Add(protocol.OfflineTimeout - time.Millisecond))
	if len(b.online("gangnam")) != 1 {
		t.Error("offline before it had time to connect elsewhere")
	}
	clock.set(clock.now().Add(time.Millisecond))
	if len(b.online("gangnam")) != 0 {
		t.Error("online although its peer is lost")
	}
	b.hear(gangnam, connID{"boot", 2}, new(source))
	if len(b.online("gangnam")) != 1 {
		t.Error("offline at another peer")
	}
	b.lose("gangnam", connID{"boot", 2})
	if len(b.online("gangnam")) != 0 {
		t.Error("online after the end of its connection")
	}
}

// A peer publishes to agents and learns their presence. It has no other right, and an agent has none of a peer.
func TestRightsOfPeers(t *testing.T) {
	t.Parallel()
	m := pool(t, 2)[0]
	agent := agentAt(t, "gangnam", m.addr, 1)
	connect := func(password string, change func(*paho.Connect)) (*paho.Client, chan *paho.Publish, error) {
		conn, err := agenttest.TCP(m.addr)()
		if err != nil {
			t.Fatal(err)
		}
		received := make(chan *paho.Publish, 100)
		client := paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: 5 * time.Second, OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(p paho.PublishReceived) (bool, error) { received <- p.Packet; return true, nil }}})
		packet := &paho.Connect{ClientID: "cloud-test", Username: PeerUsername, UsernameFlag: true, Password: []byte(password), PasswordFlag: true, CleanStart: true, KeepAlive: 10}
		if change != nil {
			change(packet)
		}
		_, err = client.Connect(t.Context(), packet)
		if err == nil {
			t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
		}
		return client, received, err
	}
	if _, _, err := connect("guessed", nil); err == nil {
		t.Error("a peer with a wrong password was admitted")
	}
	if _, _, err := connect(peerSecret, func(c *paho.Connect) {
		c.WillMessage = &paho.WillMessage{Topic: protocol.Topic("gangnam", protocol.KindStatus), Payload: []byte("x")}
	}); err == nil {
		t.Error("a peer with a will was admitted")
	}
	client, received, err := connect(peerSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind := range protocol.Kinds() {
		for _, filter := range protocol.Filters(kind) {
			_, err := client.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter}}})
			if may := peerBit(kind) != 0; (err == nil) != may {
				t.Errorf("subscription to %s: %v, allowed %t", filter, err, may)
			}
			if _, err := agent.Client().Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter}}}); err == nil {
				t.Errorf("an agent subscribed to %s", filter)
			}
		}
	}
	for _, topic := range []string{protocol.Topic("gangnam", protocol.KindDoorClaim), to("gangnam").Topic(protocol.KindDoorResult), "yeolda/v1/gangnam/x", "$SYS/x"} {
		if _, err := client.Publish(t.Context(), &paho.Publish{Topic: topic, QoS: 1, Payload: []byte("{}")}); err == nil {
			t.Errorf("a peer published to %s", topic)
		}
	}
	// The agent is announced once, although there are two filters of a kind.
	select {
	case p := <-received:
		if p.Topic != to("gangnam").Topic(protocol.KindHeartbeat) {
			t.Errorf("got %s, want a heartbeat", p.Topic)
		}
	case <-time.After(time.Minute):
		t.Fatal("the peer was not notified of the connected agents")
	}
	if n := len(received); n != 0 {
		t.Errorf("%d more messages, want none", n)
	}
}

// demoCredentials knows an agent of every branch, whose secret is its user name and "-demo".
func demoCredentials(_ context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
	for _, username := range usernames {
		if branch, ok := strings.CutPrefix(username, "agent-"); ok {
			hash := sha256.Sum256([]byte(username + "-demo"))
			found(username, branch, hash[:], nil)
		}
	}
	return nil
}
