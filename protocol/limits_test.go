package protocol

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These tables stand on both sides of every limit: the last value that is allowed and the first that is not.

// many makes n values that differ.
func many[T any](n int, value func(i int) T) []T {
	values := make([]T, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func letters(n int) string { return strings.Repeat("x", n) }

func online(v Inventory) Status { return Status{State: Online, BootID: "b", Inventory: &v} }

// nested is a tree of options with so many levels.
func nested(levels int) []Option {
	var options []Option
	for range levels {
		options = []Option{{Name: "option", Children: options}}
	}
	return options
}

func TestLengths(t *testing.T) {
	t.Parallel()
	room := func(i int) string { return fmt.Sprintf("room_%d", i+1) }
	reading := func(i int) Reading { return Reading{Location: room(i)} }
	location := func(n int) []Reading { return []Reading{{Location: letters(n)}} }
	unit := func(u AirConditioner) Status { return online(Inventory{AirConditioners: []AirConditioner{u}}) }
	leaf := LeafID("gangnam", "main", "cool")
	withKDF := func(change func(*KDF)) Message { l := samplePasses(); change(&l.KDF); return l }
	for name, c := range map[string]struct {
		min, max int
		of       func(n int) Message
	}{
		"doors of an ask":    {1, 16, func(n int) Message { return Ask{RequestID: sampleRequest, Doors: many(n, room)} }},
		"reason of a denial": {0, 240, func(n int) Message { return Deny{RequestID: sampleRequest, Nonce: sampleNonce, Reason: letters(n)} }},
		"detail of an outcome": {0, 240, func(n int) Message {
			return Result{RequestID: sampleRequest, Device: "room_1", Outcome: Failed, Detail: letters(n)}
		}},
		"detail of a climate outcome": {0, 240, func(n int) Message {
			return ClimateResult{RequestID: sampleRequest, AirConditionerID: leaf, Outcome: ClimateFailed, Detail: letters(n)}
		}},
		"detail of an event": {0, 240, func(n int) Message {
			return Telemetry{Events: []Event{{Kind: EventRelayError, Device: "room_1", Detail: letters(n)}}}
		}},
		"events": {0, 64, func(n int) Message {
			return Telemetry{Events: many(n, func(int) Event { return Event{Kind: EventDoorOpened, Device: "room_1"} })}
		}},
		"readings of telemetry": {0, 64, func(n int) Message { return Telemetry{Readings: many(n, reading)} }},
		"readings asked for":    {0, 64, func(n int) Message { return SensorsReadings{RequestID: sampleRequest, Readings: many(n, reading)} }},
		"location of a reading": {1, 100, func(n int) Message { return Telemetry{Readings: location(n)} }},
		"boot id":               {1, 36, func(n int) Message { return Heartbeat{BootID: letters(n)} }},
		"version of the agent":  {0, 100, func(n int) Message { return Status{State: Offline, BootID: "b", AgentVersion: letters(n)} }},
		"self-tests": {0, 512, func(n int) Message {
			return Status{State: Offline, BootID: "b", SelfTest: many(n, func(i int) SelfTest { return SelfTest{Name: room(i)} })}
		}},
		"name of a self-test": {1, 100, func(n int) Message {
			return Status{State: Offline, BootID: "b", SelfTest: []SelfTest{{Name: letters(n)}}}
		}},
		"detail of a self-test": {0, 240, func(n int) Message {
			return Status{State: Offline, BootID: "b", SelfTest: []SelfTest{{Name: "a", Detail: letters(n)}}}
		}},
		"doors of a branch": {0, 256, func(n int) Message {
			return online(Inventory{Doors: many(n, func(i int) Door { return Door{Device: room(i), Kind: DoorRoom} })})
		}},
		"units": {0, 64, func(n int) Message {
			return online(Inventory{AirConditioners: many(n, func(i int) AirConditioner { return AirConditioner{Name: room(i)} })})
		}},
		"sensors":                {0, 64, func(n int) Message { return online(Inventory{Sensors: many(n, room)}) }},
		"name of a sensor":       {1, 100, func(n int) Message { return online(Inventory{Sensors: []string{letters(n)}}) }},
		"name of a unit":         {1, 100, func(n int) Message { return unit(AirConditioner{Name: letters(n)}) }},
		"name of an option":      {1, 100, func(n int) Message { return unit(AirConditioner{Name: "a", Options: []Option{{Name: letters(n)}}}) }},
		"levels of options":      {0, 8, func(n int) Message { return unit(AirConditioner{Name: "a", Options: nested(n)}) }},
		"signature of a grant":   {86, 86, func(n int) Message { g := sampleGrant(); g.Signature = letters(n); return g }},
		"branch of a grant":      {1, 63, func(n int) Message { g := sampleGrant(); g.Branch = letters(n); return g }},
		"pulse in milliseconds":  {500, 10_000, func(n int) Message { g := sampleGrant(); g.PulseMs = uint32(n); return g }},
		"digits of a request id": {36, 36, func(n int) Message { return SensorsRead{RequestID: (sampleRequest + "0")[:n]} }},
		"signature keys": {1, 8, func(n int) Message {
			l := sampleKeys()
			l.Keys = many(n, func(int) string { return sampleKeys().Keys[0] })
			return l
		}},
		"brokers": {0, 16, func(n int) Message { return BrokerList{Epoch: 1, Brokers: many(n, room), Signature: letters(86)} }},
		"packages": {1, 8, func(n int) Message {
			return Update{Version: "1.2.0", Packages: many(n, func(int) Package { return samplePackage() })}
		}},
		"version of a package": {1, 64, func(n int) Message {
			return Update{Version: strings.Repeat("1", n), Packages: []Package{samplePackage()}}
		}},
		"age in milliseconds": {0, 3_600_000, func(n int) Message { return Telemetry{AgeMs: uint32(n)} }},
		"contacts": {0, 256, func(n int) Message {
			return Status{State: Offline, BootID: "b", Contacts: many(n, func(i int) Contact { return Contact{Device: room(i)} })}
		}},
		"keypads":           {0, 256, func(n int) Message { return online(Inventory{Keypads: many(n, room)}) }},
		"kdf time":          {1, 16, func(n int) Message { return withKDF(func(k *KDF) { k.Time = uint32(n) }) }},
		"kdf memory in KiB": {32, 256 << 10, func(n int) Message { return withKDF(func(k *KDF) { k.MemoryKiB = uint32(n) }) }},
		"kdf threads":       {1, 4, func(n int) Message { return withKDF(func(k *KDF) { k.Threads = uint32(n) }) }},
		"bytes of a salt": {16, 64, func(n int) Message {
			return withKDF(func(k *KDF) { k.Salt = base64.StdEncoding.EncodeToString(make([]byte, n)) })
		}},
		"bytes of a verifier":  {32, 32, func(n int) Message { return withVerifier(base64.StdEncoding.EncodeToString(make([]byte, n))) }},
		"year of a beacon":     {2000, 2099, func(n int) Message { m := sampleBeacon(); m.Time = m.Time.AddDate(n-m.Time.Year(), 0, 0); return m }},
		"letters of a leaf id": {20, 20, func(n int) Message { return ClimateCommand{RequestID: sampleRequest, AirConditionerID: letters(n)} }},
	} {
		for n, ok := range map[int]bool{c.min - 1: false, c.min: true, c.max: true, c.max + 1: false} {
			if n < 0 {
				continue
			}
			if err := c.of(n).Validate(); (err == nil) != ok {
				t.Errorf("%s: %d: error %v, want allowed %v", name, n, err, ok)
			}
		}
	}
}

func withVerifier(verifier string) Message {
	l := samplePasses()
	l.Passes[0].Verifier = verifier
	return l
}

// TestTextsAndCharacters checks the characters of texts, ids and names, and their neighbours in ASCII.
func TestTextsAndCharacters(t *testing.T) {
	t.Parallel()
	at := func(i int, c string) string { return sampleRequest[:i] + c + sampleRequest[i+1:] }
	request := func(id string) Message { return SensorsRead{RequestID: id} }
	claim := func(nonce string) Message { return Claim{RequestID: sampleRequest, Nonce: nonce} }
	leaf := func(id string) Message { return ClimateCommand{RequestID: sampleRequest, AirConditionerID: id} }
	ofEvent := func(id string) Message {
		return Telemetry{Events: []Event{{Kind: EventReleased, Device: "room_1", RequestID: id}}}
	}
	device := func(name string) Message { return Result{RequestID: sampleRequest, Device: name, Outcome: Opened} }
	branch := func(code string) Message { g := sampleGrant(); g.Branch = code; return g }
	version := func(s string) Message { return Update{Version: s, Packages: []Package{samplePackage()}} }
	address := func(s string) Message {
		p := samplePackage()
		p.URL = s
		return Update{Version: "1.2.0", Packages: []Package{p}}
	}
	verifier := base64.StdEncoding.EncodeToString(make([]byte, VerifierSize))
	hash := strings.Repeat("A", 43)
	ofEntry := func(hash string) Message { e := sampleEntry(); e.Hash = hash; return e }
	pass := func(id string) Message { e := sampleEntry(); e.Pass = id; return e }
	detail := func(s string) Message { return Deny{RequestID: sampleRequest, Nonce: sampleNonce, Reason: s} }
	for name, c := range map[string]struct {
		of             func(string) Message
		allowed, never []string
	}{
		"text": {detail, []string{"", " ", "~", "\u0080", "문"}, []string{"\x00", "\x1f", "\x7f", "a\n"}},
		"request id": {request, []string{at(0, "0"), at(0, "9"), at(0, "a"), at(0, "f"), at(35, "f")},
			[]string{"", at(0, "/"), at(0, ":"), at(0, "`"), at(0, "g"), at(0, "A"), at(0, "-"), at(35, "g"), at(8, "0"), at(13, "0"), at(18, "0"), at(23, "0")}},
		"request id of an event": {ofEvent, []string{"", sampleRequest}, []string{"1", at(8, "0")}},
		"nonce": {claim, []string{sampleNonce, NewNonce()},
			[]string{"", sampleNonce + "AA", sampleNonce[:20] + "\n\n", sampleNonce[:21] + "+", sampleNonce + "\n", sampleNonce + "=="}},
		"leaf id": {leaf, []string{"abcdefghijklmnopqrst", "uvwxyz234567aaaaaaaa"},
			[]string{"", "Abcdefghijklmnopqrst", "1bcdefghijklmnopqrst", "8bcdefghijklmnopqrst", "abcdefghijklmnopqrs-"}},
		"device": {device, []string{"room_1", "front_9", "room_10", "room_4294967295"},
			[]string{"", "room", "room_", "room_0", "room_01", "room_+1", "room_-1", "room_1_1", "room_4294967296", "Room_1", "_1", "lobby_1"}},
		"version": {version, []string{"0", "9", "1a", "1z", "1A", "1Z", "10", "19", "1.+~-"},
			[]string{"", "/", ":", "a", ".1", "1/", "1:", "1`", "1{", "1@", "1[", "1_", "1 ", "1문"}},
		"address of a package": {address, []string{"http://a", "https://a/b", "https://a/" + letters(1990)},
			[]string{"https://a/" + letters(1991), "", "a", "ftp://a/b", "https:///b", "https://a/%zz"}},
		"verifier":         {withVerifier, []string{verifier}, []string{"", verifier + "\n", verifier[:43], "*" + verifier[1:], verifier[:42] + "B="}},
		"hash":             {ofEntry, []string{hash, hash[:42] + "E"}, []string{"", hash + "\n", hash[:42] + "\n", "+" + hash[1:], hash[:42] + "B", hash + "="}},
		"pass of an entry": {pass, []string{"", sampleRequest}, []string{"1", at(8, "0")}},
		"branch": {branch, []string{"a", "z", "0", "9", "a-", "a-b", "a0z9"},
			[]string{"", "-", "-a", "/", ":", "`", "{", "a/", "a:", "a`", "a{", "a,", "a.", "A", "a+", "a#", "문"}},
	} {
		for _, s := range c.allowed {
			if err := c.of(s).Validate(); err != nil {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
		for _, s := range c.never {
			if c.of(s).Validate() == nil {
				t.Errorf("%s %q is allowed", name, s)
			}
		}
	}
}

func TestReadingsInRange(t *testing.T) {
	t.Parallel()
	above := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	below := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	for _, c := range []struct {
		celsius, humidity float64
		ok                bool
	}{
		{-60, 50, true}, {below(-60), 50, false}, {150, 50, true}, {above(150), 50, false}, {math.NaN(), 50, false}, {math.Inf(1), 50, false},
		{20, 0, true}, {20, below(0), false}, {20, 100, true}, {20, above(100), false}, {20, math.NaN(), false},
	} {
		r := Reading{Location: "로비", Celsius: c.celsius, RelativeHumidity: c.humidity}
		if err := r.Validate(); (err == nil) != c.ok {
			t.Errorf("%v °C, %v %%: error %v, want allowed %v", c.celsius, c.humidity, err, c.ok)
		}
	}
}

// TestNamesStandOnce: two of a kind need two names; a unit may be called like a sensor.
func TestNamesStandOnce(t *testing.T) {
	t.Parallel()
	if err := online(Inventory{AirConditioners: []AirConditioner{{Name: "로비"}}, Sensors: []string{"로비"}}).Validate(); err != nil {
		t.Errorf("a unit and a sensor at one place: %v", err)
	}
	if online(Inventory{Sensors: []string{"로비", "로비"}}).Validate() == nil {
		t.Error("two sensors of one name are allowed")
	}
	twice := []Option{{Name: "24"}, {Name: "24"}}
	if online(Inventory{AirConditioners: []AirConditioner{{Name: "a", Options: []Option{{Name: "냉방", Children: twice}}}}}).Validate() == nil {
		t.Error("two options of one name below another are allowed")
	}
}

// ofSize is a valid status of that many bytes.
func ofSize(t *testing.T, size int) Status {
	t.Helper()
	s := Status{State: Offline, BootID: "b", SelfTest: many(512, func(int) SelfTest { return SelfTest{Name: "a", Detail: "a"} })}
	payload, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	missing := size - len(payload)
	for i := range s.SelfTest {
		more := min(missing, 239)
		s.SelfTest[i].Detail += letters(more)
		missing -= more
	}
	if missing != 0 {
		t.Fatalf("%d bytes cannot be had", size)
	}
	return s
}

func TestLargestPayload(t *testing.T) {
	t.Parallel()
	payload, err := Encode(ofSize(t, MaxPayload))
	if err != nil || len(payload) != MaxPayload {
		t.Fatalf("%d bytes: %v", len(payload), err)
	}
	if _, err := Decode[Status](payload); err != nil {
		t.Errorf("the largest payload is not read: %v", err)
	}
	if _, err := Encode(ofSize(t, MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more is written: %v", err)
	}
	if _, err := Decode[Status](append(payload, ' ')); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more is read: %v", err)
	}
}

// TestCheckObject: what must hold beyond that encoding/json can read a payload.
func TestCheckObject(t *testing.T) {
	t.Parallel()
	inside := func(open, end string, levels int) string { // the value of a field is level 1
		return `{"x":` + strings.Repeat(open, levels-1) + "1" + strings.Repeat(end, levels-1) + `}`
	}
	fields := func(n int) string {
		return "{" + strings.Join(many(n, func(i int) string { return strconv.Quote("f"+strconv.Itoa(i)) + ":true" }), " ,") + "}"
	}
	for payload, ok := range map[string]bool{
		`{}`: true, ` { "a" : {"a":1} , "b":[{"a":1}, {"a":1} ] , "c": -1.5e3 , "d":null,"e":[ ],"f":"\"}\\" } `: true, `[]`: false, `null`: false, `"a"`: false,
		`{}{}`: false, `{}1`: false, `{`: false, `{"a"`: false, `{"a":[`: false, `{"a":{"b":1,"B":2}}`: false, `{"a":[1,{"b":1,"b":2}]}`: false,
		`{"a":1,"\u0041":1}`: false, `{"a\"":1,"a":{"a":1}}`: true, `{"requestId":1,"requeſtid":1}`: false, `{"":1,"":1}`: false,
		inside(`[`, `]`, 24): true, inside(`[`, `]`, 25): false,
		inside(`{"x":`, `}`, 24): true, inside(`{"x":`, `}`, 25): false,
		fields(64): true, fields(65): false,
	} {
		if err := decode([]byte(payload), MaxPayload, new(any)); (err == nil) != ok {
			t.Errorf("%s: error %v, want allowed %v", payload, err, ok)
		}
	}
}

func TestClipAtTheLimit(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		letters(240):                       letters(240),
		letters(241):                       letters(240),
		"x" + strings.Repeat("가", 80):      "x" + strings.Repeat("가", 79), // the last letter would stand across the limit
		"xx" + strings.Repeat("가", 80):     "xx" + strings.Repeat("가", 79),
		"a\x00b\x1fc d\x7fe~":              "a b c d e~",
		"a\xffb":                           "a?b",
		letters(239) + "\xff" + letters(1): letters(239) + "?",
	} {
		if got := Clip(s); got != want {
			t.Errorf("Clip(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestListsCanBeLeftEarly: a loop over kinds or filters may end before the list does.
func TestListsCanBeLeftEarly(t *testing.T) {
	t.Parallel()
	var kinds []Kind
	for kind := range Kinds() {
		kinds = append(kinds, kind)
		break
	}
	for kind := range CloudFilters() {
		kinds = append(kinds, kind)
		break
	}
	if want := []Kind{KindDoorAsk, KindDoorClaim}; !slices.Equal(kinds, want) {
		t.Errorf("first of all and first from agents: %v, want %v", kinds, want)
	}
	for filter := range (Agent{Branch: "gangnam"}).Filters() {
		if want := "yeolda/v1/gangnam/door/ask"; filter != want {
			t.Errorf("first filter of an agent: %s, want %s", filter, want)
		}
		break
	}
}
