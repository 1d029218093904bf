package infrared_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

func receive(t interface{ Fatalf(string, ...any) }, s infrared.State, train []uint32) infrared.State {
	for i, frame := range infrared.Split(train) {
		m, ok := infrared.Decode(frame)
		if !ok {
			t.Fatalf("frame %d is noise: %v", i, frame)
		}
		m.Apply(&s)
	}
	return s
}

// TestLGKnownFrames uses frames out of public code sets, not of the encoder.
func TestLGKnownFrames(t *testing.T) {
	t.Parallel()
	was := infrared.State{Power: true, Mode: "heat", Temperature: 27, Fan: "low", Direction: "on"}
	tests := []struct {
		word uint32
		want infrared.State
	}{
		{0x88C0051, infrared.State{Power: false, Mode: "heat", Temperature: 27, Fan: "low", Direction: "on"}},
		{0x88C00A6, was},
		{0x8800347, infrared.State{Power: true, Mode: "cool", Temperature: 18, Fan: "max", Direction: "on"}},
		{0x880834F, infrared.State{Power: true, Mode: "cool", Temperature: 18, Fan: "max", Direction: "on"}},
		{0x881315A, infrared.State{Power: true, Mode: "heat", Temperature: 27, Fan: "low", Direction: "off"}},
		{0x8810001, infrared.State{Power: true, Mode: "heat", Temperature: 27, Fan: "low", Direction: "off"}},
	}
	for _, header := range [][2]uint32{{8500, 4250}, {3200, 9900}} {
		for _, tt := range tests {
			if got := receive(t, was, pulses(header, 500, 28, tt.word)); got != tt.want {
				t.Errorf("%07X: %+v, want %+v", tt.word, got, tt.want)
			}
		}
	}
}

// pulses writes n bits, highest first, behind a header.
func pulses(header [2]uint32, mark uint32, n int, word uint32) []uint32 {
	train := header[:]
	for i := n - 1; i >= 0; i-- {
		space := uint32(550)
		if word>>i&1 == 1 {
			space = 1600
		}
		train = append(train, mark, space)
	}
	return append(train, mark)
}

func TestNoise(t *testing.T) {
	t.Parallel()
	good := pulses([2]uint32{3200, 9900}, 480, 28, 0x8800347)
	for name, frame := range map[string][]uint32{
		"nothing":        {},
		"wrong checksum": pulses([2]uint32{3200, 9900}, 480, 28, 0x8800346),
		"wrong maker":    pulses([2]uint32{3200, 9900}, 480, 28, 0x1800347),
		"NEC header":     pulses([2]uint32{9000, 2250}, 560, 28, 0x8800347),
		"cut short":      good[:40],
		"neither 0 or 1": append(append([]uint32{}, good[:3]...), append([]uint32{1000}, good[4:]...)...),
	} {
		if m, ok := infrared.Decode(frame); ok {
			t.Errorf("%s: taken for %s %s", name, m.Protocol, m.Code)
		}
	}
}

// TestLGRoundTrip sends any setting through a worn remote and a cheap receiver.
func TestLGRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := infrared.State{
			Power:       true,
			Mode:        rapid.SampledFrom([]string{"cool", "heat", "auto"}).Draw(t, "mode"),
			Temperature: rapid.IntRange(16, 30).Draw(t, "temperature"),
			Fan:         rapid.SampledFrom([]string{"lowest", "low", "mid", "high", "max", "auto"}).Draw(t, "fan"),
			Direction:   rapid.SampledFrom([]string{"on", "off"}).Draw(t, "direction"),
		}
		train, err := infrared.EncodeLG(want)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range train {
			train[i] += uint32(float64(train[i]) * (rng.Float64() - 0.5) * 0.4) // ±20 %
		}
		if got := receive(t, infrared.State{}, train); got != want {
			t.Fatalf("%+v arrived as %+v", want, got)
		}
	})
}

