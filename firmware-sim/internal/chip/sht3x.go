package chip

import "time"

// sht3x is Sensirion's SHT30/31/35 at 0x44 in single-shot mode: two command bytes, a conversion, two words with
// checksums. Commands 0x2Cxx stretch the clock until the conversion is done; after commands 0x24xx the chip does not
// acknowledge before that.
type sht3x struct {
	air    func() Air
	ready  time.Time
	answer []uint32 // nil: nothing to read
}

// sht3xConversions holds the single-shot commands with their longest conversion times; stretch marks those that stretch
// the clock.
var sht3xConversions = map[uint16]struct {
	takes   time.Duration
	stretch bool
}{
	0x2400: {15500 * time.Microsecond, false},
	0x240B: {6500 * time.Microsecond, false},
	0x2416: {4500 * time.Microsecond, false},
	0x2C06: {15500 * time.Microsecond, true},
	0x2C0D: {6500 * time.Microsecond, true},
	0x2C10: {4500 * time.Microsecond, true},
}

func (*sht3x) address() uint16 { return 0x44 }

func (c *sht3x) tx(now time.Time, w, r []byte) error {
	if len(w) > 0 {
		if len(w) < 2 {
			return errNoAnswer
		}
		if err := c.command(now, uint16(w[0])<<8|uint16(w[1])); err != nil {
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

func (c *sht3x) command(now time.Time, command uint16) error {
	if conversion, ok := sht3xConversions[command]; ok {
		air := c.air()
		c.answer = []uint32{raw(air.Celsius, -45, 175, 16), raw(air.Humidity, 0, 100, 16)}
		c.ready = now.Add(conversion.takes)
		if conversion.stretch {
			time.Sleep(conversion.takes)
			c.ready = now
		}
		return nil
	}
	switch command {
	case 0x30A2, 0x3093: // soft reset, break
		c.answer = nil
	case 0x3041: // clear status
	case 0xF32D: // status
		c.ready, c.answer = now, []uint32{0}
	default:
		return errNoAnswer
	}
	return nil
}
