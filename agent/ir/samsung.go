package ir

import (
	"fmt"
	"math/bits"
)

// Samsung's frames: a lead, then sections of seven bytes, least significant bit first. A setting has two sections; a frame
// that switches the unit on or off has a third section in the middle. A section is
//
//	byte 0 number | 1 low nibble fixed, high checksum | 2 low nibble checksum, high louvre | 3 | 4 high nibble temperature - 16 |
//	5 bits 1-3 fan, 4-6 mode | 6 bits 4-5 power
//
// where the last section holds the setting. All times are in µs.
const (
	samsungLeadMark, samsungLeadSpace       = 690, 17_844
	samsungSectionMark, samsungSectionSpace = 3086, 8864
	samsungMark, samsungOne, samsungZero    = 586, 1432, 436
	samsungEndSpace                         = 2886

	samsungBytes         = 7
	samsungSectionLength = 2 + 2*8*samsungBytes + 2 // header, bits, end

	samsungMinTemperature, samsungMaxTemperature = 16, 30

	samsungOn, samsungOff = 0xF0, 0xC0 // byte 6
)

var (
	samsungModes = map[uint32]string{0: "auto", 1: "cool", 2: "dry", 3: "fan", 4: "heat"}
	// The automatic fan is 6 in mode auto and 0 in all other modes.
	samsungFans   = map[uint32]string{0: "auto", 6: "auto", 2: "low", 4: "mid", 5: "high", 7: "max"}
	samsungSwings = map[uint32]string{2: "on", 7: "off"}
)

type samsungSection [samsungBytes]byte

// Samsung returns the code set of Samsung's air conditioners. Each setting also switches the unit on.
func Samsung() *CodeSet {
	fans := []speed{{"low", "low"}, {"mid", "mid"}, {"high", "high"}, {"auto", "auto"}}
	auto := []speed{{"auto", "auto"}}
	return remote{
		modes:  []mode{{"cool", true, fans}, {"heat", true, fans}, {"auto", true, auto}, {"dry", true, auto}, {"fan", false, fans[:3]}},
		encode: encodeSamsung,
	}.codeSet()
}

func encodeSamsung(s Setting) (Code, error) {
	first, middle := samsungSection{0x02, 0x02, 0x00, 0, 0, 0, samsungOn}, samsungSection{0x01, 0x02, 0x00, 0, 0, 0, 0}
	last := samsungSection{0x01, 0x02, 0xF0, 0x71, 8 << 4, 1<<4 | 1, samsungOn}
	if !s.Power {
		first[6], last[6] = samsungOff, samsungOff
		return Code{samsungSignal(first, middle, last)}, nil
	}
	mode, okMode := word(samsungModes, s.Mode)
	fan, okFan := word(samsungFans, s.Fan)
	swing, okSwing := word(samsungSwings, s.Swing)
	if !okMode || !okFan || !okSwing || s.Celsius < samsungMinTemperature || s.Celsius > samsungMaxTemperature {
		return nil, fmt.Errorf("samsung has no frame for %+v", s)
	}
	if s.Mode == "auto" {
		fan = 6
	}
	last[2] = 1<<7 | byte(swing)<<4
	last[4] = byte(s.Celsius-samsungMinTemperature) << 4
	last[5] = byte(mode)<<4 | byte(fan)<<1 | 1
	return Code{samsungSignal(first, middle, last)}, nil
}

func samsungSignal(sections ...samsungSection) Signal {
	durations := []uint32{samsungLeadMark, samsungLeadSpace}
	for _, s := range sections {
		sum := s.checksum()
		s[1] |= sum << 4
		s[2] |= sum >> 4
		durations = append(durations, samsungSectionMark, samsungSectionSpace)
		for i := range 8 * samsungBytes {
			space := uint32(samsungZero)
			if s[i/8]>>(i%8)&1 == 1 {
				space = samsungOne
			}
			durations = append(durations, samsungMark, space)
		}
		durations = append(durations, samsungMark, samsungEndSpace)
	}
	return Signal{CarrierHz: defaultCarrier, Durations: durations[:len(durations)-1]}
}

// checksum counts the one bits outside the nibbles that store the checksum.
func (s samsungSection) checksum() byte {
	s[1] &= 0x0F
	s[2] &= 0xF0
	ones := 0
	for _, b := range s {
		ones += bits.OnesCount8(b)
	}
	return ^byte(ones)
}

// DecodeSamsung decodes one frame, with or without the trailing space.
func DecodeSamsung(durations []uint32) (Setting, error) {
	n := (len(durations) + 1 - 2) / samsungSectionLength
	whole := 2 + n*samsungSectionLength
	if n != 2 && n != 3 || len(durations) != whole && len(durations) != whole-1 ||
		!near(durations[0], samsungLeadMark) || !near(durations[1], samsungLeadSpace) {
		return Setting{}, fmt.Errorf("samsung: %w", ErrNotUnderstood)
	}
	sections := make([]samsungSection, n)
	for i := range sections {
		var ok bool
		if sections[i], ok = readSamsung(durations[2+i*samsungSectionLength:]); !ok {
			return Setting{}, fmt.Errorf("samsung section %d: %w", i+1, ErrNotUnderstood)
		}
	}
	first, last := sections[0], sections[n-1]
	if first[6]>>4&3 != 3 || last[6]>>4&3 != 3 {
		return Setting{}, nil
	}
	s := Setting{Power: true, Celsius: int(last[4]>>4) + samsungMinTemperature, Swing: samsungSwings[uint32(last[2]>>4&7)]}
	var okMode, okFan bool
	s.Mode, okMode = samsungModes[uint32(last[5]>>4&7)]
	s.Fan, okFan = samsungFans[uint32(last[5]>>1&7)]
	if !okMode || !okFan || s.Celsius > samsungMaxTemperature {
		return Setting{}, fmt.Errorf("samsung setting %X: %w", last, ErrNotUnderstood)
	}
	return s, nil
}

func readSamsung(durations []uint32) (s samsungSection, ok bool) {
	if !near(durations[0], samsungSectionMark) || !near(durations[1], samsungSectionSpace) {
		return s, false
	}
	read, ok := spaceBits(durations[2:], 8*samsungBytes, samsungMark, samsungOne, samsungZero)
	if !ok {
		return s, false
	}
	for i, b := range read {
		s[i/8] |= b << (i % 8)
	}
	end := durations[2+2*8*samsungBytes:]
	return s, near(end[0], samsungMark) && (len(end) == 1 || near(end[1], samsungEndSpace)) && s.checksum() == s[1]>>4|s[2]<<4
}
