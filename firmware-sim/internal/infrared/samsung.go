package infrared

import (
	"fmt"
	"math/bits"
)

// Samsung's protocol: a lead, then two sections of seven bytes for a setting or
// three for switching on and off, each with a checksum of its own; the lowest
// bit of a byte comes first. All times in µs.
const (
	samsungLeadMark, samsungLeadSpace       = 690, 17_844
	samsungSectionMark, samsungSectionSpace = 3086, 8864
	samsungMark, samsungOne, samsungZero    = 586, 1432, 436
	samsungEndSpace                         = 2886

	samsungSectionBytes   = 7
	samsungSectionLength  = 2 + 2*8*samsungSectionBytes + 2 // header, bits, end
	samsungMinTemperature = 16                              // °C at nibble 0
)

var (
	samsungModes = map[byte]string{0: "auto", 1: "cool", 2: "dry", 3: "fan", 4: "heat"}
	samsungFans  = map[byte]string{0: "auto", 2: "low", 4: "mid", 5: "high", 6: "auto", 7: "max"}
	// The louvre's three bits: 2 swings up and down, 7 stands.
	samsungSwings = map[byte]string{2: "on", 7: "off"}
)

type samsungSection [samsungSectionBytes]byte

func decodeSamsung(frame []uint32) (Message, bool) {
	frame = trimGap(frame)
	sections := (len(frame) - 1) / samsungSectionLength
	if len(frame) != 1+sections*samsungSectionLength || sections != 2 && sections != 3 {
		return Message{}, false
	}
	if !near(frame[0], samsungLeadMark) || !near(frame[1], samsungLeadSpace) {
		return Message{}, false
	}
	var read []samsungSection
	for i := range sections {
		section, ok := samsungRead(frame[2+i*samsungSectionLength:])
		if !ok || section.checksum() != section.stored() {
			return Message{}, false
		}
		read = append(read, section)
	}
	return samsungMessage(read)
}

// samsungRead reads the section at the start of frame. The space after the last
// section's end mark is the frame's gap and may be missing.
func samsungRead(frame []uint32) (s samsungSection, ok bool) {
	if !near(frame[0], samsungSectionMark) || !near(frame[1], samsungSectionSpace) {
		return s, false
	}
	bs, ok := pulses(frame[2:], 8*samsungSectionBytes, samsungMark, samsungOne, samsungZero)
	if !ok {
		return s, false
	}
	end := frame[2+2*len(bs):]
	if !near(end[0], samsungMark) || len(end) > 1 && !near(end[1], samsungEndSpace) {
		return s, false
	}
	for i, b := range bs {
		s[i/8] |= b << (i % 8)
	}
	return s, true
}

// checksum counts the one-bits outside the checksum's own two nibbles.
func (s samsungSection) checksum() byte {
	ones := bits.OnesCount8(s[0]) + bits.OnesCount8(s[1]&0x0F) + bits.OnesCount8(s[2]&0xF0)
	for _, b := range s[3:] {
		ones += bits.OnesCount8(b)
	}
	return ^byte(ones)
}

func (s samsungSection) stored() byte { return s[1]>>4 | s[2]<<4 }

func (s samsungSection) on() bool { return s[6]>>4&3 == 3 }

func samsungMessage(sections []samsungSection) (Message, bool) {
	first, last := sections[0], sections[len(sections)-1]
	m := Message{Protocol: "Samsung"}
	for _, s := range sections {
		m.Code += fmt.Sprintf("%X", s[:])
	}
	if !first.on() || !last.on() {
		m.apply = func(s *State) { s.Power = false }
		return m, true
	}
	mode, okMode := samsungModes[last[5]>>4&7]
	fan, okFan := samsungFans[last[5]>>1&7]
	if !okMode || !okFan {
		return Message{}, false
	}
	m.apply = func(s *State) {
		s.Power, s.Mode, s.Fan = true, mode, fan
		if mode != "dry" && mode != "fan" {
			s.Temperature = int(last[4]>>4) + samsungMinTemperature
		}
		if swing, ok := samsungSwings[last[2]>>4&7]; ok {
			s.Direction = swing
		}
	}
	return m, true
}
