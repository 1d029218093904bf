package broker

import (
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"slices"
	"sync"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// PeerUsername is the user name of the other replicas at an embedded broker. No agent can have it; see protocol.ValidUsername.
const PeerUsername = "yeolda/peer"

// peerMessages is the maximum number of queued messages to a peer. One that falls further behind is disconnected, and learns
// the presence of all agents when it connects again.
const peerMessages = 1 << 17

// peerKinds are the kinds of messages that an embedded broker passes on to its peers: presence, and the answers to commands,
// which only the replica that sent the command recognises. It handles all other messages of its agents itself.
var peerKinds = []protocol.Kind{protocol.KindHeartbeat, protocol.KindStatus, protocol.KindClimateResult, protocol.KindSensorsReadings}

// peerFilters maps the filters to which a peer may subscribe to the bits of their kinds.
var peerFilters = func() map[string]uint32 {
	filters := make(map[string]uint32)
	for n, kind := range peerKinds {
		for _, filter := range protocol.Filters(kind) {
			filters[filter] = 1 << n
		}
	}
	return filters
}()

func peerBit(kind protocol.Kind) uint32 {
	for n, k := range peerKinds {
		if k == kind {
			return 1 << n
		}
	}
	return 0
}

// peers are the connections of the other replicas to an embedded broker. A peer publishes messages to agents, and learns
// which agents are connected: from a heartbeat on behalf of each when it subscribes, when the agent connects and with each of
// its statuses, and from an offline status when the connection has ended or the agent is silent. Heartbeats themselves are
// not passed on.
type peers struct {
	secretHash []byte // SHA-256 of the password; nil: no peer may connect

	mu       sync.RWMutex
	sessions map[*session]struct{}
}

func newPeers(secretHash []byte) *peers {
	return &peers{secretHash: secretHash, sessions: make(map[*session]struct{})}
}

func (p *peers) admits(password []byte) bool {
	got := sha256.Sum256(password)
	return p.secretHash != nil && subtle.ConstantTimeCompare(got[:], p.secretHash) == 1
}

func (p *peers) add(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.ended {
		p.sessions[s] = struct{}{}
	}
}

func (p *peers) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.ended = true
	delete(p.sessions, s)
}

func (p *peers) all() []*session {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Keys(p.sessions))
}

// publishToPeers sends a message of an agent to the peers that have subscribed to its kind.
func (b *Broker) publishToPeers(topic string, kind protocol.Kind, payload []byte) {
	b.peers.mu.RLock()
	defer b.peers.mu.RUnlock()
	if len(b.peers.sessions) == 0 {
		return
	}
	message, err := encode(topic, payload, packets.Properties{})
	if err != nil {
		b.log.Error("mqtt: message not passed on", "topic", topic, "error", err)
		return
	}
	for s := range b.peers.sessions {
		if s.subscriptions.Load()&peerBit(kind) != 0 {
			b.sendToPeer(s, message)
		}
	}
}

func (b *Broker) sendToPeer(s *session, message []byte) {
	if !s.out.send(message) {
		b.unsent.Add(1)
		droppedOut.Inc()
		go func() { _ = b.server.DisconnectClient(s.client, packets.ErrQuotaExceeded) }()
	}
}

// notifyPeers notifies the peers that an agent is connected or not. Only a change is sent, unless again is set.
func (b *Broker) notifyPeers(s *session, online, again bool) {
	if b.peers.secretHash == nil {
		return
	}
	s.notifying.Lock()
	defer s.notifying.Unlock()
	if s.notified.Load() == online && !again || online && s.over {
		return
	}
	s.notified.Store(online)
	kind, payload := s.presence(online)
	b.publishToPeers(s.agent().Topic(kind), kind, payload)
}

// notifyPeer notifies a peer that has subscribed of the connected agents.
func (b *Broker) notifyPeer(peer *session) {
	for _, s := range b.sessions.all() {
		s.notifying.Lock()
		if s.notified.Load() {
			kind, payload := s.presence(true)
			if message, err := encode(s.agent().Topic(kind), payload, packets.Properties{}); err == nil {
				b.sendToPeer(peer, message)
			}
		}
		s.notifying.Unlock()
	}
}

// left notifies the peers that the connection of an agent has ended.
func (b *Broker) left(s *session) {
	s.notifying.Lock()
	s.over = true
	s.notifying.Unlock()
	b.notifyPeers(s, false, false)
}

// presence returns a message about the connection of an agent.
func (s *session) presence(online bool) (protocol.Kind, []byte) {
	var m protocol.Message = protocol.Heartbeat{BootID: s.from.bootID, Connection: s.from.connection}
	if !online {
		m = protocol.Status{State: protocol.Offline, BootID: s.from.bootID, Connection: s.from.connection}
	}
	payload, err := protocol.Encode(m)
	if err != nil {
		panic(err) // the boot id was validated
	}
	return m.Kind(), payload
}

// publishFromPeer passes a message of another replica on to an agent.
func (b *Broker) publishFromPeer(s *session, pk *packets.Packet) error {
	code := packets.CodeSuccess
	agent, kind, ok := protocol.ParseAgentTopic(pk.TopicName)
	if !ok || !kind.FromCloud() || pk.FixedHeader.Retain {
		code = packets.ErrNotAuthorized
	} else if err := b.deliver(protocol.Peer{Agent: agent}, kind, pk.Payload, func(topic string) packets.Properties {
		p := packets.Properties{MessageExpiryInterval: pk.Properties.MessageExpiryInterval}
		if _, answer, ok := protocol.ParseAgentTopic(pk.Properties.ResponseTopic); ok {
			to, _, _ := protocol.ParseAgentTopic(topic)
			p.ResponseTopic, p.CorrelationData = to.Topic(answer), pk.Properties.CorrelationData
		}
		return p
	}); err != nil {
		return err
	}
	if pk.FixedHeader.Qos == 0 {
		return nil
	}
	return s.out.acknowledge(pk.PacketID, code)
}

// subscribePeer answers with a SUBACK, and then notifies the peer of the connected agents.
func (b *Broker) subscribePeer(cl *mqtt.Client, s *session, pk *packets.Packet) error {
	before := s.subscriptions.Load()
	codes := make([]byte, len(pk.Filters))
	for i, f := range pk.Filters {
		bit, ok := peerFilters[f.Filter]
		if !ok {
			codes[i] = packets.ErrNotAuthorized.Code
			continue
		}
		s.subscriptions.Or(bit)
	}
	if err := cl.WritePacket(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Suback}, PacketID: pk.PacketID, ReasonCodes: codes}); err != nil {
		return err
	}
	if bit := peerBit(protocol.KindHeartbeat); before&bit == 0 && s.subscriptions.Load()&bit != 0 {
		go b.notifyPeer(s) // not in the stack of the connection
	}
	return nil
}
