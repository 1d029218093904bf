//go:build linux

package light_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/light"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout ends the wait for an event that does not come.
const testTimeout = 30 * time.Second

// tap forwards connections to a broker and records the packets of the clients.
type tap struct {
	listener net.Listener
	broker   string

	mu      sync.Mutex
	conns   []net.Conn
	packets []string
	beats   []string // heartbeats and pings, which have times of their own
	changed chan struct{}
}

func newTap(t *testing.T, broker string) *tap {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: listener, broker: broker, changed: make(chan struct{})}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.forward(t, conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.cut()
		work.Wait()
	})
	return p
}

// cut closes all connections.
func (p *tap) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *tap) forward(t *testing.T, client net.Conn) {
	var dialer net.Dialer
	broker, err := dialer.DialContext(context.Background(), "tcp", p.broker)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, broker)
	p.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, broker) // until either is closed
		client.Close()
	})
	in := bufio.NewReader(client)
	for {
		packet, err := readPacket(in)
		if err != nil {
			break
		}
		text, beat := describe(t, packet)
		p.mu.Lock()
		if beat {
			p.beats = append(p.beats, text)
		} else {
			p.packets = append(p.packets, text)
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if _, err := broker.Write(packet); err != nil {
			break
		}
	}
	broker.Close()
	client.Close()
	back.Wait()
}

func readPacket(in *bufio.Reader) ([]byte, error) {
	header, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	packet, length := []byte{header}, 0
	for shift := 0; ; shift += 7 {
		b, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		packet = append(packet, b)
		length |= int(b&0x7F) << shift
		if b < 0x80 {
			break
		}
	}
	body := make([]byte, length)
	_, err = io.ReadFull(in, body)
	return append(packet, body...), err
}

// describe returns a client's packet as a text that is equal for two agents: without ids, times and random values.
func describe(t *testing.T, packet []byte) (text string, beat bool) {
	pk := packets.Packet{ProtocolVersion: 5}
	if err := pk.FixedHeader.Decode(packet[0]); err != nil {
		t.Error(err)
	}
	body := packet[1:]
	for body[0] >= 0x80 {
		body = body[1:]
	}
	body = body[1:]
	pk.FixedHeader.Remaining = len(body)
	decode := map[byte]func([]byte) error{
		packets.Connect: pk.ConnectDecode, packets.Subscribe: pk.SubscribeDecode, packets.Publish: pk.PublishDecode, packets.Disconnect: pk.DisconnectDecode,
	}[pk.FixedHeader.Type]
	if decode != nil {
		if err := decode(body); err != nil {
			t.Errorf("packet %x: %v", packet, err)
		}
	}
	name := packets.PacketNames[pk.FixedHeader.Type]
	switch c := pk.Connect; pk.FixedHeader.Type {
	case packets.Connect:
		return fmt.Sprintf("%s %s clean=%t keepalive=%d user=%s password=%s will=%s %s qos=%d retain=%t properties=%+v", name, c.ClientIdentifier, c.Clean,
			c.Keepalive, c.Username, c.Password, c.WillTopic, masked(t, c.WillPayload), c.WillQos, c.WillRetain, pk.Properties), false
	case packets.Subscribe:
		for _, f := range pk.Filters {
			name += fmt.Sprintf(" %s qos=%d", f.Filter, f.Qos)
		}
		return name, false
	case packets.Publish:
		return fmt.Sprintf("%s %s qos=%d retain=%t %s properties=%+v", name, pk.TopicName, pk.FixedHeader.Qos, pk.FixedHeader.Retain, masked(t, pk.Payload),
			pk.Properties), strings.HasSuffix(pk.TopicName, "/"+string(protocol.KindHeartbeat))
	}
	return name, pk.FixedHeader.Type == packets.Pingreq
}

