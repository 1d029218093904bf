package doorsim

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"periph.io/x/conn/v3/gpio"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/testkit/seeds"
	"github.com/yeolda/yeolda/protocol"
)

// TestWholeAgents runs the seeds with the whole agent, its MQTT client and outbox included, and a wall clock that
// jumps. The agent draws the pauses between its connections itself, so these runs do not repeat exactly; therefore the
// other runs use the door controller alone.
func TestWholeAgents(t *testing.T) {
	t.Parallel()
	opened := 0
	whole := seeds.Simulation{Run: func(seed uint64) seeds.Result { return runWith(seed, true, none).result() }}
	for seed := uint64(calm); seed <= seeds.Normal/5; seed++ {
		r := whole.Bubble(t, seed)
		if len(r.Violations) > 0 {
			t.Fatal(r.Failure(seed))
		}
		opened += r.Counts["SUCCESS"]
	}
	if opened < seeds.Normal/10 {
		t.Errorf("%d requests opened their doors, want %d", opened, seeds.Normal/10)
	}
}

// broker is the part of an MQTT broker that an agent needs. The network has already delayed, lost or repeated the
// messages that it forwards.
type broker struct {
	w *fixture

	mu   sync.Mutex
	line chan []byte // to the agent that subscribed last; nil: none
}

// send forwards a message to the connected agent.
func (b *broker) send(kind protocol.Kind, payload []byte) {
	packet := packets.NewControlPacket(packets.PUBLISH)
	publish := packet.Content.(*packets.Publish)
	publish.Topic, publish.Payload = protocol.Topic(branch, kind), payload
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(b.line, packet)
}

