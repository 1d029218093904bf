package chip

import (
	"bytes"
	"time"
)

// aht20 is Aosong's AHT20 at the fixed address 0x38: initialise, trigger, and after 80 ms read status, 20 bits of
// humidity, 20 bits of temperature and a checksum.
type aht20 struct {
	air         func() Air
	initialised bool
	ready       time.Time // end of the running conversion
	data        [5]byte
}

const (
	aht20Conversion = 75 * time.Millisecond
	aht20Busy       = 1 << 7
	aht20Calibrated = 1 << 3
	aht20Idle       = 0x10 // the other bits of the status register
)

func (*aht20) address() uint16 { return 0x38 }

func (c *aht20) tx(now time.Time, w, r []byte) error {
	switch {
	case len(w) == 0, bytes.Equal(w, []byte{0x71}):
	case bytes.Equal(w, []byte{0xBE, 0x08, 0x00}):
		c.initialised = true
	case bytes.Equal(w, []byte{0xAC, 0x33, 0x00}):
		c.convert(now)
	case bytes.Equal(w, []byte{0xBA}):
		*c = aht20{air: c.air}
	default:
		return errNoAnswer
	}
	status := byte(aht20Idle)
	if c.initialised {
		status |= aht20Calibrated
	}
	if now.Before(c.ready) {
		status |= aht20Busy
	}
	answer := append([]byte{status}, c.data[:]...)
	copy(r, append(answer, crc8(answer...)))
	return nil
}

func (c *aht20) convert(now time.Time) {
	c.ready = now.Add(aht20Conversion)
	air := c.air()
	h := raw(air.Humidity, 0, 100, 20)
	t := raw(air.Celsius, -50, 200, 20)
	c.data = [5]byte{byte(h >> 12), byte(h >> 4), byte(h<<4) | byte(t>>16), byte(t >> 8), byte(t)}
}