// masked hides the values of a payload that differ between two agents, and keeps those that must be set.
func masked(t *testing.T, payload []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(payload, &fields); err != nil {
		t.Errorf("payload %q: %v", payload, err)
	}
	delete(fields, "diagnostics") // a light agent has no log
	var hide func(fields map[string]any)
	hide = func(fields map[string]any) {
		for name, value := range fields {
			switch name {
			case "bootId", "requestId", "nonce", "startedAt", "uptimeMs", "at", "agentVersion":
				fields[name] = fmt.Sprintf("%T", value)
			case "energizedMs":
				fields[name] = value.(float64) >= 500 // a whole pulse, or the time until the confirmation
			case "events":
				for _, e := range value.([]any) {
					hide(e.(map[string]any))
				}
			}
		}
	}
	hide(fields)
	text, err := json.Marshal(fields) // sorted by name
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// wait waits until the recorded packets satisfy a condition.
func (p *tap) wait(t *testing.T, what string, ok func(packets, beats []string) bool) {
	t.Helper()
	late := time.After(testTimeout)
	for {
		p.mu.Lock()
		fits, changed := ok(p.packets, p.beats), p.changed
		p.mu.Unlock()
		if fits {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("no %s; recorded:\n%s", what, strings.Join(p.packets, "\n"))
		}
	}
}

// waitKinds waits for a number of publishes of a kind.
func (p *tap) waitKinds(t *testing.T, kind protocol.Kind, n int) {
	t.Helper()
	p.wait(t, fmt.Sprintf("%d messages of kind %s", n, kind), func(packets, _ []string) bool {
		count := 0
		for _, text := range packets {
			if strings.HasPrefix(text, "Publish ") && strings.Contains(text, "/"+string(kind)+" ") {
				count++
			}
		}
		return count >= n
	})
}

// runReal runs the real agent of a fleet's branch with simulated hardware.
func runReal(t *testing.T, cloud *cloudtest.Cloud, through *tap, site fleetconfig.Branch) {
	t.Helper()
	b, err := branch.New(site.Plan, branch.Config{
		Branch: site.Branch, Password: site.Password, GrantKeys: []ed25519.PublicKey{cloud.GrantKey},
		Brokers: []*url.URL{{Scheme: "mqtt", Host: through.listener.Addr().String()}}, Version: "1", PassDir: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler), Changed: func(branch.Change) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, b.Run)
}

// runLight runs a light agent of a fleet's branch.
func runLight(t *testing.T, cloud *cloudtest.Cloud, through *tap, site fleetconfig.Branch) *light.Fleet {
	t.Helper()
	fleet, err := light.New(light.Config{
		Brokers: []netip.AddrPort{netip.MustParseAddrPort(through.listener.Addr().String())}, GrantKeys: []ed25519.PublicKey{cloud.GrantKey}, Version: "1",
		Agents: []light.Identity{{Branch: site.Branch, Password: site.Password}},
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, fleet.Run)
	return fleet
}

func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLightAgentSpeaksLikeTheRealOne lets the real agent and a light one go through the same exchanges with a real broker
// and compares every packet that they send.
func TestLightAgentSpeaksLikeTheRealOne(t *testing.T) {
	t.Parallel()
	fleet, err := fleetconfig.Fleet(1)
	if err != nil {
		t.Fatal(err)
	}
	packets, beats := make([][]string, 2), make([][]string, 2)
	t.Run("agents", func(t *testing.T) {
		for i, name := range []string{"real", "light"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cloud := cloudtest.New(t)
				through := newTap(t, cloud.URL.Host)
				if name == "real" {
					runReal(t, cloud, through, fleet[0])
				} else {
					runLight(t, cloud, through, fleet[0])
				}
				exchange(t, cloud, through, fleet[0].Branch)
				through.mu.Lock()
				defer through.mu.Unlock()
				packets[i], beats[i] = slices.Clone(through.packets), slices.Clone(through.beats)
			})
		}
	})
	if t.Failed() {
		return
	}
	// The first connection has an order; later, an event may overtake a result.
	const ordered = 4 // CONNECT, twice SUBSCRIBE, status
	for _, list := range packets {
		slices.Sort(list[ordered:])
	}
	equal(t, "packet", packets[1], packets[0])
	equal(t, "ping or heartbeat", beats[1][:2], beats[0][:2])
}

// equal compares what the light agent and the real one have sent.
func equal(t *testing.T, what string, light, real []string) {
	t.Helper()
	for i := range max(len(light), len(real)) {
		got, want := "none", "none"
		if i < len(light) {
			got = light[i]
		}
		if i < len(real) {
			want = real[i]
		}
		if got != want {
			t.Errorf("%s %d:\nlight %s\nreal  %s", what, i, got, want)
		}
	}
}

