package ir

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/protocol"
)

// packet encodes durations as a Broadlink remote does.
func packet(durations []uint32) []byte {
	var body []byte
	for _, d := range durations {
		if ticks := (d*tickDenominator + tickNumerator/2) / tickNumerator; ticks < 256 {
			body = append(body, byte(ticks))
		} else {
			body = binary.BigEndian.AppendUint16(append(body, 0), uint16(ticks))
		}
	}
	body = append(body, 0x00, 0x0D, 0x05)
	b := binary.LittleEndian.AppendUint16([]byte{0x26, 0}, uint16(len(body)))
	b = append(b, body...)
	for len(b)%16 != 0 {
		b = append(b, 0)
	}
	return b
}

func packetBase64(durations []uint32) string {
	return base64.StdEncoding.EncodeToString(packet(durations))
}

// alike compares durations and allows for the rounding to ticks.
func alike(a, b []uint32) bool {
	return slices.EqualFunc(a, b, func(x, y uint32) bool { return max(x, y)-min(x, y) <= 16 })
}

var off = lg2.signal(lgOff).Durations

func TestLGFrames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]uint32{
		"전원 끄기":       {0x88C0051},
		"냉방/24/강/고정":  {0x880094D, lgSwingOff}, // 0+0+9+4 = D
		"난방/30/자동/회전": {0x8804F58, lgSwingOn},  // 0+4+F+5 = 18
		"송풍/약/고정":     {0x880290B, lgSwingOff},
	} {
		found := false
		for leaf, code := range LG2().Leaves() {
			if strings.Join(leaf, "/") != path {
				continue
			}
			found = true
			var words []uint32
			for _, s := range code {
				words = append(words, lgWord(t, s))
			}
			if !slices.Equal(words, want) {
				t.Errorf("%s: got frames %X, want %X", path, words, want)
			}
		}
		if !found {
			t.Errorf("leaf %s is missing", path)
		}
	}
	if d := LG().Roots[0].Code[0].Durations; len(d) != 59 || d[0] != 8500 || d[1] != 4250 {
		t.Errorf("LG frame %v", d)
	}
}

func lgWord(t *testing.T, s Signal) uint32 {
	t.Helper()
	if s.CarrierHz != 38000 || len(s.Durations) != 59 {
		t.Fatalf("%d durations at %d Hz", len(s.Durations), s.CarrierHz)
	}
	var word uint32
	for i := 3; i < 58; i += 2 {
		word <<= 1
		if s.Durations[i] > 1000 {
			word |= 1
		}
	}
	return word
}

// TestBuiltInSetsFitTheProtocol checks that every option fits into a status and that leaf ids are unique.
func TestBuiltInSetsFitTheProtocol(t *testing.T) {
	t.Parallel()
	for _, set := range []*CodeSet{LG(), LG2(), Samsung()} {
		unit := protocol.AirConditioner{Name: "main", Options: set.Options()}
		v := protocol.Inventory{AirConditioners: []protocol.AirConditioner{unit}}
		if _, err := protocol.Encode(protocol.Status{State: protocol.Online, BootID: "b", Inventory: &v}); err != nil {
			t.Error(err)
		}
		ids := make(map[string]bool)
		n := 0
		for path, code := range set.Leaves() {
			n++
			ids[protocol.LeafID("gangnam", "main", path...)] = true
			if len(code) == 0 {
				t.Errorf("%v has no code", path)
			}
		}
		if len(ids) != n {
			t.Errorf("%d ids for %d leaves", len(ids), n)
		}
	}
}