// put never blocks: packets that the agent does not read are lost.
func (b *broker) put(line chan []byte, packet *packets.ControlPacket) {
	var text buffer
	if _, err := packet.WriteTo(&text); err != nil {
		b.w.violation("a packet cannot be written: %v", err)
	}
	select {
	case line <- text:
	default:
	}
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// dial returns the dial function of a process. It blocks during a partition.
func (b *broker) dial(l *life) func(context.Context, *url.URL) (net.Conn, error) {
	return func(ctx context.Context, _ *url.URL) (net.Conn, error) {
		if _, parted := b.away(); parted || l.over() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ours, theirs := net.Pipe()
		go b.serve(l, theirs)
		return newBuffered(ours), nil
	}
}

// buffered is a connection whose writes do not wait for the reader, as with TCP.
type buffered struct {
	net.Conn
	out  chan []byte
	once sync.Once
	done chan struct{}
}

func newBuffered(conn net.Conn) *buffered {
	c := &buffered{Conn: conn, out: make(chan []byte, 1024), done: make(chan struct{})}
	go func() {
		for {
			select {
			case <-c.done:
				return
			case text := <-c.out:
				if _, err := conn.Write(text); err != nil {
					return
				}
			}
		}
	}()
	return c
}

func (c *buffered) Write(text []byte) (int, error) {
	select {
	case <-c.done:
		return 0, net.ErrClosed
	case c.out <- slices.Clone(text):
		return len(text), nil
	}
}

func (c *buffered) SetWriteDeadline(time.Time) error { return nil }

func (c *buffered) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

func (b *broker) away() (partition, bool) {
	now := time.Now()
	if p, parted := in(b.w.net.partitions, now, now); parted {
		return p, true
	}
	return in(b.w.net.cloudDown, now, now)
}

// serve handles one connection. It ends with the agent's process, or at the first packet in a partition that drops
// connections; in one that keeps them, packets wait.
func (b *broker) serve(l *life, conn net.Conn) {
	line := make(chan []byte, 256)
	done := make(chan struct{})
	defer func() {
		conn.Close()
		close(done)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.line == line {
			b.line = nil
		}
	}()
	l.onDeath(func() { conn.Close() })
	go func() {
		for {
			select {
			case text := <-line:
				if _, err := conn.Write(text); err != nil {
					return
				}
			case <-done:
				return
			}
		}
	}()
	for {
		packet, err := packets.ReadPacket(conn)
		if err != nil || l.over() {
			return
		}
		if p, parted := b.away(); parted {
			if !p.holdsOn {
				return
			}
			time.Sleep(time.Until(p.to))
		}
		if !b.answer(l, line, packet) {
			return
		}
	}
}

// answer processes a packet; false ends the connection.
func (b *broker) answer(l *life, line chan []byte, packet *packets.ControlPacket) bool {
	switch p := packet.Content.(type) {
	case *packets.Connect:
		b.put(line, packets.NewControlPacket(packets.CONNACK))
	case *packets.Subscribe:
		answer := packets.NewControlPacket(packets.SUBACK)
		suback := answer.Content.(*packets.Suback)
		suback.PacketID, suback.Reasons = p.PacketID, make([]byte, len(p.Subscriptions))
		b.put(line, answer)
		b.mu.Lock()
		b.line = line
		b.mu.Unlock()
	case *packets.Pingreq:
		b.put(line, packets.NewControlPacket(packets.PINGRESP))
	case *packets.Publish:
		heard := b.pass(l, p)
		if p.QoS > 0 && heard {
			answer := packets.NewControlPacket(packets.PUBACK)
			answer.Content.(*packets.Puback).PacketID = p.PacketID
			b.put(line, answer)
		}
	case *packets.Disconnect:
		return false
	}
	return true
}

// pass forwards a message of the agent. Sometimes the message arrives and its acknowledgement is lost, so that it is
// repeated; sometimes the message itself is lost.
func (b *broker) pass(l *life, p *packets.Publish) (acknowledged bool) {
	_, kind, ok := protocol.ParseTopic(p.Topic)
	if !ok || kind != protocol.KindDoorClaim && kind != protocol.KindDoorResult {
		return true
	}
	if kind == protocol.KindDoorResult {
		_ = hand(p.Payload, func(m protocol.Result) { b.w.refute(m) }) // the cloud judges malformed ones
	}
	r := b.w.net.fate("publish " + string(kind))
	chance := r.Float64()
	if chance >= b.w.net.loss/2 {
		payload := slices.Clone(p.Payload)
		b.w.net.toCloud("passed "+string(kind), time.Now().Add(time.Minute), l, func() {
			if err := b.w.cloud.receivePayload(l.pi.from, kind, payload); err != nil {
				b.w.violation("the cloud cannot decode: %v", err)
			}
		})
	}
	return chance >= b.w.net.loss
}

// bootWhole starts a process of the whole agent.
func (p *pi) bootWhole() {
	w := p.w
	l := &life{pi: p, ended: make(chan struct{})}
	var board agent.Board
	for _, device := range slices.Sorted(maps.Keys(p.lines)) {
		kind, _, _ := protocol.ParseDevice(device)
		lock := agent.Lock{Device: device, Kind: kind, Relay: relay{gpio.INVALID, p.lines[device], l}}
		if kind == protocol.DoorRoom {
			lock.Sense = sense{gpio.INVALID, p.lines[device]}
		}
		board.Locks = append(board.Locks, lock)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	clock := w.net.fate("clock")
	p.mu.Lock()
	p.agent, p.booted = l, time.Now()
	p.mu.Unlock()
	w.note("agent starts")
	go func() {
		defer close(l.ended)
		err := agent.Run(ctx, agent.Config{
			Branch: branch, BrokerURL: "mqtt://broker", GrantKeys: []ed25519.PublicKey{cloudKey.Public().(ed25519.PublicKey)},
			Dial: w.broker.dial(l), Logger: slog.New(slog.DiscardHandler), Observe: func(e protocol.Event) { l.event(e) },
			Now: func() time.Time { // an hour off, in 1970, or both one after the other
				w.mu.Lock()
				defer w.mu.Unlock()
				return []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), time.Unix(0, 0)}[clock.IntN(4)]
			},
		}, board)
		if err != nil && !errors.Is(err, context.Canceled) {
			w.violation("the agent ends: %v", err)
		}
	}()
}
