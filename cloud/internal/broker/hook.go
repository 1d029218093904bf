package broker

import (
	"bytes"
	"context"
	"errors"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// maxKeepAlive is the maximum keep-alive of an agent in seconds. A dead connection is detected after 1.5 times that.
const maxKeepAlive = 60

var errNoAgent = errors.New("broker: unknown agent")

// hook implements access control for mochi.
type hook struct {
	mqtt.HookBase
	*Broker
}

func (*hook) ID() string { return "yeolda" }

func (*hook) Provides(b byte) bool {
	switch b {
	case mqtt.OnConnect, mqtt.OnConnectAuthenticate, mqtt.OnSessionEstablish,
		mqtt.OnPacketRead, mqtt.OnPacketEncode, mqtt.OnWill:
		return true
	}
	return false
}

// OnConnect overrides properties of a CONNECT that would harm this or other agents.
func (*hook) OnConnect(cl *mqtt.Client, _ packets.Packet) error {
	// A Receive Maximum enables mochi's send quota, which leaks and deadlocks. Nothing is sent at QoS 1.
	cl.Properties.Props.ReceiveMaximum = 0
	cl.State.Inflight.ResetSendQuota(0)
	cl.Properties.Will.WillDelayInterval = 0
	if cl.State.Keepalive == 0 || cl.State.Keepalive > maxKeepAlive {
		cl.State.Keepalive = maxKeepAlive
		cl.State.ServerKeepalive = true // tells the client [MQTT-3.1.2-21]
	}
	return nil
}

// OnConnectAuthenticate binds the connection to its credential. The user name must equal the client id; otherwise one agent
// could take over another's connection.
func (h *hook) OnConnectAuthenticate(cl *mqtt.Client, pk packets.Packet) bool {
	c := unwrap(cl.Net.Conn)
	if c == nil {
		return false
	}
	username := string(pk.Connect.Username)
	if username == PeerUsername && h.peers.admits(pk.Connect.Password) && !pk.Connect.WillFlag {
		h.admission.admit(c, h.sessions.admitPeer(cl))
		return true
	}
	agent, known, err := h.authenticate(cl, username, pk)
	switch {
	case errors.Is(err, errNoAgent), errors.Is(err, errNoAnswer):
		refusedTotal.Inc()
		h.log.Warn("mqtt: agent refused", "username", username, "remote", cl.Net.Remote)
		return false
	case err != nil:
		h.log.Error("mqtt: credential not checked", "username", username, "error", err)
		// No CONNACK: a rejected password would make the agent back off for long.
		cl.Stop(packets.ErrServerUnavailable)
		return false
	}
	h.admission.admit(c, h.sessions.admit(cl, agent, known, willOf(pk)))
	return true
}

// willOf returns the connection that the will of a CONNECT packet names; zero if there is none.
func willOf(pk packets.Packet) connID {
	status, err := protocol.Decode[protocol.Status](pk.Connect.WillPayload)
	if err != nil {
		return connID{}
	}
	return connID{status.BootID, status.Connection}
}

func (h *hook) authenticate(cl *mqtt.Client, username string, pk packets.Packet) (agent protocol.Agent, known credential, err error) {
	agent.Username = username
	if !protocol.ValidUsername(username) || username != pk.Connect.ClientIdentifier {
		return agent, known, errNoAgent
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	if known, err = h.credentials.find(ctx, username); err != nil {
		return agent, known, err
	}
	if err := h.prove(cl, pk, known); err != nil {
		return agent, known, err
	}
	if !protocol.ValidBranch(known.branch) {
		return agent, known, errNoAgent
	}
	agent.Branch = known.branch
	if topic := pk.Connect.WillTopic; pk.Connect.WillFlag && topic != protocol.Topic(agent.Branch, protocol.KindStatus) && topic != agent.Topic(protocol.KindStatus) {
		return agent, known, errNoAgent
	}
	return agent, known, nil
}

// OnSessionEstablish runs before mochi ends an earlier session of the same client id: at a takeover the agent stays online,
// and the earlier session is known to be replaced.
func (h *hook) OnSessionEstablish(cl *mqtt.Client, pk packets.Packet) {
	s := sessionOf(cl.Net.Conn)
	if s == nil {
		return
	}
	if s.peer {
		h.peers.add(s)
		h.log.Info("mqtt: peer connected", "client", cl.ID, "remote", cl.Net.Remote)
		return
	}
	displaced := h.sessions.begin(s, pk.Connect.Clean)
	h.log.Info("mqtt: agent connected", "branch", s.branch, "username", s.username, "remote", cl.Net.Remote)
	// An agent that reconnects over a half-open connection has the same boot id.
	if displaced != nil && displaced.bootID != s.bootID {
		takeoversTotal.Inc()
		h.log.Warn("mqtt: agent taken over by another machine", "branch", s.branch, "username", s.username,
			"remote", cl.Net.Remote, "displaced", displaced.client.Net.Remote)
		h.inbox.put(delivery{from: s.agentPeer(), kind: kindTakeover})
	}
}

// OnPacketEncode announces in the CONNACK the limits that mochi and this hook enforce [MQTT-3.2.2.3].
func (*hook) OnPacketEncode(cl *mqtt.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Connack {
		p := &pk.Properties
		p.MaximumPacketSize = protocol.MaxPacket
		p.WildcardSubAvailable, p.WildcardSubAvailableFlag = 0, true
		if s := sessionOf(cl.Net.Conn); s != nil && s.peer {
			p.WildcardSubAvailable = 1
		}
		p.SharedSubAvailable, p.SharedSubAvailableFlag = 0, true
		if pk.ReasonCode == packets.CodeSuccess.Code {
			p.AuthenticationMethod = cl.Properties.Props.AuthenticationMethod // [MQTT-4.12.0-5]
		}
	}
	return pk
}

// OnPacketRead handles every PUBLISH, SUBSCRIBE and UNSUBSCRIBE in place of mochi. Only peers may receive an agent's messages,
// and nothing needs to be retained, because no agent may read a status. Send
// finds the subscriptions in the session. mochi's topic tree would need about 8 KiB for each agent, and its call depth would
// double the stack of the connection's goroutine to 32 KiB for the life of the connection.
func (h *hook) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	s := sessionOf(cl.Net.Conn)
	if s == nil {
		return pk, nil
	}
	// mochi disconnects a client that sends an invalid packet.
	var err error
	switch pk.FixedHeader.Type {
	case packets.Publish:
		if pk.PublishValidate(0) != packets.CodeSuccess {
			return pk, nil
		}
		err = h.publish(cl, s, &pk)
	case packets.Subscribe:
		if pk.SubscribeValidate() != packets.CodeSuccess {
			return pk, nil
		}
		if s.peer {
			err = h.subscribePeer(cl, s, &pk)
			break
		}
		err = subscribe(cl, s, &pk)
	case packets.Unsubscribe:
		if pk.UnsubscribeValidate() != packets.CodeSuccess {
			return pk, nil
		}
		err = unsubscribe(cl, s, &pk)
	default:
		return pk, nil
	}
	if err != nil {
		return pk, packets.ErrRejectPacket
	}
	// mochi receives an acknowledgement of a message it never sent instead, which it ignores.
	return packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, ProtocolVersion: pk.ProtocolVersion}, nil
}

