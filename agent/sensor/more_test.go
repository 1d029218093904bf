package sensor

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/i2c/i2ctest"
)

// scd41 measures every five seconds after the start command, according to the data sheet.
type scd41 struct {
	running bool
	began   time.Time
	taken   int // measurements read
	command []byte
}

func (c *scd41) tx(_ uint16, w, r []byte) error {
	if len(w) > 0 {
		c.command = bytes.Clone(w)
		if bytes.Equal(w, []byte{0x21, 0xB1}) {
			if c.running {
				return errors.New("remote I/O error")
			}
			c.running, c.began = true, time.Now()
		}
		return nil
	}
	words := []uint16{0x8000}
	measured := int(time.Since(c.began) / (5 * time.Second))
	switch {
	case bytes.Equal(c.command, []byte{0xE4, 0xB8}) && c.running && measured > c.taken:
		words[0] |= 0x06
	case bytes.Equal(c.command, []byte{0xEC, 0x05}):
		words, c.taken = []uint16{500, 0x6667, 0x5EB9}, measured
	}
	for i, w := range words {
		copy(r[3*i:], []byte{byte(w >> 8), byte(w)})
		r[3*i+2] = crc(r[3*i : 3*i+2])
	}
	return nil
}

func TestSCD4x(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &scd41{}
		r, err := Open("scd4x", bus(c.tx), 0)
		if err != nil {
			t.Fatal(err)
		}
		read := func() (Reading, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			return r.Read(ctx)
		}
		if got, err := read(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at power-on: got %+v, %v, want a timeout", got, err)
		}
		for range 3 { // waits for the first measurement, reuses it, reads the next
			got, err := read()
			if err != nil || math.Abs(got.Celsius-25) > 0.01 || math.Abs(got.RelativeHumidity-37) > 0.01 {
				t.Fatalf("got %+v, %v", got, err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := read(); err != nil {
			t.Error(err)
		}
	})
}

// TestHwmonHumidityIsLimitedToPercent reads a sensor in saturated and in very dry air: its temperature must not be lost.
func TestHwmonHumidityIsLimitedToPercent(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]float64{"100412": 100, "-300": 0} {
		sys := fstest.MapFS{
			"class/hwmon/hwmon0/name":            {Data: []byte("sht4x\n")},
			"class/hwmon/hwmon0/temp1_input":     {Data: []byte("23512\n")},
			"class/hwmon/hwmon0/humidity1_input": {Data: []byte(raw + "\n")},
		}
		if got, err := OpenHwmon(sys, "sht4x").Read(t.Context()); err != nil || got != (Reading{23.512, want}) {
			t.Errorf("humidity1_input %s: got %+v, %v, want %v %%", raw, got, err, want)
		}
	}
}

func TestHwmon(t *testing.T) {
	t.Parallel()
	sys := fstest.MapFS{
		"class/hwmon/hwmon0/name":            {Data: []byte("cpu_thermal\n")},
		"class/hwmon/hwmon0/temp1_input":     {Data: []byte("51000\n")},
		"class/hwmon/hwmon1/name":            {Data: []byte("sht4x\n")},
		"class/hwmon/hwmon1/temp1_input":     {Data: []byte("23495\n")},
		"class/hwmon/hwmon1/humidity1_input": {Data: []byte("46192\n")},
	}
	if got, err := OpenHwmon(sys, "sht4x").Read(t.Context()); err != nil || got != (Reading{23.495, 46.192}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := OpenHwmon(sys, "cpu_thermal").Read(t.Context()); err == nil {
		t.Errorf("got %+v from a chip without humidity", got)
	}
	if got, err := OpenHwmon(sys, "sht21").Read(t.Context()); err == nil {
		t.Errorf("got %+v from a missing sensor", got)
	}
	sys["class/hwmon/hwmon2/name"] = &fstest.MapFile{Data: []byte("sht4x\n")}
	if got, err := OpenHwmon(sys, "sht4x").Read(t.Context()); err == nil {
		t.Errorf("got %+v although two sensors match", got)
	}
}

func TestMux(t *testing.T) {
	t.Parallel()
	answer := []byte{0xBE, 0xEF, 0x92, 0xBE, 0xEF, 0x92}
	b := play(
		i2ctest.IO{Addr: 0x70, W: []byte{1 << 3}}, i2ctest.IO{Addr: 0x44, W: []byte{0xFD}}, i2ctest.IO{Addr: 0x70, W: []byte{0}},
		i2ctest.IO{Addr: 0x70, W: []byte{1 << 3}}, i2ctest.IO{Addr: 0x44, R: answer}, i2ctest.IO{Addr: 0x70, W: []byte{0}},
	)
	m, err := NewMux(b, 0x70)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Port(3)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open("sht4x", p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context()); err != nil || math.Abs(got.Celsius-85.52) > 0.02 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.Port(8); err == nil {
		t.Error("got no error for port 8")
	}
	if _, err := NewMux(b, 0x44); err == nil {
		t.Error("got no error for a mux at 0x44")
	}
	if !slices.Contains(Kinds(), "scd4x") {
		t.Error("scd4x is not a known kind")
	}
}
