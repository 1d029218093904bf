package netsim

import (
	"bufio"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// queueLength is the number of packets in transit in one direction; a sender that is further ahead waits, as for a TCP
// window.
const queueLength = 64

// connection carries one connection.
//
//	alive ── cut, power off ──► dead: nothing is delivered, neither end sees the other close
//	  └───── one end closes ──► the other closes too, after earlier packets
//
// In both cases it runs until both ends are closed.
type connection struct {
	cable  *Cable
	link   *Link
	tap    Tap
	agent  net.Conn // our end of the agent's pipe
	broker net.Conn

	dying     sync.Once
	dead      chan struct{}
	letGo     sync.Once
	abandoned chan struct{} // the link is being closed

	mu      sync.Mutex
	pending map[uint16]string // packet id → topic of the agent's unacknowledged messages
}

func newConnection(c *Cable, agent, broker net.Conn) *connection {
	return &connection{
		cable: c, link: c.link, tap: c.link.newTap(), agent: agent, broker: broker,
		dead: make(chan struct{}), abandoned: make(chan struct{}), pending: make(map[uint16]string),
	}
}

// run carries packets until both ends are closed.
func (k *connection) run() {
	var directions sync.WaitGroup
	directions.Go(func() { k.carry(k.agent, k.hear, k.toBroker, k.closeBroker) })
	directions.Go(func() { k.carry(k.broker, nil, k.toAgent, k.closeAgent) })
	directions.Wait()

	k.link.mu.Lock()
	delete(k.link.connections, k)
	k.link.mu.Unlock()
	k.die()
}

func (k *connection) die() {
	k.dying.Do(func() {
		close(k.dead)
		k.tap.Down()
	})
}

func (k *connection) isDead() bool {
	select {
	case <-k.dead:
		return true
	default:
		return false
	}
}

// abandon closes both ends, whatever the state of the network.
func (k *connection) abandon() {
	k.letGo.Do(func() { close(k.abandoned) })
	k.agent.Close()
	k.broker.Close()
}

// carry reads packets from one end, taps them, and delivers each when it is due, until the end closes. After the last
// delivery it closes the other end.
func (k *connection) carry(from net.Conn, hear, deliver func(packet), tell func()) {
	toAgent := hear == nil
	arrivals := make(chan arrival, queueLength)
	var (
		delivery sync.WaitGroup
		waiting  atomic.Int32 // packets that have arrived and are not delivered
		last     time.Time
	)
	alive := func(p packet) {
		if !k.isDead() {
			deliver(p)
		}
	}
	delivery.Go(func() {
		inOrderOfTime(arrivals, k.dead, func(p packet) {
			alive(p)
			waiting.Add(-1)
		})
	})
	arrive := func(at time.Time, p packet) {
		if waiting.Load() == 0 && !at.After(time.Now()) { // not delayed, and no earlier packet is waiting
			alive(p)
			return
		}
		waiting.Add(1)
		arrivals <- arrival{at, p}
	}
	for r := bufio.NewReader(from); ; {
		p, err := readPacket(r)
		if err != nil {
			break
		}
		if hear != nil && !k.isDead() {
			hear(p)
		}
		now := k.link.now()
		// As in TCP, no packet arrives before an earlier one, even if the lag has decreased. Only reordered messages
		// do.
		if at := time.Now().Add(now.Lag); at.After(last) {
			last = at
		}
		if p.kind() != packets.PUBLISH {
			arrive(last, p)
			continue
		}
		copies := []packet{p}
		if toAgent && now.Duplicate {
			copies = append(copies, p.again())
		}
		for _, p := range copies {
			if now.Loss == 0 || rand.Float64() >= now.Loss {
				arrive(last.Add(upTo(now.Reorder)), p)
			}
		}
	}
	close(arrivals)
	delivery.Wait()
	tell()
}

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// closeBroker closes the broker's end as soon as the network passes packets; with a reset if the agent was killed.
func (k *connection) closeBroker() {
	select {
	case <-k.link.whole():
	case <-k.abandoned:
	}
	if tcp, ok := k.broker.(*net.TCPConn); ok && k.cable.isPulled() {
		// Best effort: otherwise the broker sees an orderly close.
		_ = tcp.SetLinger(0)
	}
	k.broker.Close()
}

// closeAgent closes the agent's end unless the connection is dead.
func (k *connection) closeAgent() {
	if !k.isDead() {
		k.agent.Close()
	}
}

// toBroker and toAgent ignore write errors: the reader of the same connection fails too.

func (k *connection) toBroker(p packet) { _, _ = k.broker.Write(p) }

func (k *connection) toAgent(p packet) {
	if id, ok := p.acked(); ok {
		k.mu.Lock()
		topic, known := k.pending[id]
		delete(k.pending, id)
		k.mu.Unlock()
		if known {
			k.tap.Acked(topic)
		}
	}
	if m, ok := p.publish(); ok {
		k.tap.ToAgent(m.topic, m.payload)
	}
	_, _ = k.agent.Write(p)
}

// hear taps what the agent sends.
func (k *connection) hear(p packet) {
	m, ok := p.publish()
	if !ok {
		return
	}
	if m.id != 0 {
		k.mu.Lock()
		k.pending[m.id] = m.topic
		k.mu.Unlock()
	}
	k.tap.FromAgent(m.topic, m.payload)
}
