package broker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"

	"github.com/yeolda/yeolda/protocol"
)

// session is one authenticated connection of an agent.
type session struct {
	branch        string
	username      string
	client        *mqtt.Client
	registry      *sessions
	began         time.Duration // by the registry's clock
	heard         atomic.Int64  // time of the last message, since the registry's start
	ended         bool          // guarded by registry.mu
	subscriptions atomic.Uint32 // bits of bitOf
	out           outbox
}

// kindBits assigns a bit to each kind of message to agents.
var kindBits = func() map[protocol.Kind]uint32 {
	bits := make(map[protocol.Kind]uint32)
	for kind := range protocol.Kinds() {
		if kind.FromCloud() {
			bits[kind] = 1 << len(bits)
		}
	}
	return bits
}()

// bitOf returns the bit of a subscription. Topics of the credential have other bits than those of the branch.
func bitOf(filter string) uint32 {
	agent, kind, _ := protocol.ParseAgentTopic(filter)
	if agent.Username != "" {
		return kindBits[kind] << len(kindBits)
	}
	return kindBits[kind]
}

func (s *session) agent() protocol.Agent {
	return protocol.Agent{Branch: s.branch, Username: s.username}
}

// subscribe records that a subscription begins or ends. It reports whether that changed anything.
func (s *session) subscribe(filter string, on bool) bool {
	bit := bitOf(filter)
	if on {
		return s.subscriptions.Or(bit)&bit == 0
	}
	return s.subscriptions.And(^bit)&bit != 0
}

// topic returns the topic on which the agent receives a kind, or "" if it has not subscribed to it. The topic of the
// credential has priority: an agent may subscribe to both.
func (s *session) topic(kind protocol.Kind) string {
	for _, topic := range []string{s.agent().Topic(kind), protocol.Topic(s.branch, kind)} {
		if s.subscriptions.Load()&bitOf(topic) != 0 {
			return topic
		}
	}
	return ""
}

// takes reports whether the agent wants packets of this size [MQTT-3.1.2-24].
func (s *session) takes(size int) bool {
	limit := s.client.Properties.Props.MaximumPacketSize
	return limit == 0 || uint32(size) <= limit
}

// write sends packets, between those that mochi sends. A connection that broke ends by itself.
func (s *session) write(packets []byte) {
	s.client.Lock()
	defer s.client.Unlock()
	_, _ = s.client.Net.Conn.Write(packets)
}

// hear notes that the agent still runs. Pings do not count: the program behind them may hang.
func (s *session) hear() { s.heard.Store(int64(s.registry.clock())) }

func (s *session) silence() time.Duration { return s.registry.clock() - time.Duration(s.heard.Load()) }

func (s *session) end() { s.registry.end(s) }

// sessions knows which branches have an agent. It is kept by connection and not by client id, because at a takeover the
// new session begins before the old one ends.
type sessions struct {
	now     func() time.Time
	start   time.Time
	changed func(branch string) // called outside the lock when a branch's first session begins or its last one ends

	mu       sync.RWMutex
	byBranch map[string][]*session // of a branch one, but for moments and mistakes
	latest   map[string]*session   // by user name
}

func newSessions(now func() time.Time, changed func(branch string)) *sessions {
	return &sessions{now: now, start: now(), changed: changed, byBranch: make(map[string][]*session),
		latest: make(map[string]*session)}
}

// clock is monotonic, so that setting the host's clock takes no branch off line.
func (r *sessions) clock() time.Duration { return r.now().Sub(r.start) }

func (r *sessions) admit(client *mqtt.Client, branch, username string) *session {
	s := &session{branch: branch, username: username, client: client, registry: r, began: r.clock()}
	s.out.write = s.write
	s.hear()
	return s
}

// begin makes a session count for its branch: the agent is about to get its CONNACK. One that does not start clean goes
// on with the subscriptions of the connection that it takes over [MQTT-3.1.2-5].
func (r *sessions) begin(s *session, clean bool) {
	s.hear()
	r.mu.Lock()
	if s.ended { // the connection broke before its CONNACK was out
		r.mu.Unlock()
		return
	}
	if earlier := r.latest[s.username]; earlier != nil && !clean {
		s.subscriptions.Store(earlier.subscriptions.Load())
	}
	of := r.byBranch[s.branch]
	first := len(of) == 0
	r.byBranch[s.branch] = append(of, s)
	r.latest[s.username] = s
	agentsGauge.Inc()
	r.mu.Unlock()
	if first {
		r.changed(s.branch)
	}
}

func (r *sessions) end(s *session) {
	r.mu.Lock()
	s.ended = true
	of := r.byBranch[s.branch]
	last := false
	if i := slices.Index(of, s); i >= 0 {
		agentsGauge.Dec()
		if last = len(of) == 1; last {
			delete(r.byBranch, s.branch)
		} else {
			r.byBranch[s.branch] = slices.Delete(of, i, i+1)
		}
	}
	if r.latest[s.username] == s {
		delete(r.latest, s.username)
	}
	r.mu.Unlock()
	if last {
		r.changed(s.branch)
	}
}

// replaced reports whether a newer session of the same agent has begun.
func (r *sessions) replaced(s *session) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s == nil {
		return false
	}
	newer, ok := r.latest[s.username]
	return ok && newer != s
}

// online reports whether some agent of the branch was heard within protocol.OfflineTimeout.
func (r *sessions) online(branch string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.byBranch[branch] {
		if s.silence() < protocol.OfflineTimeout {
			return true
		}
	}
	return false
}

// of returns the sessions of a branch.
func (r *sessions) of(branch string) []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.byBranch[branch])
}

// all returns the sessions in no order.
func (r *sessions) all() []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]*session, 0, len(r.byBranch))
	for _, of := range r.byBranch {
		list = append(list, of...)
	}
	return list
}
