package chip

import (
	"math"
	"sort"
	"time"
)

// bme280 is Bosch's BME280 at 0x76: 256 registers with an address that a read increments. The driver reads the
// calibration once and compensates the raw values itself, so the simulation computes the raw values that compensate to
// the current air (data sheet BST-BME280-DS002, 4.2.3 and annex 8.1).
type bme280 struct {
	air   func() Air
	reg   [256]byte
	point byte      // where the next read starts
	ready time.Time // end of the running conversion
}

const (
	bmeID         = 0xD0
	bmeReset      = 0xE0
	bmeHumid      = 0xF2 // three lowest bits: 0, as after power-on, skips the humidity
	bmeStatus     = 0xF3
	bmeControl    = 0xF4 // two lowest bits: 0 sleep, 1 or 2 one conversion, 3 continuous
	bmeData       = 0xF7 // pressure 3, temperature 3, humidity 2
	bmeMeasuring  = 1 << 3
	bmeConversion = 9 * time.Millisecond // one sample of each

	// bmeRawPressure is a constant 1006.5 hPa at 25 °C: the agent does not read it.
	bmeRawPressure = 415148
	bmeSkipped     = 0x8000 // the humidity that was not measured
)

// Calibration: the data sheet's example for temperature, typical values for humidity.
const (
	bmeT1, bmeT2, bmeT3                      = 27504, 26435, -1000
	bmeH1, bmeH2, bmeH3, bmeH4, bmeH5, bmeH6 = 75, 362, 0, 313, 50, 30
)

// bmePressure holds dig_P1 to dig_P9 of the data sheet's example.
var bmePressure = [9]int{36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000}

func newBME280(air func() Air) *bme280 {
	c := &bme280{air: air}
	c.reg[bmeID] = 0x60
	little := func(at byte, v int) { c.reg[at], c.reg[at+1] = byte(v), byte(v>>8) }
	for i, v := range []int{bmeT1, bmeT2, bmeT3} {
		little(0x88+byte(2*i), v)
	}
	for i, v := range bmePressure {
		little(0x8E+byte(2*i), v)
	}
	c.reg[0xA1] = bmeH1
	little(0xE1, bmeH2)
	c.reg[0xE3] = bmeH3
	c.reg[0xE4] = bmeH4 >> 4
	c.reg[0xE5] = bmeH4&0xF | bmeH5&0xF<<4
	c.reg[0xE6] = bmeH5 >> 4
	c.reg[0xE7] = bmeH6
	return c
}

func (*bme280) address() uint16 { return 0x76 }

func (c *bme280) tx(now time.Time, w, r []byte) error {
	if len(w) > 0 {
		c.point = w[0]
		for i := 0; i+1 < len(w); i += 2 {
			c.write(now, w[i], w[i+1])
		}
	}
	c.reg[bmeStatus] = 0
	if now.Before(c.ready) {
		c.reg[bmeStatus] = bmeMeasuring
	}
	for i := range r {
		r[i] = c.reg[c.point]
		c.point++
	}
	return nil
}

func (c *bme280) write(now time.Time, register, value byte) {
	switch {
	case register == bmeReset && value == 0xB6:
		*c = *newBME280(c.air)
	case register == bmeHumid, register == 0xF5:
		c.reg[register] = value
	case register == bmeControl:
		c.reg[register] = value
		if value&3 != 0 {
			c.convert(now)
		}
		if value&3 != 3 {
			c.reg[register] &^= 3 // one conversion, then sleep
		}
	}
}

func (c *bme280) convert(now time.Time) {
	c.ready = now.Add(bmeConversion)
	air := c.air()
	t := uint32(sort.Search(1<<20-1, func(raw int) bool { return bmeFine(raw)/5120 >= air.Celsius }))
	fine := bmeFine(int(t))
	h := uint16(sort.Search(1<<16-1, func(raw int) bool { return bmeHumidity(raw, fine) >= air.Humidity }))
	data := c.reg[bmeData:]
	for i, v := range []uint32{bmeRawPressure, t} {
		data[3*i], data[3*i+1], data[3*i+2] = byte(v>>12), byte(v>>4), byte(v<<4)
	}
	if c.reg[bmeHumid]&7 == 0 {
		h = bmeSkipped
	}
	data[6], data[7] = byte(h>>8), byte(h)
}

// bmeFine is the data sheet's t_fine: 5120 times °C.
func bmeFine(raw int) float64 {
	a := (float64(raw)/16384 - bmeT1/1024.0) * bmeT2
	b := float64(raw)/131072 - bmeT1/8192.0
	return a + b*b*bmeT3
}

// bmeHumidity is the compensated relative humidity in percent, unclipped at 100
// so that it grows with raw.
func bmeHumidity(raw int, fine float64) float64 {
	h := fine - 76800
	h = (float64(raw) - (bmeH4*64 + bmeH5/16384.0*h)) *
		(bmeH2 / 65536.0 * (1 + bmeH6/67108864.0*h*(1+bmeH3/67108864.0*h)))
	return math.Max(h*(1-bmeH1*h/524288), 0)
}
