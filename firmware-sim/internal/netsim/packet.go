package netsim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/eclipse/paho.golang/packets"
)

// maxPacket bounds the remaining length of a packet. It is far above the protocol's limit and protects the memory
// against a faulty peer.
const maxPacket = 1 << 20

// The flags of a PUBLISH in its first byte (MQTT 5, 3.3.1).
const dup, qos = 1 << 3, 3 << 1

// packet is one MQTT control packet as sent.
type packet []byte

// readPacket reads a whole packet: fixed header, remaining length (MQTT 5,
// 1.5.5), body.
func readPacket(r *bufio.Reader) (packet, error) {
	first, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	header := append(make([]byte, 0, 5), first)
	length := 0
	for shift := 0; ; shift += 7 {
		if shift > 21 {
			return nil, errors.New("netsim: remaining length is longer than four bytes")
		}
		b, err := r.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("netsim: read a packet's header:  %w", err)
		}
		header = append(header, b)
		length |= int(b&0x7F) << shift
		if b&0x80 == 0 {
			break
		}
	}
	if length > maxPacket {
		return nil, fmt.Errorf("netsim: packet of %d bytes", length)
	}
	p := make(packet, len(header)+length)
	copy(p, header)
	if _, err := io.ReadFull(r, p[len(header):]); err != nil {
		return nil, fmt.Errorf("netsim: read a packet's body: %w", err)
	}
	return p, nil
}

func (p packet) kind() byte { return p[0] >> 4 }

// message is the content of a PUBLISH.
type message struct {
	topic   string
	id      uint16 // 0: QoS 0
	payload []byte
}

// publish parses the packet if it is a PUBLISH (MQTT 5, 3.3).
func (p packet) publish() (m message, ok bool) {
	if p.kind() != packets.PUBLISH {
		return message{}, false
	}
	rest := p.body()
	topic, ok := rest.take(int(rest.number()))
	if !ok {
		return message{}, false
	}
	m.topic = string(topic)
	if p[0]&qos != 0 {
		m.id = rest.number()
	}
	if _, ok = rest.take(rest.length()); ok { // the properties
		m.payload = rest
	}
	return m, ok
}

// acked returns the packet identifier if the packet is a PUBACK.
func (p packet) acked() (id uint16, ok bool) {
	if p.kind() != packets.PUBACK {
		return 0, false
	}
	rest := p.body()
	return rest.number(), true
}

// body returns the bytes after the fixed header.
func (p packet) body() fields {
	rest := fields(p[1:])
	rest.length()
	return rest
}

// fields is the unread rest of a packet. Missing fields read as 0.
type fields []byte

// take reads n bytes, if there are as many.
func (f *fields) take(n int) (taken []byte, ok bool) {
	if n > len(*f) {
		return nil, false
	}
	taken, *f = (*f)[:n], (*f)[n:]
	return taken, true
}

// number reads a two byte integer (MQTT 5, 1.5.2).
func (f *fields) number() uint16 {
	b, ok := f.take(2)
	if !ok {
		return 0
	}
	return binary.BigEndian.Uint16(b)
}

// length reads a variable byte integer of at most four bytes (MQTT 5, 1.5.5), which has the format of encoding/binary.
func (f *fields) length() int {
	n, size := binary.Uvarint(*f)
	if size <= 0 || size > 4 {
		return 0
	}
	*f = (*f)[size:]
	return int(n)
}

// again returns the packet as a broker delivers it a second time: above QoS 0 with the DUP flag (MQTT 5, 3.3.1.1).
func (p packet) again() packet {
	second := bytes.Clone(p)
	if second[0]&qos != 0 {
		second[0] |= dup
	}
	return second
}
