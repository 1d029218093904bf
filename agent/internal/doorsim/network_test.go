package doorsim

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// network carries messages between the cloud and the agents, with faults.
type network struct {
	seed  uint64
	loss  float64 // of a message without an acknowledgement
	again float64 // a message is delivered more than once
	tail  float64 // a message is delayed for up to 30 s
	forge float64 // of a grant: a forged message accompanies it
	slow  time.Duration

	partitions []partition
	cloudDown  []partition

	mu   sync.Mutex
	sent map[string]int
}

// partition is an interval in which no message passes. Messages sent in it arrive afterwards, all at once, if TCP keeps the
// connection, and never if it does not.
type partition struct {
	from, to time.Time
	holdsOn  bool
}

func (p partition) covers(t time.Time) bool { return !t.Before(p.from) && t.Before(p.to) }

// fate returns the random source of the n-th message with a label, independent of the goroutine that sends it.
func (n *network) fate(label string) *rand.Rand {
	n.mu.Lock()
	n.sent[label]++
	count := n.sent[label]
	n.mu.Unlock()
	h := fnv.New64a()
	h.Write([]byte(label))
	return rand.New(rand.NewPCG(n.seed, h.Sum64()+uint64(count)*0x9E3779B97F4A7C15))
}

// delay returns the transit time of a message, to the nanosecond so that no two arrive at the same instant.
func (n *network) delay(r *rand.Rand) time.Duration {
	d := time.Millisecond + time.Duration(r.Int64N(int64(n.slow)))
	switch {
	case r.Float64() < n.tail:
		d += time.Duration(r.Int64N(int64(30 * time.Second)))
	case r.Float64() < n.tail:
		d += time.Duration(r.Int64N(int64(2 * time.Second)))
	}
	return d
}

func (n *network) copies(r *rand.Rand) int {
	copies := 1
	for copies < 4 && r.Float64() < n.again {
		copies++
	}
	return copies
}

// toAgent carries a message at QoS 0.
func (n *network) toAgent(label string, deliver func()) {
	r := n.fate(label)
	for range n.copies(r) {
		wait := n.delay(r)
		lost := r.Float64() < n.loss
		if p, parted := in(n.partitions, time.Now(), time.Now().Add(wait)); parted {
			lost = lost || !p.holdsOn
			wait = time.Until(p.to) + wait%time.Second
		}
		if !lost {
			time.AfterFunc(wait, deliver)
		}
	}
}

// toCloud carries a message at QoS 1 from an outbox: it is sent again on the next connection until it expires or its process
// dies.
func (n *network) toCloud(label string, until time.Time, from *life, deliver func()) {
	r := n.fate(label)
	for range n.copies(r) {
		sent := time.Now()
		for {
			arrives := sent.Add(n.delay(r))
			p, parted := in(n.partitions, sent, arrives)
			if !parted {
				p, parted = in(n.cloudDown, sent, arrives)
			}
			if !parted {
				if sent.Before(until) {
					time.AfterFunc(time.Until(arrives), func() {
						if !from.overAt(sent) {
							deliver()
						}
					})
				}
				break
			}
			sent = p.to.Add(100*time.Millisecond + time.Duration(r.Int64N(int64(600*time.Millisecond)))) // it reconnects
		}
	}
}

// in returns the partition that affects a message in transit during an interval.
func in(partitions []partition, from, to time.Time) (partition, bool) {
	for _, p := range partitions {
		if p.covers(from) || p.covers(to) || from.Before(p.from) && p.to.Before(to) {
			return p, true
		}
	}
	return partition{}, false
}
