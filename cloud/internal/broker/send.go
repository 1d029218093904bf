package broker

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// Send hands a message to the agent of a branch, at QoS 0: whether it arrives is for the caller to find out and to try
// again. It fails only for a message that is not valid. It never waits: an agent that does not read loses what comes when
// enough waits for it, until its keep-alive ends the connection.
func (b *Broker) Send(branch string, m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Publish},
		ProtocolVersion: 5, // there is no other: see New
		TopicName:       protocol.Topic(branch, m.Kind()),
		Payload:         payload,
		Properties:      properties(branch, m),
		Mods:            packets.Mods{AllowResponseInfo: true},
	}
	var message bytes.Buffer
	if err := pk.PublishEncode(&message); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	for _, s := range b.sessions.of(branch) {
		if s.subscribed(m.Kind()) && s.takes(message.Len()) && !s.out.send(message.Bytes()) {
			b.unsent.Add(1)
			droppedOut.Inc()
		}
	}
	return nil
}

// properties are the MQTT properties of a message to an agent: the two commands say where their answer belongs, and
// everything says when it is not worth delivering any more. Nothing relies on that expiry (package protocol).
func properties(branch string, m protocol.Message) packets.Properties {
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
		p.ResponseTopic = protocol.Topic(branch, answer)
		p.CorrelationData = []byte(id)
	}
	return p
}
