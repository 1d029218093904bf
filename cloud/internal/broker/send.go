package broker

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// Send sends a message to an agent at QoS 0, without confirmation of delivery. It fails only for an invalid message. It
// never blocks: if an agent does not read, further messages are dropped until its keep-alive ends the connection.
func (b *Broker) Send(to protocol.Peer, m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return fmt.Errorf("broker: send to %s: %w", to.Branch, err)
	}
	return b.deliver(to, m.Kind(), payload, func(topic string) packets.Properties { return properties(topic, m) })
}

// deliver sends a message to the sessions of an agent, each on the topic that it has subscribed to.
func (b *Broker) deliver(to protocol.Peer, kind protocol.Kind, payload []byte, properties func(topic string) packets.Properties) error {
	for _, s := range b.sessions.of(to) {
		topic := s.topic(kind)
		if topic == "" {
			continue
		}
		message, err := encode(topic, payload, properties(topic))
		if err != nil {
			return err
		}
		if s.takes(len(message)) && !s.out.send(message) {
			b.unsent.Add(1)
			droppedOut.Inc()
		}
	}
	return nil
}

// encode returns a PUBLISH packet.
func encode(topic string, payload []byte, p packets.Properties) ([]byte, error) {
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Publish},
		ProtocolVersion: 5, // there is no other: see New
		TopicName:       topic,
		Payload:         payload,
		Properties:      p,
		Mods:            packets.Mods{AllowResponseInfo: true},
	}
	var message bytes.Buffer
	if err := pk.PublishEncode(&message); err != nil {
		return nil, fmt.Errorf("broker: encode message for %s: %w", topic, err)
	}
	return message.Bytes(), nil
}

// properties returns the MQTT properties of a message to an agent: a response topic for the two commands, and an expiry for
// every message. Correctness does not depend on that expiry (package protocol).
func properties(topic string, m protocol.Message) packets.Properties {
	life, answer, id := protocol.ClaimLimit, protocol.Kind(""), ""
	switch m := m.(type) {
	case protocol.Grant, protocol.Deny:
		life = protocol.GrantAge
	case protocol.ClimateCommand:
		life, answer, id = protocol.CommandTTL, protocol.KindClimateResult, m.RequestID
	case protocol.SensorsRead:
		life, answer, id = protocol.CommandTTL, protocol.KindSensorsReadings, m.RequestID
	}
	p := packets.Properties{MessageExpiryInterval: uint32((life + time.Second - 1) / time.Second)}
	if answer != "" {
		agent, _, _ := protocol.ParseAgentTopic(topic) // the answer uses topics of the same form
		p.ResponseTopic = agent.Topic(answer)
		p.CorrelationData = []byte(id)
	}
	return p
}