func TestEncodeLGRefuses(t *testing.T) {
	t.Parallel()
	ok := infrared.State{Power: true, Mode: "cool", Temperature: 24, Fan: "auto"}
	for name, change := range map[string]func(*infrared.State){
		"mode":        func(s *infrared.State) { s.Mode = "ai" },
		"temperature": func(s *infrared.State) { s.Temperature = 31 },
		"fan":         func(s *infrared.State) { s.Fan = "turbo" },
		"direction":   func(s *infrared.State) { s.Direction = "left" },
	} {
		s := ok
		change(&s)
		if _, err := infrared.EncodeLG(s); err == nil {
			t.Errorf("an unknown %s was encoded", name)
		}
	}
}

// samsung writes sections of a Samsung remote, checksums included.
func samsung(sections ...[7]byte) []uint32 {
	train := []uint32{690, 17844}
	for _, s := range sections {
		ones := 0
		for i, b := range s {
			switch i {
			case 1:
				b &= 0x0F
			case 2:
				b &= 0xF0
			}
			for ; b > 0; b >>= 1 {
				ones += int(b & 1)
			}
		}
		sum := ^byte(ones)
		s[1] = s[1]&0x0F | sum<<4
		s[2] = s[2]&0xF0 | sum>>4
		train = append(train, 3086, 8864)
		for _, b := range s {
			for i := range 8 {
				space := uint32(436)
				if b>>i&1 == 1 {
					space = 1432
				}
				train = append(train, 586, space)
			}
		}
		train = append(train, 586, 2886)
	}
	return train
}

func TestSamsung(t *testing.T) {
	t.Parallel()
	on := [7]byte{0x02, 0x02, 0x00, 0, 0, 0, 0xF0}
	power := [7]byte{0x01, 0x02, 0x00, 0, 0, 0, 0}
	setting := [7]byte{0x01, 0x02, 0xA0, 0x71, 8 << 4, 1<<4 | 4<<1, 0xF0} // cool, 24 °C, mid, swing up and down
	off := [7]byte{0x02, 0x02, 0x00, 0, 0, 0, 0xC0}
	want := infrared.State{Power: true, Mode: "cool", Temperature: 24, Fan: "mid", Direction: "on"}
	if got := receive(t, infrared.State{}, samsung(on, setting)); got != want {
		t.Errorf("two sections: %+v, want %+v", got, want)
	}
	if got := receive(t, infrared.State{}, samsung(on, power, setting)); got != want {
		t.Errorf("three sections: %+v, want %+v", got, want)
	}
	setting[6] = 0xC0
	want.Power = false
	if got := receive(t, want, samsung(off, power, setting)); got != want {
		t.Errorf("off: %+v, want %+v", got, want)
	}
	broken := samsung(on, setting)
	broken[5+2*8*3] = 1432 + 436 - broken[5+2*8*3] // flip one bit
	if _, ok := infrared.Decode(broken); ok {
		t.Error("a wrong checksum was accepted")
	}
}

func FuzzDecode(f *testing.F) {
	seed := func(train []uint32) {
		var b []byte
		for _, d := range train {
			b = append(b, byte(d>>8), byte(d))
		}
		f.Add(b)
	}
	seed(pulses([2]uint32{3200, 9900}, 480, 28, 0x8800347))
	seed(samsung([7]byte{0x02, 0x02, 0, 0, 0, 0, 0xF0}, [7]byte{1, 2, 0xA0, 0, 0x80, 0x18, 0xF0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var train []uint32
		for ; len(b) > 1; b = b[2:] {
			train = append(train, uint32(b[0])<<8|uint32(b[1]))
		}
		var s infrared.State
		for _, frame := range infrared.Split(train) {
			if m, ok := infrared.Decode(frame); ok {
				m.Apply(&s)
			}
		}
		if s.Temperature != 0 && (s.Temperature < 16 || s.Temperature > 31) {
			t.Errorf("a unit was set to %d °C", s.Temperature)
		}
	})
}
