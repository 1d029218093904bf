package infrared

import (
	"fmt"
	"slices"
)

// LG's 28-bit protocol. From the top: signature 8 bits, power 2, unused 3,
// mode 3, temperature 4, fan 4, checksum 4 (the sum of the four nibbles above
// it, modulo 16).
const (
	lgBits      = 28
	lgSignature = 0x88

	lgPowerOff    = 0x88C0051
	lgLight       = 0x88C00A6 // display light; no setting
	lgSwingToggle = 0x8810001
	lgSwingOn     = 0x8813149
	lgSwingOff    = 0x881315A

	lgMinTemperature = 16 // °C
	lgMaxTemperature = 30 // °C
	lgTemperature    = 15 // °C at nibble 0
)

// lgTiming is one of the two waveforms of the protocol, in µs.
type lgTiming struct{ headerMark, headerSpace, mark, one, zero uint32 }

var (
	lg1 = lgTiming{8500, 4250, 550, 1600, 550}
	lg2 = lgTiming{3200, 9900, 480, 1600, 550}
)

// lgGap is the pause after a frame, in µs.
const lgGap = 39_750

var (
	lgModes = map[uint32]string{0: "cool", 1: "dry", 2: "fan", 3: "auto", 4: "heat"}
	lgFans  = map[uint32]string{0: "lowest", 1: "low", 9: "low", 2: "mid", 10: "high", 4: "max", 5: "auto"}
)

func decodeLG(frame []uint32) (Message, bool) {
	frame = trimGap(frame)
	if len(frame) != 2+2*lgBits+1 {
		return Message{}, false
	}
	for _, t := range []lgTiming{lg1, lg2} {
		if !near(frame[0], t.headerMark) || !near(frame[1], t.headerSpace) || !near(frame[len(frame)-1], t.mark) {
			continue
		}
		bs, ok := pulses(frame[2:], lgBits, t.mark, t.one, t.zero)
		if !ok {
			continue
		}
		var word uint32
		for _, b := range bs {
			word = word<<1 | uint32(b)
		}
		return lgMessage(word)
	}
	return Message{}, false
}

func lgMessage(word uint32) (Message, bool) {
	if word>>20 != lgSignature || word&0xF != lgChecksum(word) {
		return Message{}, false
	}
	m := Message{Protocol: "LG", Code: fmt.Sprintf("%07X", word)}
	switch word {
	case lgPowerOff:
		m.apply = func(s *State) { s.Power = false }
		return m, true
	case lgLight:
		return m, true
	case lgSwingOn:
		m.apply = func(s *State) { s.Direction = "on" }
		return m, true
	case lgSwingOff:
		m.apply = func(s *State) { s.Direction = "off" }
		return m, true
	case lgSwingToggle:
		m.apply = func(s *State) {
			if s.Direction == "on" {
				s.Direction = "off"
			} else {
				s.Direction = "on"
			}
		}
		return m, true
	}
	// The nibble below the signature tells settings (power on, 0) from the
	// other commands, of which only those above are known. The lowest of the
	// three unused bits is set by some remotes while the unit already runs.
	if word>>16&0xF != 0 {
		return Message{}, false
	}
	mode, okMode := lgModes[word>>12&0x7]
	fan, okFan := lgFans[word>>4&0xF]
	temperature := int(word>>8&0xF) + lgTemperature
	if !okMode || !okFan {
		return Message{}, false
	}
	m.apply = func(s *State) {
		s.Power, s.Mode, s.Fan = true, mode, fan
		// Dry and fan frames carry whatever the remote's register held.
		if mode != "dry" && mode != "fan" && temperature >= lgMinTemperature {
			s.Temperature = temperature
		}
	}
	return m, true
}

// lgChecksum is the sum of the four nibbles above the checksum, modulo 16.
func lgChecksum(word uint32) uint32 {
	return (word>>16 + word>>12 + word>>8 + word>>4) & 0xF
}

// EncodeLG gives the frames (LG2 waveform, µs, mark first, with pauses between
// but not after them) a remote sends to bring a unit into state s: the setting,
// then the louvre where s names one. The error names what LG has no code for.
func EncodeLG(s State) ([]uint32, error) {
	if !s.Power {
		return lgFrame(lgPowerOff), nil
	}
	mode, ok := lookup(lgModes, s.Mode)
	if !ok {
		return nil, fmt.Errorf("infrared: LG has no mode %q", s.Mode)
	}
	fan, ok := lookup(lgFans, s.Fan)
	if !ok {
		return nil, fmt.Errorf("infrared: LG has no fan speed %q", s.Fan)
	}
	if s.Temperature < lgMinTemperature || s.Temperature > lgMaxTemperature {
		return nil, fmt.Errorf("infrared: LG has no set point of %d °C", s.Temperature)
	}
	word := uint32(lgSignature)<<20 | mode<<12 | uint32(s.Temperature-lgTemperature)<<8 | fan<<4
	train := lgFrame(word | lgChecksum(word))
	switch s.Direction {
	case "":
		return train, nil
	case "on":
		return append(append(train, lgGap), lgFrame(lgSwingOn)...), nil
	case "off":
		return append(append(train, lgGap), lgFrame(lgSwingOff)...), nil
	}
	return nil, fmt.Errorf("infrared: LG has no direction %q", s.Direction)
}

func lgFrame(word uint32) []uint32 {
	frame := []uint32{lg2.headerMark, lg2.headerSpace}
	for i := lgBits - 1; i >= 0; i-- {
		space := lg2.zero
		if word>>i&1 == 1 {
			space = lg2.one
		}
		frame = append(frame, lg2.mark, space)
	}
	return append(frame, lg2.mark)
}

// lookup gives the lowest key of a value, so that what is sent does not depend
// on the order of a map.
func lookup(m map[uint32]string, value string) (uint32, bool) {
	var keys []uint32
	for k, v := range m {
		if v == value {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 0, false
	}
	return slices.Min(keys), true
}
