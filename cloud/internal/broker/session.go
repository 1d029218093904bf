package broker

import (
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"

	"github.com/yeolda/yeolda/protocol"
)

// session is one authenticated connection of an agent or of a peer.
type session struct {
	id            uint64 // unique in this process, from 1
	branch        string
	username      string
	client        *mqtt.Client
	registry      *sessions
	heard         atomic.Int64  // time of the last message, since the registry's start
	silent        atomic.Bool   // at the last comparison; see sessions.turned
	ended         bool          // guarded by registry.mu
	bootID        string        // from the will; empty: unknown
	from          connID        // from the will, or made up
	peer          bool          // the connection of another replica; branch and username are empty
	secret        credential    // with which the client authenticated
	subscriptions atomic.Uint32 // bits of bitOf
	out           outbox

	notifying sync.Mutex  // keeps what peers receive in order
	notified  atomic.Bool // the peers know that the agent is connected
	over      bool        // the connection has ended; guarded by notifying
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

// bitOf returns the bit of a subscription. Topics of the credential and those of the branch have different bits.
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

func (s *session) agentPeer() protocol.Peer { return protocol.Peer{Agent: s.agent(), Session: s.id} }

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

// takes reports whether the agent accepts packets of this size [MQTT-3.1.2-24].
func (s *session) takes(size int) bool {
	limit := s.client.Properties.Props.MaximumPacketSize
	return limit == 0 || uint32(size) <= limit
}

// write sends packets, under the lock that mochi uses for its own. A broken connection ends in its read loop.
func (s *session) write(packets []byte) {
	s.client.Lock()
	defer s.client.Unlock()
	_, _ = s.client.Net.Conn.Write(packets)
}

// hear records that the agent is running. Pings do not count: the rest of the program may hang.
func (s *session) hear() { s.heard.Store(int64(s.registry.clock())) }

func (s *session) silence() time.Duration { return s.registry.clock() - time.Duration(s.heard.Load()) }

func (s *session) end() { s.registry.end(s) }

// sessions is the registry of authenticated connections. It is kept by connection and not by client id, because at a
// takeover the new session begins before the old one ends.
type sessions struct {
	now     func() time.Time
	start   time.Time
	changed func(protocol.Agent) // called outside the lock when an agent's first session begins or its last one ends
	left    func(*session)       // called outside the lock when a session of an agent has ended
	peers   *peers

	mu       sync.RWMutex
	lastID   uint64
	byBranch map[string][]*session
	latest   map[string]*session // by user name
}

func newSessions(now func() time.Time, peers *peers, changed func(protocol.Agent), left func(*session)) *sessions {
	return &sessions{now: now, start: now(), peers: peers, changed: changed, left: left, byBranch: make(map[string][]*session),
		latest: make(map[string]*session)}
}

// clock is monotonic, so that setting the host's clock takes no agent offline.
func (r *sessions) clock() time.Duration { return r.now().Sub(r.start) }

func (r *sessions) admit(client *mqtt.Client, agent protocol.Agent, secret credential, will connID) *session {
	r.mu.Lock()
	r.lastID++
	id := r.lastID
	r.mu.Unlock()
	s := &session{id: id, branch: agent.Branch, username: agent.Username, bootID: will.bootID, from: will, secret: secret, client: client, registry: r}
	if s.from.bootID == "" {
		s.from.bootID = rand.Text()
	}
	s.out.write = s.write
	s.hear()
	return s
}

// admitPeer returns the session of another replica.
func (r *sessions) admitPeer(client *mqtt.Client) *session {
	s := &session{peer: true, client: client, registry: r}
	s.out.write, s.out.limit = s.write, peerMessages
	return s
}

// begin registers a session whose agent is about to receive its CONNACK. If the agent did not ask for a clean start, it
// continues with the subscriptions of the session it replaces [MQTT-3.1.2-5]. displaced is the session of the same
// credential that was still connected.
func (r *sessions) begin(s *session, clean bool) (displaced *session) {
	s.hear()
	r.mu.Lock()
	if s.ended { // the connection broke before its CONNACK was sent
		r.mu.Unlock()
		return nil
	}
	displaced = r.latest[s.username]
	if displaced != nil && !clean {
		s.subscriptions.Store(displaced.subscriptions.Load())
	}
	r.byBranch[s.branch] = append(r.byBranch[s.branch], s)
	r.latest[s.username] = s
	agentsGauge.Inc()
	r.mu.Unlock()
	r.changed(s.agent())
	return displaced
}

func (r *sessions) end(s *session) {
	if s.peer {
		r.peers.remove(s)
		return
	}
	r.mu.Lock()
	s.ended = true
	of := r.byBranch[s.branch]
	if i := slices.Index(of, s); i >= 0 {
		agentsGauge.Dec()
		if len(of) == 1 {
			delete(r.byBranch, s.branch)
		} else {
			r.byBranch[s.branch] = slices.Delete(of, i, i+1)
		}
	}
	if r.latest[s.username] == s {
		delete(r.latest, s.username)
	}
	r.mu.Unlock()
	r.left(s)
	r.changed(s.agent())
}

// replaced reports whether a newer session of the same agent has begun.
func (r *sessions) replaced(s *session) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	newer, ok := r.latest[s.username]
	return ok && newer != s
}

// online returns the agents of a branch that sent a message within protocol.OfflineTimeout.
func (r *sessions) online(branch string) []protocol.Agent {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var agents []protocol.Agent
	for _, s := range r.byBranch[branch] {
		if s.silence() < protocol.OfflineTimeout {
			agents = append(agents, s.agent())
		}
	}
	return agents
}

// present reports whether an agent sent a message within protocol.OfflineTimeout.
func (r *sessions) present(agent protocol.Agent) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.byBranch[agent.Branch] {
		if s.username == agent.Username && s.silence() < protocol.OfflineTimeout {
			return true
		}
	}
	return false
}

// turned returns the sessions that have become silent, or are silent no longer, since they were compared last. The caller
// sets silent. At rest there are none, so a comparison of a hundred thousand sessions allocates nothing.
func (r *sessions) turned() (list []*session) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.clock()
	for _, of := range r.byBranch {
		for _, s := range of {
			if silent := now-time.Duration(s.heard.Load()) >= protocol.OfflineTimeout; silent != s.silent.Load() {
				list = append(list, s)
			}
		}
	}
	return list
}

// count returns the number of sessions.
func (r *sessions) count() (n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, of := range r.byBranch {
		n += len(of)
	}
	return n
}

// of returns the sessions to which a message for a peer is sent.
func (r *sessions) of(to protocol.Peer) (list []*session) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.byBranch[to.Branch] {
		if s.username == to.Username && (to.Session == 0 || to.Session == s.id) {
			list = append(list, s)
		}
	}
	return list
}

// all returns the sessions in no particular order.
func (r *sessions) all() []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]*session, 0, len(r.byBranch))
	for _, of := range r.byBranch {
		list = append(list, of...)
	}
	return list
}
