package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sizes in bytes. The broker rejects larger packets before authentication; the payload limit leaves room for
// the topic and the properties. Only a pass list may be larger: agents accept packets of up to MaxAgentPacket.
const (
	MaxPacket      = 64 << 10
	MaxPayload     = 63 << 10
	MaxPassList    = 640 << 10
	MaxAgentPacket = 641 << 10
)

// maxPayload returns the largest payload of a kind in bytes.
func (k Kind) maxPayload() int {
	if k == KindPassList {
		return MaxPassList
	}
	return MaxPayload
}

// Message is a payload. Validate reports violations of its format; Encode and Decode call it.
type Message interface {
	Kind() Kind
	Validate() error
}

// Errors of Decode; match with errors.Is.
var (
	ErrTooLarge  = errors.New("payload is too large")
	ErrMalformed = errors.New("payload is malformed")
)

// Encode validates a message and writes it as JSON.
func Encode(m Message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Kind(), err)
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.Kind(), err)
	}
	if len(payload) > m.Kind().maxPayload() {
		return nil, fmt.Errorf("encode %s: %d bytes: %w", m.Kind(), len(payload), ErrTooLarge)
	}
	return payload, nil
}

// Decode decodes one message: exactly one JSON object of at most MaxPayload bytes (a pass list: MaxPassList), valid UTF-8, no object with more than
// 64 names or with names that differ in case only, every field of the right type, and Validate satisfied. Unknown fields
// are ignored, so that either side may be updated first.
func Decode[M Message](payload []byte) (M, error) {
	var m M
	if err := decode(payload, m.Kind().maxPayload(), &m); err != nil {
		return *new(M), fmt.Errorf("decode %s: %w", m.Kind(), err)
	}
	if err := m.Validate(); err != nil {
		return *new(M), fmt.Errorf("decode %s: %w: %w", m.Kind(), ErrMalformed, err)
	}
	return m, nil
}

func decode(payload []byte, limit int, into any) error {
	if len(payload) > limit {
		return fmt.Errorf("%d bytes: %w", len(payload), ErrTooLarge)
	}
	// encoding/json silently replaces invalid UTF-8, so that two different ids could become equal.
	if !utf8.Valid(payload) {
		return fmt.Errorf("%w: not UTF-8", ErrMalformed)
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := checkObject(payload); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// checkText checks a text: at most limit bytes, no control characters, and not empty if required.
func checkText(name, s string, limit int, required bool) error {
	if required && s == "" {
		return fmt.Errorf("%s is missing", name)
	}
	if len(s) > limit {
		return fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf("%s has control characters", name)
	}
	return nil
}

// checkRequestID checks the id of a request.
func checkRequestID(id string) error { return checkUUID("requestId", id) }

// checkUUID accepts only the canonical lower-case form of a UUID, because ids are compared as text.
func checkUUID(name, id string) error {
	if len(id) != 36 {
		return fmt.Errorf("%s is not a UUID", name)
	}
	for i, c := range []byte(id) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return fmt.Errorf("%s is not a UUID", name)
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return fmt.Errorf("%s is not a lower-case UUID", name)
			}
		}
	}
	return nil
}

// Clip turns an arbitrary text, such as a driver's error, into a valid detail: no control characters, bounded length, valid
// UTF-8.
func Clip(s string) string { return clip(s, maxDetail) }

func clip(s string, limit int) string {
	return cut(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?")), limit)
}