func TestBroadlink(t *testing.T) {
	t.Parallel()
	good := packet(off)
	for name, b := range map[string][]byte{
		"as sent":           good,
		"without padding":   good[:4+int(good[2])],
		"gap cut off":       good[:4+int(good[2])-1],
		"gap and its zero":  good[:4+int(good[2])-2],
		"length too short":  append([]byte{0x26, 0, good[2] - 1, 0}, good[4:]...),
		"length too long":   append([]byte{0x26, 0, 0xFF, 0xFF}, good[4:4+int(good[2])]...),
		"with repeat count": append([]byte{0x26, 2}, good[2:]...),
	} {
		s, err := Broadlink(b)
		if err != nil || s.CarrierHz != 38000 || !alike(s.Durations, off) {
			t.Errorf("%s: %v, %v", name, s.Durations, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "a header": good[:4], "a radio code": append([]byte{0xB2}, good[1:]...), "one mark": {0x26, 0, 1, 0, 50},
		"a duration of 0": {0x26, 0, 6, 0, 50, 0, 0, 0, 50, 50}, "an hour": append([]byte{0x26, 0, 0xFF, 0}, []byte(strings.Repeat("\x00\xff\xff", 85))...),
	} {
		if s, err := Broadlink(b); err == nil {
			t.Errorf("%s: got %v, want an error", name, s)
		}
	}
}

// TestTick uses the header of LG2, which is 3200/9900 µs and was captured as 104 to 108 and 323 to 324 ticks.
func TestTick(t *testing.T) {
	t.Parallel()
	s, err := Broadlink([]byte{0x26, 0, 5, 0, 105, 0x00, 0x01, 0x44, 16})
	if err != nil || s.Durations[0] != 3198 || s.Durations[1] != 9867 {
		t.Errorf("%v, %v", s.Durations, err)
	}
}

func TestPublishedBase64(t *testing.T) {
	t.Parallel()
	text := packetBase64(off)
	for name, text := range map[string]string{
		"as it is": text, "line breaks": text[:20] + "\n" + text[20:40] + "\r\n " + text[40:], "no padding": strings.TrimRight(text, "="),
		"too much padding": strings.TrimRight(text, "=") + "===", "garbage after the end": strings.TrimRight(text, "=") + "==AAAA",
		"a surplus character": strings.TrimRight(base64.StdEncoding.EncodeToString(append(packet(off), make([]byte, (3-len(packet(off))%3)%3)...)), "=") + "A",
	} {
		if s, err := broadlinkBase64(text); err != nil || !alike(s.Durations, off) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := broadlinkHex(hex.EncodeToString(packet(off))); err != nil || !alike(s.Durations, off) {
		t.Errorf("hex: %v", err)
	}
}

func TestPronto(t *testing.T) {
	t.Parallel()
	s, err := Pronto("0000 006D 0002 0000 0156 00AB 0015 0689")
	if err != nil || s.CarrierHz != 38029 || !slices.Equal(s.Durations, []uint32{8993, 4497, 552}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = Pronto("0000 006D 0000 0002 0156 00AB 0015 0689"); err != nil || len(s.Durations) != 3 {
		t.Errorf("repeated part only: %+v, %v", s, err)
	}
	for _, text := range []string{"", "0000", "0100 006D 0001 0000 0001 0001", "0000 0000 0002 0000 0001 0001 0001 0001", "0000 006D 0003 0000 0156 00AB 0015 0689",
		"0000 006D FFFF FFFF", "0000 006D 0002 0000 0156 00AB 0015 zzzz", "0 6D 2 0 1 1 1 1"} {
		if s, err := Pronto(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, s)
		}
	}
}

func TestRaw(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[3198,-9806,480]", "3198 -9806 480 -39750", "3198, 9806, 480", " [ 3198, -9806,\n480 ] "} {
		if s, err := Raw(text); err != nil || !slices.Equal(s.Durations, []uint32{3198, 9806, 480}) {
			t.Errorf("%q: %v, %v", text, s.Durations, err)
		}
	}
	for _, text := range []string{"", "[]", "[1,-2", "1 -2", "3198,9806,-480", "-1 2 -3", "1 x 3", "100 0 100", "9999999999 1 1", "4000000 1 1"} {
		if s, err := Raw(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, s)
		}
	}
}

// smartIR builds a small file with the irregularities of published files.
func smartIR(t testing.TB, swing bool) []byte {
	t.Helper()
	code := packetBase64(off)
	temperatures := map[string]any{"18": code, "9.0": code, "24.5": code, "_note": "captured on Monday"}
	var speeds any = temperatures
	file := map[string]any{
		"manufacturer": "LG", "supportedModels": []string{"S09"}, "supportedController": "Broadlink", "commandsEncoding": "Base64",
		"operationModes": []string{"heat", "cool", "ai"}, "fanModes": []string{"low", "mid", "medium"},
	}
	if swing {
		file["swingModes"] = []string{"off", "swing"}
		speeds = map[string]any{"swing": temperatures, "off": temperatures}
	}
	file["commands"] = map[string]any{
		"off": code, "_comment": "off works",
		"cool": map[string]any{"medium": speeds, "mid": speeds, "low": map[string]any{"18": "", "19": nil}},
		"heat": map[string]any{"low": speeds, "brk": map[string]any{"20": "!!!", "21": code}},
		"ai":   []string{code, code},
		"cold": map[string]any{},
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSmartIR(t *testing.T) {
	t.Parallel()
	for swing, want := range map[bool][]string{
		false: {"전원 끄기", "ai x2", "난방/9/약", "난방/18/약", "난방/21/brk", "난방/24.5/약",
			"냉방/9/중", "냉방/9/medium", "냉방/18/중", "냉방/18/medium", "냉방/24.5/중", "냉방/24.5/medium"},
		true: {"전원 끄기", "ai x2", "난방/9/약/고정", "난방/9/약/회전", "난방/18/약/고정", "난방/18/약/회전", "난방/21/brk", "난방/24.5/약/고정", "난방/24.5/약/회전",
			"냉방/9/중/고정", "냉방/9/중/회전", "냉방/9/medium/고정", "냉방/9/medium/회전", "냉방/18/중/고정", "냉방/18/중/회전", "냉방/18/medium/고정", "냉방/18/medium/회전",
			"냉방/24.5/중/고정", "냉방/24.5/중/회전", "냉방/24.5/medium/고정", "냉방/24.5/medium/회전"},
	} {
		s, err := ParseSmartIR(smartIR(t, swing))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for path, code := range s.Codes.Leaves() {
			leaf := strings.Join(path, "/")
			if len(code) > 1 {
				leaf += fmt.Sprintf(" x%d", len(code))
			}
			if !alike(code[0].Durations, off) {
				t.Errorf("%s: got durations %v, want the off frame", leaf, code[0].Durations)
			}
			got = append(got, leaf)
		}
		if !slices.Equal(got, want) {
			t.Errorf("leaves\n%q\nwant\n%q", got, want)
		}
		if s.Manufacturer != "LG" || len(s.Models) != 1 || len(s.Skipped) != 1 || !strings.HasPrefix(s.Skipped[0], "heat/brk/20: ") {
			t.Errorf("%+v", s)
		}
	}
}

func TestInvalidSmartIR(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "null", "{}", "[]", `{"commandsEncoding":"Base64"}`, `{"commandsEncoding":"Base64","commands":{}}`,
		`{"commandsEncoding":"Xiaomi","commands":{"off":"x"}}`, `{"commandsEncoding":"Base64","commands":{"off":"x"}}`,
		`{"commandsEncoding":"Raw","commands":"[1,2,3]"}`} {
		if s, err := ParseSmartIR([]byte(data)); err == nil {
			t.Errorf("%s: got %+v, want an error", data, s)
		}
	}
}

// TestLabelsNeverCollide checks that siblings have different names for any keys of a file.
func TestLabelsNeverCollide(t *testing.T) {
	t.Parallel()
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"mid", "medium", "med", "중", "MID", "off", "stop", "고정", "고정 2", "18", "18.0", "1.8e1"}), 1, 12, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for _, key := range keys.Draw(t, "keys") {
			nodes = append(nodes, Node{Name: key, Code: Code{}})
		}
		label(nodes, speedLabels)
		seen := make(map[string]bool)
		for _, n := range nodes {
			if seen[n.Name] {
				t.Fatalf("duplicate %q in %v", n.Name, nodes)
			}
			seen[n.Name] = true
		}
	})
}

