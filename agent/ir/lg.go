package ir

import "strconv"

// LG's 28-bit frames, most significant bit first:
//
//	signature 0x88 | power 2 | 3 unused | mode 3 | temperature - 15, 4 | fan 4 | checksum 4
//
// The checksum is the sum of the four nibbles above it. The louvre has frames of its own.
const (
	lgSignature = 0x88 << 20
	lgOff       = 0x88C0051
	lgSwingOn   = 0x8813149
	lgSwingOff  = 0x881315A

	lgTemperatureBase = 15
)

// lgTiming is how a model's remote spells frames, in µs.
type lgTiming struct{ headerMark, headerSpace, mark, one, zero uint32 }

var lgTimings = map[string]lgTiming{
	"lg":  {8500, 4250, 550, 1600, 550},
	"lg2": {3200, 9900, 480, 1600, 550},
}

// LG is the code set of LG's air conditioners, without a file. Of the two families LG2 are the newer.
func LG() *CodeSet  { return lgCodes(lgTimings["lg"]) }
func LG2() *CodeSet { return lgCodes(lgTimings["lg2"]) }

func lgCodes(t lgTiming) *CodeSet {
	set := &CodeSet{Roots: []Node{{Name: modeLabels["off"], Code: Code{t.signal(lgOff)}}}}
	for _, mode := range []struct {
		name        string
		bits        uint32
		temperature bool // the others take no notice of it
	}{{"cool", 0, true}, {"heat", 4, true}, {"auto", 3, true}, {"dry", 1, false}, {"fan", 2, false}} {
		node := Node{Name: modeLabels[mode.name]}
		if mode.temperature {
			for celsius := 18; celsius <= 30; celsius++ {
				node.Children = append(node.Children, Node{Name: strconv.Itoa(celsius), Children: t.speeds(mode.bits, uint32(celsius))})
			}
		} else {
			node.Children = t.speeds(mode.bits, 24)
		}
		set.Roots = append(set.Roots, node)
	}
	return set
}

func (t lgTiming) speeds(mode, celsius uint32) []Node {
	var nodes []Node
	for _, fan := range []struct {
		name string
		bits uint32
	}{{"low", 0}, {"mid", 2}, {"high", 4}, {"auto", 5}} {
		word := lgSignature | mode<<12 | (celsius-lgTemperatureBase)<<8 | fan.bits<<4
		setting := t.signal(word | (word>>16+word>>12+word>>8+word>>4)&0xF)
		nodes = append(nodes, Node{Name: speedLabels[fan.name], Children: []Node{
			{Name: speedLabels["off"], Code: Code{setting, t.signal(lgSwingOff)}},
			{Name: speedLabels["on"], Code: Code{setting, t.signal(lgSwingOn)}},
		}})
	}
	return nodes
}

func (t lgTiming) signal(word uint32) Signal {
	durations := []uint32{t.headerMark, t.headerSpace}
	for bit := 27; bit >= 0; bit-- {
		space := t.zero
		if word>>bit&1 == 1 {
			space = t.one
		}
		durations = append(durations, t.mark, space)
	}
	return Signal{CarrierHz: defaultCarrier, Durations: append(durations, t.mark)}
}
