package line

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/eclipse/paho.golang/packets"
)

// maxPacket bounds the remaining length of a packet. The contract's own limit
// is far below; this keeps a wrong peer from taking the memory.
const maxPacket = 1 << 20

// packet is one MQTT control packet as it was on the wire.
type packet []byte

// readPacket reads a whole packet: fixed header, remaining length (MQTT 5,
// 1.5.5), body.
func readPacket(r *bufio.Reader) (packet, error) {
	first, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	raw := packet{first}
	length := 0
	for shift := 0; ; shift += 7 {
		if shift > 21 {
			return nil, errors.New("line: remaining length over four bytes")
		}
		b, err := r.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("line: in a packet's header: %w", err)
		}
		raw = append(raw, b)
		length |= int(b&0x7F) << shift
		if b&0x80 == 0 {
			break
		}
	}
	if length > maxPacket {
		return nil, fmt.Errorf("line: packet of %d bytes", length)
	}
	header := len(raw)
	raw = append(raw, make([]byte, length)...)
	if _, err := io.ReadFull(r, raw[header:]); err != nil {
		return nil, fmt.Errorf("line: in a packet's body: %w", err)
	}
	return raw, nil
}

func (p packet) kind() byte { return p[0] >> 4 }

// publish decodes the packet if it is a PUBLISH.
func (p packet) publish() (*packets.Publish, bool) {
	if p.kind() != packets.PUBLISH {
		return nil, false
	}
	cp, err := packets.ReadPacket(bytes.NewReader(p))
	if err != nil {
		return nil, false
	}
	return cp.Content.(*packets.Publish), true
}

// acked gives the packet identifier if the packet is a PUBACK.
func (p packet) acked() (id uint16, ok bool) {
	if p.kind() != packets.PUBACK {
		return 0, false
	}
	cp, err := packets.ReadPacket(bytes.NewReader(p))
	if err != nil {
		return 0, false
	}
	return cp.PacketID(), true
}

// again is the packet as a broker delivers it a second time: above QoS 0 with
// the DUP flag (MQTT 5, 3.3.1.1).
func (p packet) again() packet {
	const dup, qos = 1 << 3, 3 << 1
	second := bytes.Clone(p)
	if second[0]&qos != 0 {
		second[0] |= dup
	}
	return second
}
