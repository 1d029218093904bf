package netsim

import (
	"bytes"
	"testing"

	"github.com/eclipse/paho.golang/packets"
)

// written encodes a packet with the MQTT library.
func written(t *testing.T, p packets.Packet) packet {
	t.Helper()
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPublishIsRead(t *testing.T) {
	t.Parallel()
	expiry, payload := uint32(2), bytes.Repeat([]byte("x"), 300) // a remaining length of two bytes
	for _, publish := range []*packets.Publish{
		{Topic: "yeolda/v1/a/door/ask", Payload: payload, Properties: &packets.Properties{}},
		{Topic: "yeolda/v1/a/door/ask", QoS: 1, PacketID: 513, Payload: payload, Properties: &packets.Properties{}},
		{Topic: "t", QoS: 1, PacketID: 7, Properties: &packets.Properties{MessageExpiry: &expiry, ResponseTopic: string(payload[:200]), CorrelationData: []byte("id")}},
	} {
		p := written(t, publish)
		m, ok := p.publish()
		if !ok || m.topic != publish.Topic || m.id != publish.PacketID || !bytes.Equal(m.payload, publish.Payload) {
			t.Errorf("%+v is read as %+v", publish, m)
		}
		if _, ok := p.acked(); ok {
			t.Error("a PUBLISH was parsed as an acknowledgement")
		}
		for n := 1; n < len(p); n++ { // truncated at any byte
			if m, ok := p[:n].publish(); ok && len(m.payload) >= len(publish.Payload) && len(publish.Payload) > 0 {
				t.Errorf("of %d bytes %d are read as %+v", len(p), n, m)
			}
		}
	}
}

func TestPubackIsRead(t *testing.T) {
	t.Parallel()
	for _, reason := range []byte{0, packets.PubackNotAuthorized} {
		id, ok := written(t, &packets.Puback{PacketID: 513, ReasonCode: reason, Properties: &packets.Properties{}}).acked()
		if !ok || id != 513 {
			t.Errorf("got %d, %v", id, ok)
		}
	}
}
