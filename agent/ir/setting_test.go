package ir

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPublishedFrames decodes frames from public code sets, which are independent of the encoders here.
func TestPublishedFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		durations []uint32
		want      Setting
	}{
		{"LG off", lg1.signal(0x88C0051).Durations, Setting{}},
		{"LG cool 18", lg2.signal(0x8800347).Durations, Setting{Power: true, Mode: "cool", Celsius: 18, Fan: "max"}},
		{"LG louvre", lg2.signal(0x8813149).Durations, Setting{Power: true, Swing: "on"}},
		{"Samsung cool 24", samsungSignal(samsungSection{0x02, 0x02, 0, 0, 0, 0, 0xF0}, samsungSection{0x01, 0x02, 0xA0, 0x71, 8 << 4, 1<<4 | 4<<1 | 1, 0xF0}).Durations,
			Setting{Power: true, Mode: "cool", Celsius: 24, Fan: "mid", Swing: "on"}},
		{"Samsung off", samsungSignal(samsungSection{0x02, 0x02, 0, 0, 0, 0, 0xC0}, samsungSection{0x01, 0x02}, samsungSection{0x01, 0x02, 0xF0, 0x71, 8 << 4, 0x11, 0xC0}).Durations, Setting{}},
	} {
		if got, err := Decode(tt.durations); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

// TestSamsungOffMatchesReference compares the off frame with that of IRremoteESP8266, byte by byte.
func TestSamsungOffMatchesReference(t *testing.T) {
	t.Parallel()
	code, err := encodeSamsung(Setting{})
	if err != nil {
		t.Fatal(err)
	}
	want := []samsungSection{
		{0x02, 0xB2, 0x0F, 0x00, 0x00, 0x00, 0xC0}, {0x01, 0xD2, 0x0F, 0x00, 0x00, 0x00, 0x00}, {0x01, 0x02, 0xFF, 0x71, 0x80, 0x11, 0xC0},
	}
	for i, section := range want {
		if got, ok := readSamsung(code[0].Durations[2+i*samsungSectionLength:]); !ok || got != section {
			t.Errorf("section %d: got % X, want % X", i+1, got, section)
		}
	}
}

func TestWrongChecksums(t *testing.T) {
	t.Parallel()
	if got, err := Decode(lg2.signal(0x8800346).Durations); !errors.Is(err, ErrNotUnderstood) {
		t.Errorf("LG: %+v, %v", got, err)
	}
	code, err := encodeSamsung(Setting{Power: true, Mode: "heat", Celsius: 20, Fan: "low", Swing: "off"})
	if err != nil {
		t.Fatal(err)
	}
	for at := 5; at < len(code[0].Durations); at += 2 {
		durations := slices.Clone(code[0].Durations)
		switch durations[at] {
		case samsungOne:
			durations[at] = samsungZero
		case samsungZero:
			durations[at] = samsungOne
		default:
			continue
		}
		if got, err := Decode(durations); err == nil {
			t.Fatalf("bit at duration %d flipped: got %+v, want an error", at, got)
		}
	}
}

// TestLeavesDecodeToTheirOptions distorts each leaf of each built-in remote by 20 %, like a worn remote and a cheap receiver,
// and decodes it.
func TestLeavesDecodeToTheirOptions(t *testing.T) {
	t.Parallel()
	modes := map[string]string{"냉방": "cool", "난방": "heat", "자동": "auto", "제습": "dry", "송풍": "fan"}
	speeds := map[string][]string{"약": {"low", "lowest"}, "중": {"mid"}, "강": {"high", "max"}, "자동": {"auto"}}
	swings := map[string]string{"회전": "on", "고정": "off"}
	for _, name := range Remotes() {
		set, _ := Remote(name)
		for path, code := range set.Leaves() {
			var got Setting
			for i, signal := range code {
				durations := slices.Clone(signal.Durations)
				for j := range durations { // alternately -20 % and +20 %
					durations[j] = durations[j] * uint32(80+40*((i+j)%2)) / 100
				}
				s, err := Decode(durations)
				if err != nil {
					t.Fatalf("%s %v: %v", name, path, err)
				}
				if i == 0 {
					got = s
				} else { // the louvre's
					got.Swing = s.Swing
				}
			}
			if path[0] == "전원 끄기" {
				if got.Power {
					t.Errorf("%s %v: got %+v, want power off", name, path, got)
				}
				continue
			}
			fan, swing := path[len(path)-2], path[len(path)-1]
			celsius := anyCelsius
			if len(path) == 4 {
				celsius, _ = strconv.Atoi(path[1])
			}
			if !got.Power || got.Mode != modes[path[0]] || got.Celsius != celsius || !slices.Contains(speeds[fan], got.Fan) || got.Swing != swings[swing] {
				t.Errorf("%s %s: got %+v", name, strings.Join(path, "/"), got)
			}
		}
	}
}

func TestSamsungRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := Setting{
			Power: true, Mode: rapid.SampledFrom([]string{"cool", "heat", "auto", "dry", "fan"}).Draw(t, "mode"),
			Celsius: rapid.IntRange(samsungMinTemperature, samsungMaxTemperature).Draw(t, "celsius"),
			Fan:     rapid.SampledFrom([]string{"low", "mid", "high", "max", "auto"}).Draw(t, "fan"),
			Swing:   rapid.SampledFrom([]string{"on", "off"}).Draw(t, "swing"),
		}
		if want.Mode == "auto" {
			want.Fan = "auto"
		}
		code, err := encodeSamsung(want)
		if err != nil {
			t.Fatal(err)
		}
		durations := code[0].Durations
		if rapid.Bool().Draw(t, "with its gap") {
			durations = append(slices.Clone(durations), samsungEndSpace)
		}
		if got, err := DecodeSamsung(durations); err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestEncodersRejectInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, s := range []Setting{
		{Power: true, Mode: "ai", Celsius: 20, Fan: "low", Swing: "off"},
		{Power: true, Mode: "cool", Celsius: 31, Fan: "low", Swing: "off"},
		{Power: true, Mode: "cool", Celsius: 20, Fan: "storm", Swing: "off"},
	} {
		if code, err := lg2.encode(s); err == nil {
			t.Errorf("LG %+v: got %v, want an error", s, code)
		}
		if code, err := encodeSamsung(s); err == nil {
			t.Errorf("Samsung %+v: got %v, want an error", s, code)
		}
	}
}

func FuzzDecode(f *testing.F) {
	seed := func(durations []uint32) {
		var b []byte
		for _, d := range durations {
			b = binary.BigEndian.AppendUint16(b, uint16(d))
		}
		f.Add(b)
	}
	seed(lg2.signal(lgOff).Durations)
	seed(samsungSignal(samsungSection{0x02, 0x02, 0, 0, 0, 0, 0xF0}, samsungSection{0x01, 0x02, 0xA0, 0x71, 0x80, 0x19, 0xF0}).Durations)
	f.Fuzz(func(t *testing.T, b []byte) {
		var durations []uint32
		for ; len(b) > 1; b = b[2:] {
			durations = append(durations, uint32(binary.BigEndian.Uint16(b)))
		}
		if s, err := Decode(durations); err == nil && s.Mode != "" && (s.Celsius < 16 || s.Celsius > 30 || s.Fan == "") {
			t.Errorf("got invalid setting %+v", s)
		}
	})
}
