package ir

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// defaultCarrier is what household remotes use, and what formats mean that do not say.
const defaultCarrier = 38_000

// A Broadlink packet holds durations in ticks of 8192/269 µs = 30.45 µs. (32.84 µs, which is often read, is the inverse:
// 0.03284 ticks to a µs.)
const tickNumerator, tickDenominator = 8192, 269

// Broadlink decodes a packet as Broadlink's remotes learn them:
//
//	0x26 | repeats | length, 2 bytes little-endian | durations | gap 00 0D 05 | zeros to the end of a block
//
// A duration is one byte, or 00 and two bytes big-endian. Published packets break about every rule of this, so what can
// be understood is: a last duration that runs past the declared length, or that is cut off.
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

// broadlinkBase64 reads a packet in base64 as it is published: with line breaks, wrong padding, or a letter too many.
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
