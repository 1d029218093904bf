package sensor

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/i2c/i2ctest"
	"periph.io/x/conn/v3/physic"
)

// play returns a bus that accepts exactly these transfers.
func play(ops ...i2ctest.IO) *i2ctest.Playback { return &i2ctest.Playback{Ops: ops, DontPanic: true} }

func TestChips(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		ops  []i2ctest.IO
		want Reading
	}{
		// 0xBEEF is the CRC example of Sensirion's data sheets: 0x92.
		"sht3x": {[]i2ctest.IO{{Addr: 0x44, W: []byte{0x24, 0x00}}, {Addr: 0x44, R: []byte{0xBE, 0xEF, 0x92, 0xBE, 0xEF, 0x92}}}, Reading{85.52, 74.58}},
		"sht4x": {[]i2ctest.IO{{Addr: 0x44, W: []byte{0xFD}}, {Addr: 0x44, R: []byte{0xBE, 0xEF, 0x92, 0xBE, 0xEF, 0x92}}}, Reading{85.52, 87.23}},
		"aht20": {[]i2ctest.IO{{Addr: 0x38, W: []byte{0x71}, R: []byte{0x18}}, {Addr: 0x38, W: []byte{0xAC, 0x33, 0x00}},
			{Addr: 0x38, R: []byte{0x18, 0x76, 0x45, 0xA5, 0xE1, 0x48, 0xA7}}}, Reading{23.5, 46.2}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			bus := play(c.ops...)
			if kind == "aht20" {
				bus.Ops[2].R[6] = crc(bus.Ops[2].R[:6])
			}
			r, err := Open(kind, bus, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Celsius-c.want.Celsius) > 0.02 || math.Abs(got.RelativeHumidity-c.want.RelativeHumidity) > 0.02 {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if err := bus.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func crc(b []byte) byte {
	c := byte(0xFF)
	for _, octet := range b {
		c ^= octet
		for range 8 {
			if c&0x80 != 0 {
				c = c<<1 ^ 0x31
			} else {
				c <<= 1
			}
		}
	}
	return c
}

func TestCorruptAnswer(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		answer := []byte{0xBE, 0xEF, 0x92, 0xBE, 0xEF, 0x92}
		answer[i] ^= 0x10
		r, err := Open("sht3x", bus(func(_ uint16, _, r []byte) error { copy(r, answer); return nil }), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(t.Context()); !errors.Is(err, errChecksum) {
			t.Errorf("byte %d corrupt: got %+v, %v, want a wrong checksum", i, got, err)
		}
	}
}

// TestReadingIsRepeated checks that a corrupt byte and a missing acknowledgement do not lose the reading.
func TestReadingIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		command, answer := []byte{0x24, 0x00}, []byte{0xBE, 0xEF, 0x92, 0xBE, 0xEF, 0x92}
		transfers := 0
		r, err := Open("sht3x", bus(func(_ uint16, w, r []byte) error {
			transfers++
			switch {
			case transfers == 1 && bytes.Equal(w, command):
				return errors.New("remote I/O error")
			case len(r) > 0:
				copy(r, answer)
				if transfers == 3 {
					r[0] ^= 1
				}
			}
			return nil
		}), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(t.Context()); err != nil || math.Abs(got.Celsius-85.52) > 0.02 || transfers != 5 {
			t.Errorf("got %+v, %v after %d transfers, want 85.52 °C after 5", got, err, transfers)
		}
	})
}

func TestHumidityIsLimitedToPercent(t *testing.T) {
	t.Parallel()
	for raw, want := range map[uint16]float64{0: 0, 0xFFFF: 100} {
		b := []byte{byte(raw >> 8), byte(raw), 0}
		b[2] = crc(b[:2])
		r, err := Open("sht4x", play(i2ctest.IO{Addr: 0x45, W: []byte{0xFD}}, i2ctest.IO{Addr: 0x45, R: append(b, b...)}), 0x45)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(t.Context()); err != nil || got.RelativeHumidity != want {
			t.Errorf("raw %d: got %+v, %v, want %v %%", raw, got, err, want)
		}
	}
}

// bus is a bus whose transfers are a function.
type bus func(address uint16, w, r []byte) error

func (bus) String() string                         { return "test" }
func (bus) SetSpeed(physic.Frequency) error        { return nil }
func (b bus) Tx(address uint16, w, r []byte) error { return b(address, w, r) }
func remoteIO(uint16, []byte, []byte) error        { return errors.New("remote I/O error") }
func bmx280(id byte, status byte) func(uint16, []byte, []byte) error {
	return func(_ uint16, w, r []byte) error {
		switch {
		case len(w) == 1 && w[0] == 0xD0:
			r[0] = id
		case len(w) == 1 && w[0] == 0xF3:
			r[0] = status
		}
		return nil
	}
}

func TestMissingChipReturns(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		answer := remoteIO
		r, err := Open(kind, bus(func(a uint16, w, r []byte) error { return answer(a, w, r) }), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(t.Context()); err == nil {
			t.Errorf("%s: got %+v without a chip", kind, got)
		}
		if kind == "bme280" {
			answer = bmx280(0x60, 0)
			if got, err := r.Read(t.Context()); err != nil {
				t.Errorf("%s: got %+v, %v after the chip was connected", kind, got, err)
			}
		}
	}
}

func TestBMP280IsNotABME280(t *testing.T) {
	t.Parallel()
	r, err := Open("bme280", bus(bmx280(0x58, 0)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context()); !errors.Is(err, ErrNoHumidity) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestBusyChip checks that the context ends the reading of a BME280 that stays busy, which periph's driver polls indefinitely.
func TestBusyChip(t *testing.T) {
	t.Parallel()
	r, err := Open("bme280", bus(bmx280(0x60, 0x08)), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := r.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnknownKind(t *testing.T) {
	t.Parallel()
	if _, err := Open("dht22", bus(remoteIO), 0); err == nil {
		t.Error("got no error for an unknown kind")
	}
}
