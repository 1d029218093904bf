package ir

import "fmt"

// LG's 28-bit frames, most significant bit first:
//
//	signature 0x88 | power 2 | 3 unused | mode 3 | temperature - 15, 4 | fan 4 | checksum 4
//
// The checksum is the sum of the four nibbles above it. The louvre has separate frames.
const (
	lgBits      = 28
	lgSignature = 0x88 << 20
	lgOff       = 0x88C0051
	lgSwingOn   = 0x8813149
	lgSwingOff  = 0x881315A

	lgTemperatureBase, lgMinTemperature, lgMaxTemperature = 15, 16, 30
)

var (
	lgModes = map[uint32]string{0: "cool", 1: "dry", 2: "fan", 3: "auto", 4: "heat"}
	lgFans  = map[uint32]string{0: "lowest", 1: "low", 9: "low", 2: "mid", 10: "high", 4: "max", 5: "auto"}
)

// lgTiming holds the timing of a model family in µs.
type lgTiming struct{ headerMark, headerSpace, mark, one, zero uint32 }

// The two model families; lg2 is the newer one.
var lg1, lg2 = lgTiming{8500, 4250, 550, 1600, 550}, lgTiming{3200, 9900, 480, 1600, 550}

// LG returns the code set of LG's older air conditioners.
func LG() *CodeSet { return lgRemote(lg1).codeSet() }

// LG2 returns the code set of LG's newer air conditioners.
func LG2() *CodeSet { return lgRemote(lg2).codeSet() }

// lgRemote offers the four fan speeds that every model supports: newer remotes send lowest and max where older ones send low
// and high.
func lgRemote(t lgTiming) remote {
	fans := []speed{{"low", "lowest"}, {"mid", "mid"}, {"high", "max"}, {"auto", "auto"}}
	return remote{
		modes:  []mode{{"cool", true, fans}, {"heat", true, fans}, {"auto", true, fans}, {"dry", false, fans}, {"fan", false, fans}},
		encode: t.encode,
	}
}

// encode returns the frame of a setting, followed by the louvre frame if the setting includes the louvre.
func (t lgTiming) encode(s Setting) (Code, error) {
	if !s.Power {
		return Code{t.signal(lgOff)}, nil
	}
	mode, okMode := word(lgModes, s.Mode)
	fan, okFan := word(lgFans, s.Fan)
	if !okMode || !okFan || s.Celsius < lgMinTemperature || s.Celsius > lgMaxTemperature {
		return nil, fmt.Errorf("LG has no frame for %+v", s)
	}
	bits := lgSignature | mode<<12 | uint32(s.Celsius-lgTemperatureBase)<<8 | fan<<4
	code := Code{t.signal(bits | lgChecksum(bits))}
	switch s.Swing {
	case "on":
		code = append(code, t.signal(lgSwingOn))
	case "off":
		code = append(code, t.signal(lgSwingOff))
	}
	return code, nil
}

func lgChecksum(bits uint32) uint32 { return (bits>>16 + bits>>12 + bits>>8 + bits>>4) & 0xF }

func (t lgTiming) signal(bits uint32) Signal {
	durations := []uint32{t.headerMark, t.headerSpace}
	for bit := lgBits - 1; bit >= 0; bit-- {
		space := t.zero
		if bits>>bit&1 == 1 {
			space = t.one
		}
		durations = append(durations, t.mark, space)
	}
	return Signal{CarrierHz: defaultCarrier, Durations: append(durations, t.mark)}
}

// DecodeLG reads one frame of either family. Frames of the louvre give a setting with nothing but Power and Swing.
func DecodeLG(durations []uint32) (Setting, error) {
	for _, t := range []lgTiming{lg1, lg2} {
		if bits, ok := t.read(durations); ok {
			return lgSetting(bits)
		}
	}
	return Setting{}, fmt.Errorf("LG: %w", ErrNotUnderstood)
}

func (t lgTiming) read(durations []uint32) (uint32, bool) {
	if len(durations) != 2+2*lgBits+1 || !near(durations[0], t.headerMark) || !near(durations[1], t.headerSpace) ||
		!near(durations[len(durations)-1], t.mark) {
		return 0, false
	}
	read, ok := spaceBits(durations[2:], lgBits, t.mark, t.one, t.zero)
	var bits uint32
	for _, b := range read {
		bits = bits<<1 | uint32(b)
	}
	return bits, ok
}

func lgSetting(bits uint32) (Setting, error) {
	if bits&0xFF00000 != lgSignature || bits&0xF != lgChecksum(bits) {
		return Setting{}, fmt.Errorf("LG frame %07X: %w", bits, ErrNotUnderstood)
	}
	switch bits {
	case lgOff:
		return Setting{}, nil
	case lgSwingOn:
		return Setting{Power: true, Swing: "on"}, nil
	case lgSwingOff:
		return Setting{Power: true, Swing: "off"}, nil
	}
	mode, okMode := lgModes[bits>>12&7]
	fan, okFan := lgFans[bits>>4&0xF]
	celsius := int(bits>>8&0xF) + lgTemperatureBase
	if !okMode || !okFan || celsius < lgMinTemperature || bits>>16&0xF != 0 {
		return Setting{}, fmt.Errorf("LG frame %07X: %w", bits, ErrNotUnderstood)
	}
	return Setting{Power: true, Mode: mode, Celsius: celsius, Fan: fan}, nil
}
