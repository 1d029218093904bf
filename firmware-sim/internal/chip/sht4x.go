package chip

import "time"

// sht4x is Sensirion's SHT40/41/45 at 0x44: one command byte, a conversion, then two words with checksums. The chip
// does not acknowledge a read before the conversion is done.
type sht4x struct {
	air    func() Air
	ready  time.Time
	answer []uint32 // nil: nothing to read
}

// sht4xConversions holds the measurement commands (high, medium and low precision) with their longest conversion times.
var sht4xConversions = map[byte]time.Duration{
	0xFD: 8300 * time.Microsecond,
	0xF6: 4500 * time.Microsecond,
	0xE0: 1600 * time.Microsecond,
}

func (*sht4x) address() uint16 { return 0x44 }

func (c *sht4x) tx(now time.Time, w, r []byte) error {
	if len(w) > 0 {
		if err := c.command(now, w[0]); err != nil {
			return err
		}
	}
	if len(r) == 0 {
		return nil
	}
	if c.answer == nil || now.Before(c.ready) {
		return errNoAnswer
	}
	words(r, c.answer...)
	c.answer = nil
	return nil
}

func (c *sht4x) command(now time.Time, command byte) error {
	if conversion, ok := sht4xConversions[command]; ok {
		air := c.air()
		c.ready = now.Add(conversion)
		c.answer = []uint32{raw(air.Celsius, -45, 175, 16), raw(air.Humidity, -6, 125, 16)}
		return nil
	}
	switch command {
	case 0x94: // soft reset
		c.answer = nil
	case 0x89: // serial number
		c.ready, c.answer = now, []uint32{0x5945, 0x4F4C}
	default:
		return errNoAnswer
	}
	return nil
}