func FuzzParseSmartIR(f *testing.F) {
	f.Add(smartIR(f, false))
	f.Add(smartIR(f, true))
	f.Add([]byte(`{"commandsEncoding":"Raw","commands":{"off":[1,-2,3],"cool":{"18":"1 2 3"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSmartIR(data)
		if err != nil {
			return
		}
		for path, code := range s.Codes.Leaves() {
			for _, signal := range code {
				checkSignal(t, signal)
			}
			if len(code) == 0 || len(path) == 0 {
				t.Errorf("leaf %v with %d signals", path, len(code))
			}
		}
		v := protocol.Inventory{AirConditioners: []protocol.AirConditioner{{Name: "main", Options: s.Codes.Options()}}}
		if err := (protocol.Status{State: protocol.Online, BootID: "b", Inventory: &v}).Validate(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzSignals(f *testing.F) {
	f.Add(packetBase64(off))
	f.Add("0000 006D 0002 0000 0156 00AB 0015 0689")
	f.Add("[3198,-9806,480]")
	f.Fuzz(func(t *testing.T, text string) {
		for _, decode := range decoders {
			if s, err := decode(text); err == nil {
				checkSignal(t, s)
			}
		}
		if s, err := Broadlink([]byte(text)); err == nil {
			checkSignal(t, s)
		}
	})
}

// checkSignal checks the properties that transmitters rely on.
func checkSignal(t *testing.T, s Signal) {
	t.Helper()
	if len(s.Durations)%2 == 0 || len(s.Durations) < 3 || slices.Contains(s.Durations, 0) || s.CarrierHz < 20_000 || s.CarrierHz > 60_000 {
		t.Errorf("invalid signal %+v", s)
	}
}
