package light

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// version is the MQTT version of every packet.
const version = 5

// receiveMaximum is that of the real agent.
const receiveMaximum = 64

// pingPacket is a PINGREQ. The real agent's client sends one after the CONNACK, and none while there are heartbeats.
var pingPacket = []byte{packets.Pingreq << 4, 0}

// connectPacket returns the CONNECT packet of an agent, with the will that reports it as offline.
func (a *agent) connectPacket() ([]byte, error) {
	will, err := protocol.Encode(protocol.Status{State: protocol.Offline, BootID: a.bootID, Connection: a.connection})
	if err != nil {
		return nil, err
	}
	name := a.identity().Username
	return encode(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Connect},
		Connect: packets.ConnectParams{
			ProtocolName: []byte("MQTT"), Clean: true, Keepalive: uint16(protocol.KeepAlive / time.Second),
			ClientIdentifier: name, UsernameFlag: true, Username: []byte(name), PasswordFlag: true, Password: []byte(a.password),
			WillFlag: true, WillTopic: protocol.Topic(a.branch, protocol.KindStatus), WillPayload: will,
			WillQos: protocol.KindStatus.QoS(), WillRetain: true,
		},
		Properties: packets.Properties{MaximumPacketSize: protocol.MaxAgentPacket, ReceiveMaximum: receiveMaximum, RequestProblemInfoFlag: true},
	}, (*packets.Packet).ConnectEncode)
}

// subscribePacket returns the SUBSCRIBE packet for the topics of a credential, or of the whole branch.
func subscribePacket(id uint16, agent protocol.Agent) ([]byte, error) {
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, PacketID: id}
	for kind := range protocol.Kinds() {
		if kind.FromCloud() && (!kind.OwnTopic() || agent.Username != "") {
			pk.Filters = append(pk.Filters, packets.Subscription{Filter: agent.Topic(kind), Qos: kind.QoS()})
		}
	}
	return encode(pk, (*packets.Packet).SubscribeEncode)
}

// publishPacket returns a PUBLISH packet with a message of the agent.
func publishPacket(id uint16, agent protocol.Agent, kind protocol.Kind, payload []byte) ([]byte, error) {
	return encode(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: kind.QoS(), Retain: kind.Retained()},
		PacketID:    id, TopicName: agent.Topic(kind), Payload: payload,
	}, (*packets.Packet).PublishEncode)
}

func encode(pk packets.Packet, write func(*packets.Packet, *bytes.Buffer) error) ([]byte, error) {
	pk.ProtocolVersion = version
	var out bytes.Buffer
	if err := write(&pk, &out); err != nil {
		return nil, fmt.Errorf("light: encode %s: %w", packets.PacketNames[pk.FixedHeader.Type], err)
	}
	return out.Bytes(), nil
}

// nextPacket splits the first packet off received bytes: its type with flags, its body and what follows. ok is false if the
// packet is incomplete.
func nextPacket(received []byte) (header byte, body, rest []byte, ok bool, err error) {
	if len(received) < 2 {
		return 0, nil, received, false, nil
	}
	length, n := binary.Uvarint(received[1:min(len(received), 5)]) // the remaining length has at most four bytes (MQTT 5, 1.5.5)
	switch {
	case n > 0 && length > protocol.MaxAgentPacket, n < 0, n == 0 && len(received) >= 5:
		return 0, nil, nil, false, fmt.Errorf("light: packet of %d bytes", length)
	case n == 0 || uint64(len(received)-1-n) < length:
		return 0, nil, received, false, nil
	}
	body = received[1+n : 1+n+int(length)]
	return received[0], body, received[1+n+len(body):], true, nil
}

// decode decodes the body of a packet.
func decode(header byte, body []byte) (packets.Packet, error) {
	pk := packets.Packet{ProtocolVersion: version, FixedHeader: packets.FixedHeader{Remaining: len(body)}}
	if err := pk.FixedHeader.Decode(header); err != nil {
		return pk, err
	}
	var err error
	switch pk.FixedHeader.Type {
	case packets.Connack:
		err = pk.ConnackDecode(body)
	case packets.Suback:
		err = pk.SubackDecode(body)
	case packets.Puback:
		err = pk.PubackDecode(body)
	case packets.Publish:
		err = pk.PublishDecode(body)
	case packets.Disconnect:
		err = pk.DisconnectDecode(body)
	}
	if err != nil {
		return pk, fmt.Errorf("light: decode %s: %w", packets.PacketNames[pk.FixedHeader.Type], err)
	}
	return pk, nil
}