// exchange opens a door, repeats the ask and the grant's request after it, asks for a door that does not exist, and breaks
// the connection.
func exchange(t *testing.T, cloud *cloudtest.Cloud, through *tap, branch string) {
	t.Helper()
	through.waitKinds(t, protocol.KindStatus, 1)
	cloud.Status(branch, protocol.Online, time.Time{}, testTimeout)
	id := cloud.Unlock(branch, "room_1")
	if r := cloud.Result(id, "room_1", testTimeout); r.Outcome != protocol.Opened {
		t.Errorf("%+v", r)
	}
	through.waitKinds(t, protocol.KindTelemetry, 2)
	cloud.Send(branch, protocol.Ask{RequestID: id, Doors: []string{"room_1"}})
	through.waitKinds(t, protocol.KindDoorResult, 2)
	cloud.Unlock(branch, "room_9")
	// The answer to a grant that no agent has claimed shows that the ask before it was ignored.
	cloud.SendGrant(branch, protocol.Grant{RequestID: "11111111-2222-4333-8444-555555555555", Nonce: protocol.NewNonce(), Doors: []string{"room_2"}, PulseMs: 600})
	through.waitKinds(t, protocol.KindDoorResult, 3)
	through.wait(t, "heartbeat", func(_, beats []string) bool { return len(beats) > 1 })
	through.cut()
	through.waitKinds(t, protocol.KindStatus, 2)
}

// TestLightAgentComesBack ends the connections of a fleet: every agent reconnects, and opens its door.
func TestLightAgentComesBack(t *testing.T) {
	t.Parallel()
	cloud := cloudtest.New(t)
	through := newTap(t, cloud.URL.Host)
	sites, err := fleetconfig.Fleet(20)
	if err != nil {
		t.Fatal(err)
	}
	config := light.Config{Brokers: []netip.AddrPort{netip.MustParseAddrPort(through.listener.Addr().String())}, GrantKeys: []ed25519.PublicKey{cloud.GrantKey}, Version: "1"}
	for _, s := range sites {
		config.Agents = append(config.Agents, light.Identity{Branch: s.Branch, Password: s.Password})
	}
	fleet, err := light.New(config)
	if err != nil {
		t.Fatal(err)
	}
	background(t, fleet.Run)
	awaitOnline(t, fleet, 20)
	through.cut()
	awaitOnline(t, fleet, 40)
	for _, s := range sites {
		id := cloud.Unlock(s.Branch, "front_1")
		if r := cloud.Result(id, "front_1", testTimeout); r.Outcome != protocol.Opened {
			t.Errorf("%s: %+v", s.Branch, r)
		}
	}
	if s := fleet.Stats(); s.Online != 20 || s.Accepted != 40 || s.Failed != 20 || s.Opened != 20 {
		t.Errorf("got %+v, want 20 online, 40 accepted, 20 failed, 20 opened", s)
	}
}

// TestLightAgentLeavesASilentBroker gives an agent a pool whose first broker accepts connections and never answers. The agent reaches
// the other one before the 20 seconds have passed that it would wait for its only broker.
func TestLightAgentLeavesASilentBroker(t *testing.T) {
	t.Parallel()
	cloud := cloudtest.New(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	sites, err := fleetconfig.Fleet(20)
	if err != nil {
		t.Fatal(err)
	}
	config := light.Config{
		Brokers:   []netip.AddrPort{netip.MustParseAddrPort(cloud.URL.Host), netip.MustParseAddrPort(silent.Addr().String())},
		GrantKeys: []ed25519.PublicKey{cloud.GrantKey}, Version: "1",
	}
	at := slices.IndexFunc(sites, func(s fleetconfig.Branch) bool { return config.Broker(s.Branch, 0) == config.Brokers[1] })
	config.Agents = []light.Identity{{Branch: sites[at].Branch, Password: sites[at].Password}}
	fleet, err := light.New(config)
	if err != nil {
		t.Fatal(err)
	}
	background(t, fleet.Run)
	const onlyBroker = 20 * time.Second
	began := time.Now()
	for fleet.Stats().Online == 0 && time.Since(began) < onlyBroker {
		time.Sleep(5 * time.Millisecond)
	}
	if s := fleet.Stats(); s.Online != 1 || s.Silent != 1 {
		t.Errorf("got %+v after %s, want 1 online after 1 silent connection", s, time.Since(began))
	}
}

// awaitOnline waits until all 20 agents are online after so many connections. They have no event for it.
func awaitOnline(t *testing.T, fleet *light.Fleet, accepted int64) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(5 * time.Millisecond) {
		s := fleet.Stats()
		if s.Online == 20 && s.Accepted >= accepted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want 20 online after %d connections", s, accepted)
		}
	}
}

func TestSourceAddressesAreDistinctLoopbackAddresses(t *testing.T) {
	t.Parallel()
	seen := make(map[netip.Addr]bool)
	for i := 0; i < light.MaxAgents; i += 5 {
		address := light.Source(i)
		if !address.IsLoopback() || seen[address] {
			t.Fatalf("agent %d has %s", i, address)
		}
		seen[address] = true
	}
}