func (h *hook) publish(cl *mqtt.Client, s *session, pk *packets.Packet) error {
	if pk.FixedHeader.Qos > 1 { // above the announced maximum [MQTT-3.2.2-11]
		_ = h.server.DisconnectClient(cl, packets.ErrQosNotSupported)
		return packets.ErrQosNotSupported
	}
	if s.peer {
		return h.publishFromPeer(s, pk)
	}
	s.hear()
	code := packets.CodeSuccess
	_, kind, ok := protocol.ParseTopic(pk.TopicName)
	switch {
	case !ok || !s.agent().MayPublish(pk.TopicName) || pk.FixedHeader.Retain && !kind.Retained():
		code = packets.ErrNotAuthorized
	case kind != protocol.KindHeartbeat || asksForTime(pk.Payload): // another heartbeat only shows that the agent is running
		h.inbox.put(delivery{from: s.agentPeer(), kind: kind, payload: pk.Payload})
	}
	if code == packets.CodeSuccess {
		switch kind {
		case protocol.KindClimateResult, protocol.KindSensorsReadings:
			h.publishToPeers(pk.TopicName, kind, pk.Payload)
		}
		if kind == protocol.KindStatus || !s.notified.Load() {
			h.notifyPeers(s, true, true)
		}
	}
	if pk.FixedHeader.Qos == 0 {
		return nil
	}
	return s.out.acknowledge(pk.PacketID, code)
}

// asksForTime reports whether a heartbeat may have a nonce.
func asksForTime(heartbeat []byte) bool { return bytes.Contains(heartbeat, []byte(`"nonce"`)) }

// subscribe answers with a SUBACK (MQTT 5.0, 3.9).
func subscribe(cl *mqtt.Client, s *session, pk *packets.Packet) error {
	codes := make([]byte, len(pk.Filters))
	for i, f := range pk.Filters {
		switch {
		case !mqtt.IsValidFilter(f.Filter, false):
			codes[i] = packets.ErrTopicFilterInvalid.Code
		case !s.agent().MaySubscribe(f.Filter):
			codes[i] = packets.ErrNotAuthorized.Code
		default:
			s.subscribe(f.Filter, true)
			codes[i] = min(f.Qos, 1) // [MQTT-3.8.4-7]
		}
	}
	return cl.WritePacket(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Suback}, PacketID: pk.PacketID, ReasonCodes: codes})
}

// unsubscribe answers with an UNSUBACK (MQTT 5.0, 3.11).
func unsubscribe(cl *mqtt.Client, s *session, pk *packets.Packet) error {
	codes := make([]byte, len(pk.Filters))
	for i, f := range pk.Filters {
		if !s.agent().MaySubscribe(f.Filter) || !s.subscribe(f.Filter, false) {
			codes[i] = packets.CodeNoSubscriptionExisted.Code // [MQTT-3.11.3-2]
		}
	}
	return cl.WritePacket(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Unsuback}, PacketID: pk.PacketID, ReasonCodes: codes})
}

// OnWill handles the will like a publish; mochi receives one without a topic, which it drops. The will of a connection that
// was taken over is ignored, because its agent is still connected.
func (h *hook) OnWill(cl *mqtt.Client, will mqtt.Will) (mqtt.Will, error) {
	if s := sessionOf(cl.Net.Conn); s != nil && !h.sessions.replaced(s) {
		h.inbox.put(delivery{from: s.agentPeer(), kind: protocol.KindStatus, payload: will.Payload})
	}
	return mqtt.Will{}, nil
}
