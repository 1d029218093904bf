package ir

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// defaultCarrier is the carrier of household remotes, in Hz. Formats without a carrier field imply it.
const defaultCarrier = 38_000

// A Broadlink packet holds durations in ticks of 8192/269 µs = 30.45 µs. (The often cited 32.84 µs is the inverse: 0.03284
// ticks per µs.)
const tickNumerator, tickDenominator = 8192, 269

// Broadlink decodes a packet as Broadlink remotes record it:
//
//	0x26 | repeats | length, 2 bytes little-endian | durations | gap 00 0D 05 | zeros to the end of a block
//
// A duration is one byte, or 00 and two bytes big-endian. Published packets often violate the format, so the decoder also
// accepts a last duration that exceeds the declared length or is truncated.
func Broadlink(packet []byte) (Signal, error) {
	if len(packet) < 4 {
		return Signal{}, errors.New("broadlink: packet is too short")
	}
	if packet[0] != 0x26 {
		return Signal{}, fmt.Errorf("broadlink: packet type 0x%02x is not infrared", packet[0])
	}
	end := min(4+(int(packet[2])|int(packet[3])<<8), len(packet))
	var durations []uint32
	for i := 4; i < end; {
		ticks := uint32(packet[i])
		i++
		if ticks == 0 {
			if i+2 > len(packet) {
				break
			}
			ticks = uint32(packet[i])<<8 | uint32(packet[i+1]) //nolint:gosec // the check above leaves two bytes
			i += 2
		}
		durations = append(durations, (ticks*tickNumerator+tickDenominator/2)/tickDenominator)
	}
	s, err := newSignal(defaultCarrier, durations)
	if err != nil {
		return Signal{}, fmt.Errorf("broadlink: %w", err)
	}
	return s, nil
}

// broadlinkBase64 decodes base64 as published: with line breaks, wrong padding or a surplus character.
func broadlinkBase64(text string) (Signal, error) {
	text = strings.Join(strings.Fields(text), "")
	text, _, _ = strings.Cut(text, "=")
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	packet, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return Signal{}, fmt.Errorf("broadlink: %w", err)
	}
	return Broadlink(packet)
}

func broadlinkHex(text string) (Signal, error) {
	packet, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return Signal{}, fmt.Errorf("broadlink: %w", err)
	}
	return Broadlink(packet)
}
