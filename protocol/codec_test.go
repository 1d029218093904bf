package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata/*.json from the samples")

const (
	sampleRequest = "0d3b0f34-9c1e-4b7a-8f62-5d6a0c1b2e3f"
	sampleNonce   = "AAECAwQFBgcICQoLDA0ODw"
)

func sampleGrant() Grant {
	return Grant{
		Branch: "gangnam", RequestID: sampleRequest, Nonce: sampleNonce, Doors: []string{"front_1", "front_2"}, PulseMs: 3000,
	}.Sign(sampleKey)
}

func sampleKeys() KeyList {
	return KeyList{Epoch: 2, Keys: []string{base64.StdEncoding.EncodeToString(sampleKey.Public().(ed25519.PublicKey))}}.Sign(sampleKey)
}

func samples() map[string]Message {
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	return map[string]Message{
		"ask":              Ask{RequestID: sampleRequest, Doors: []string{"room_3"}},
		"claim":            Claim{RequestID: sampleRequest, Nonce: sampleNonce},
		"grant":            sampleGrant(),
		"deny":             Deny{RequestID: sampleRequest, Nonce: sampleNonce, Reason: "request is too old"},
		"result":           Result{RequestID: sampleRequest, Nonce: sampleNonce, Device: "room_3", Outcome: Opened, EnergizedMs: 12},
		"climate-command":  ClimateCommand{RequestID: sampleRequest, AirConditionerID: LeafID("gangnam", "main", "cool", "24")},
		"climate-result":   ClimateResult{RequestID: sampleRequest, AirConditionerID: LeafID("gangnam", "main", "cool", "24"), Outcome: ClimateSent},
		"sensors-read":     SensorsRead{RequestID: sampleRequest},
		"sensors-readings": SensorsReadings{RequestID: sampleRequest, Readings: []Reading{{Location: "로비", Celsius: 23.5, RelativeHumidity: 46.2}}},
		"keys":             sampleKeys(),
		"brokers":          BrokerList{Epoch: 2, Brokers: []string{"wss://a.example.com/mqtt", "wss://b.example.com/mqtt"}}.Sign(sampleKey),
		"update": Update{Version: "1.2.0", Packages: []Package{SignPackage(sampleKey, "1.2.0", Package{
			Architecture: "arm64", URL: "https://packages.example/yeolda-agent_1.2.0_arm64.deb", SHA256: strings.Repeat("0a", 32)})}},
		"credential-rotate": Rekey{Rotation: sampleNonce},
		"credential-new": Rekeyed{Rotation: sampleNonce, PublicKey: base64.StdEncoding.EncodeToString(sampleKey.Public().(ed25519.PublicKey)),
			PasswordHash: base64.StdEncoding.EncodeToString(make([]byte, 32))},
		"settings":      sampleSettings(),
		"settings-file": SettingsFile{Base: 3, Text: sampleSettings().Text},
		"diagnostics":   sampleDiagnostics(),
		"diagnostics-log": DiagnosticsLog{Dropped: 3, Lines: []LogLine{
			{At: at, Level: "INFO", Text: "door request=" + sampleRequest + " device=room_3 outcome=opened"}}},
		"diagnostics-report": DiagnosticsReport{Request: sampleNonce, Text: "ok    settings     3 doors\n"},
		"status-with-diagnostics": Status{State: Online, BootID: "b1", Connection: 2,
			Inventory:   &Inventory{Doors: []Door{}, AirConditioners: []AirConditioner{}, Sensors: []string{}},
			Diagnostics: &DiagnosticsStatus{Nonce: sampleNonce, Request: sampleNonce},
		},
		"heartbeat":      Heartbeat{BootID: "b1", Connection: 2, UptimeMs: 65000},
		"status-offline": Status{State: Offline, BootID: "b1", Connection: 2},
		"status-online": Status{State: Online, BootID: "b1", Connection: 2, AgentVersion: "1.0.0", StartedAt: at,
			Inventory: &Inventory{
				Doors: []Door{{Device: "front_1", Kind: DoorFront, Sense: true}, {Device: "room_3", Kind: DoorRoom, Contact: true}},
				AirConditioners: []AirConditioner{{Name: "main", Options: []Option{
					{Name: "전원 끄기"}, {Name: "냉방", Children: []Option{{Name: "24"}, {Name: "25"}}},
				}}},
				Sensors: []string{"로비"},
			},
			SelfTest: []SelfTest{{Name: "relay front_1", OK: true}, {Name: "relay room_3", Detail: "was energised at start"}},
			Contacts: []Contact{{Device: "room_3", Open: true, ForMs: 4200}}, KeyEpoch: 2,
			Update: &UpdateStatus{Version: "1.2.0", State: UpdateRolledBack, Detail: "no connection"},
		},
		"status-with-settings": Status{State: Online, BootID: "b1", Connection: 2,
			Inventory:   &Inventory{Doors: []Door{}, AirConditioners: []AirConditioner{}, Sensors: []string{}},
			Settings:    &SettingsStatus{Version: 3, Highest: 5, Trial: 5, Ended: &SettingsOutcome{4, SettingsRolledBack, "not connected within 2m0s"}},
			BrokerEpoch: new(uint64(2)),
		},
		"beacon":          sampleBeacon(),
		"pass-list":       samplePasses(),
		"pass-applied":    PassApplied{Epoch: 3, Version: 14},
		"pass-entry":      sampleEntry(),
		"pass-ack":        PassAck{Journal: sampleNonce, Entry: 7},
		"heartbeat-nonce": Heartbeat{BootID: "b1", Connection: 2, UptimeMs: 65000, Nonce: sampleNonce},
		"status-with-passes": Status{State: Online, BootID: "b1", Connection: 2,
			Inventory: &Inventory{Doors: []Door{{Device: "front_1", Kind: DoorFront}}, AirConditioners: []AirConditioner{}, Sensors: []string{}, Keypads: []string{"front_1"}},
			SealKey:   base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{4}, 32)),
			Passes:    &AppliedPasses{Epoch: 3, Version: 14, Clock: ClockTrusted},
		},
		"telemetry-by-pass": Telemetry{At: at, Events: []Event{{Kind: EventEnergized, Device: "room_3", Source: SourcePIN}}},
		"telemetry": Telemetry{At: at, Readings: []Reading{{Location: "로비", Celsius: -3, RelativeHumidity: 100}},
			Events: []Event{{Kind: EventReleased, Device: "room_3", RequestID: sampleRequest, EnergizedMs: 3001}}},
	}
}

func decodeAs(m Message, payload []byte) (Message, error) {
	switch m.(type) {
	case Ask:
		return Decode[Ask](payload)
	case Claim:
		return Decode[Claim](payload)
	case Grant:
		return Decode[Grant](payload)
	case Deny:
		return Decode[Deny](payload)
	case Result:
		return Decode[Result](payload)
	case ClimateCommand:
		return Decode[ClimateCommand](payload)
	case ClimateResult:
		return Decode[ClimateResult](payload)
	case SensorsRead:
		return Decode[SensorsRead](payload)
	case SensorsReadings:
		return Decode[SensorsReadings](payload)
	case KeyList:
		return Decode[KeyList](payload)
	case BrokerList:
		return Decode[BrokerList](payload)
	case Update:
		return Decode[Update](payload)
	case Rekey:
		return Decode[Rekey](payload)
	case Rekeyed:
		return Decode[Rekeyed](payload)
	case Settings:
		return Decode[Settings](payload)
	case SettingsFile:
		return Decode[SettingsFile](payload)
	case Diagnostics:
		return Decode[Diagnostics](payload)
	case DiagnosticsLog:
		return Decode[DiagnosticsLog](payload)
	case DiagnosticsReport:
		return Decode[DiagnosticsReport](payload)
	case Heartbeat:
		return Decode[Heartbeat](payload)
	case Status:
		return Decode[Status](payload)
	case Telemetry:
		return Decode[Telemetry](payload)
	case Beacon:
		return Decode[Beacon](payload)
	case PassList:
		return Decode[PassList](payload)
	case PassApplied:
		return Decode[PassApplied](payload)
	case PassEntry:
		return Decode[PassEntry](payload)
	case PassAck:
		return Decode[PassAck](payload)
	}
	panic("unknown message")
}

// TestGolden keeps the bytes on the wire: agents in the field do not change with the code.
func TestGolden(t *testing.T) {
	t.Parallel()
	seen := make(map[Kind]bool)
	for name, m := range samples() {
		seen[m.Kind()] = true
		file := filepath.Join("testdata", name+".json")
		payload, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		payload = append(payload, '\n')
		if *update {
			if err := os.WriteFile(file, payload, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(payload, golden) {
			t.Errorf("%s is now written as\n%swas\n%s", name, payload, golden)
		}
		back, err := decodeAs(m, golden)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, m) {
			t.Errorf("%s is read as\n%#v\nwant\n%#v", name, back, m)
		}
	}
	for k := range Kinds() {
		if !seen[k] {
			t.Errorf("no sample of %s", k)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	valid := `"requestId":"` + sampleRequest + `","doors":["room_3"]`
	cases := map[string]string{
		"nothing":             ``,
		"null":                `null`,
		"an array":            `[{` + valid + `}]`,
		"two values":          `{` + valid + `}{}`,
		"trailing text":       `{` + valid + `}x`,
		"cut off":             `{` + valid,
		"a field twice":       `{` + valid + `,"doors":["front_1"]}`,
		"twice but for case":  `{` + valid + `,"DOORS":["front_1"]}`,
		"twice further down":  `{` + valid + `,"x":[{"a":1,"a":2}]}`,
		"not UTF-8":           `{` + valid + `,"x":"` + "\xff" + `"}`,
		"a wrong type":        `{"requestId":7,"doors":["room_3"]}`,
		"missing doors":       `{"requestId":"` + sampleRequest + `"}`,
		"an upper-case id":    `{"requestId":"` + strings.ToUpper(sampleRequest) + `","doors":["room_3"]}`,
		"a braced id":         `{"requestId":"{` + sampleRequest + `}","doors":["room_3"]}`,
		"a door twice":        `{"requestId":"` + sampleRequest + `","doors":["room_3","room_3"]}`,
		"an unknown door":     `{"requestId":"` + sampleRequest + `","doors":["roof_1"]}`,
		"a door without one":  `{"requestId":"` + sampleRequest + `","doors":["room_"]}`,
		"a door 03":           `{"requestId":"` + sampleRequest + `","doors":["room_03"]}`,
		"a door in a topic":   `{"requestId":"` + sampleRequest + `","doors":["room_3/#"]}`,
		"too deep":            `{` + valid + `,"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
		"too many doors":      `{"requestId":"` + sampleRequest + `","doors":["room_1"` + strings.Repeat(`,"room_2"`, 16) + `]}`,
		"too large a payload": `{` + valid + `,"x":"` + strings.Repeat("x", MaxPayload) + `"}`,
	}
	for name, payload := range cases {
		_, err := Decode[Ask]([]byte(payload))
		if want := map[bool]error{true: ErrTooLarge, false: ErrMalformed}[len(payload) > MaxPayload]; !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	if _, err := Decode[Ask]([]byte(`{` + valid + `,"since":"v2","more":{"a":[1,{"a":2}]}}`)); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	grant := func(change func(*Grant)) Grant {
		g := sampleGrant()
		change(&g)
		return g
	}
	inventory := func(v Inventory) Status { return Status{State: Online, BootID: "b", Inventory: &v} }
	deep := []Option{{Name: "leaf"}}
	for range maxOptions {
		deep = []Option{{Name: "inner", Children: deep}}
	}
	for name, m := range map[string]Message{
		"a short nonce":           Claim{RequestID: sampleRequest, Nonce: sampleNonce[:21]},
		"a nonce with spare bits": Claim{RequestID: sampleRequest, Nonce: sampleNonce[:21] + "x"},
		"a nonce with a newline":  Claim{RequestID: sampleRequest, Nonce: sampleNonce[:21] + "\nw"},
		"a pulse of 0":            grant(func(g *Grant) { g.PulseMs = 0 }),
		"a pulse without an end":  grant(func(g *Grant) { g.PulseMs = 1 << 31 }),
		"a wildcard branch":       grant(func(g *Grant) { g.Branch = "+" }),
		"an unsigned grant":       grant(func(g *Grant) { g.Signature = "" }),
		"an unknown outcome":      Result{RequestID: sampleRequest, Device: "room_1", Outcome: "OPENED"},
		"a long detail":           Result{RequestID: sampleRequest, Device: "room_1", Outcome: Failed, Detail: strings.Repeat("x", 241)},
		"a detail with newlines":  Result{RequestID: sampleRequest, Device: "room_1", Outcome: Failed, Detail: "a\nb"},
		"a leaf id of old":        ClimateCommand{RequestID: sampleRequest, AirConditionerID: "1"},
		"a temperature of 851":    SensorsReadings{RequestID: sampleRequest, Readings: []Reading{{Location: "a", Celsius: 851}}},
		"a nameless place":        SensorsReadings{RequestID: sampleRequest, Readings: []Reading{{Celsius: 20}}},
		"online without devices":  Status{State: Online, BootID: "b"},
		"a state of neither":      Status{State: "away", BootID: "b"},
		"a status without a boot": Status{State: Offline},
		"a room as a front door":  inventory(Inventory{Doors: []Door{{Device: "room_1", Kind: DoorFront}}}),
		"two doors of one name":   inventory(Inventory{Doors: []Door{{Device: "room_1", Kind: DoorRoom}, {Device: "room_1", Kind: DoorRoom}}}),
		"two units of one name":   inventory(Inventory{AirConditioners: []AirConditioner{{Name: "a"}, {Name: "a"}}}),
		"two options of one name": inventory(Inventory{AirConditioners: []AirConditioner{{Name: "a", Options: []Option{{Name: "x"}, {Name: "x"}}}}}),
		"options without end":     inventory(Inventory{AirConditioners: []AirConditioner{{Name: "a", Options: deep}}}),
		"an event of no kind":     Telemetry{Events: []Event{{Device: "room_1"}}},
		"an event of no device":   Telemetry{Events: []Event{{Kind: EventReleased}}},
	} {
		if _, err := Encode(m); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
}

// TestStatusOfALargeBranchFits: a unit in each of eight rooms, each with 5 modes, 15 temperatures and 4 fan speeds.
func TestStatusOfALargeBranchFits(t *testing.T) {
	t.Parallel()
	var v Inventory
	for unit := range 8 {
		var modes []Option
		for _, mode := range []string{"자동", "냉방", "제습", "난방", "송풍"} {
			var temperatures []Option
			for temperature := 16; temperature <= 30; temperature++ {
				fans := []Option{{Name: "자동"}, {Name: "약"}, {Name: "중"}, {Name: "강"}}
				temperatures = append(temperatures, Option{Name: strconv.Itoa(temperature), Children: fans})
			}
			modes = append(modes, Option{Name: mode, Children: temperatures})
		}
		v.AirConditioners = append(v.AirConditioners, AirConditioner{Name: strconv.Itoa(unit), Options: modes})
	}
	if _, err := Encode(Status{State: Online, BootID: "b", Inventory: &v}); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		payload, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, m := range samples() {
			got, err := decodeAs(m, payload)
			if err != nil {
				continue
			}
			// An accepted message can be encoded, and decodes to the same message.
			again, err := Encode(got)
			if errors.Is(err, ErrTooLarge) {
				continue // escapes made it longer
			}
			if err != nil {
				t.Fatalf("%T accepted but not written: %v", got, err)
			}
			back, err := decodeAs(m, again)
			if err != nil {
				t.Fatalf("%s accepted but not read back: %v", again, err)
			}
			twice, err := Encode(back)
			if err != nil || !bytes.Equal(again, twice) {
				t.Fatalf("%s became %s (%v)", again, twice, err)
			}
		}
	})
}

// FuzzCheckObject: it relies on its text being valid JSON, and must never read beyond it.
func FuzzCheckObject(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b\u0062":"\\\""},[]],"c":{}}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if json.Valid(text) {
			_ = checkObject(text)
		}
	})
}

func TestClip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "text"))
		clipped := Clip(s)
		if err := checkText("detail", clipped, maxDetail, false); err != nil || !utf8.ValidString(clipped) {
			t.Fatalf("Clip(%q) = %q: %v", s, clipped, err)
		}
		if checkText("detail", s, maxDetail, false) == nil && utf8.ValidString(s) && clipped != s {
			t.Fatalf("Clip(%q) = %q", s, clipped)
		}
	})
	if got := Clip(strings.Repeat("가", 100)); got != strings.Repeat("가", 80) {
		t.Errorf("Clip cuts a letter: %q", got)
	}
}
