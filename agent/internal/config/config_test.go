package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	key1 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, ed25519.PublicKeySize))
	key2 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, ed25519.PublicKeySize))
)

// enrolled is a credentials file as enrolment writes it.
var enrolled = "YEOLDA_BRANCH=gangnam\nYEOLDA_AGENT_USERNAME=agent-gangnam-abcd2345\nYEOLDA_AGENT_PASSWORD=s=cr=t\nYEOLDA_GRANT_PUBLIC_KEYS=" + key1 + "," + key2 + "\n"

func TestCredentials(t *testing.T) {
	t.Parallel()
	got, err := parseCredentials([]byte("# the agent of Gangnam\n\n" + enrolled))
	if err != nil {
		t.Fatal(err)
	}
	want := Credentials{Branch: "gangnam", Username: "agent-gangnam-abcd2345", Password: "s=cr=t",
		GrantKeys: []ed25519.PublicKey{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCredentialsErrorsContainNoSecrets(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"", "s=cr=t", "YEOLDA_AGENT_PASSWORD s=cr=t", enrolled + enrolled,
		strings.Replace(enrolled, "YEOLDA_BRANCH=gangnam\n", "", 1),
		strings.Replace(enrolled, key2, "s=cr=t", 1),
		strings.Replace(enrolled, key2, "c=cr=t", 1),
		strings.Replace(enrolled, key1+","+key2, "", 1),
	} {
		_, err := parseCredentials([]byte(data))
		if err == nil {
			t.Errorf("%q: got no error", data)
		} else if strings.Contains(err.Error(), "cr=t") {
			t.Errorf("the error contains a secret: %v", err)
		}
	}
}

func TestCredentialsFileMode(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(name, []byte(enrolled), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCredentials(name); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCredentials(name); err == nil {
		t.Error("got no error for a file that its group may read")
	}
}

func TestCredentialsFromTheEnvironment(t *testing.T) {
	for line := range strings.Lines(enrolled) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	if got, err := ReadCredentials(""); err != nil || got.Branch != "gangnam" || len(got.GrantKeys) != 2 {
		t.Errorf("got %+v, %v, want gangnam with two keys", got, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	got, err := ParseSettings([]byte(`
broker = "mqtts://mqtt.example.com"

[[door]]
device = "front_1"
relay = { line = "GPIO17", active_low = true }
contact = { chip = "mcp23017", line = "A0", pull = "up", debounce_ms = 0 }

[[air_conditioner]]
name = "로비"
codes = "lg2"
transmitter = "pwm-ir-tx"

[[sensor]]
location = "로비"
kind = "sht4x"
bus = "1"
address = 0x44
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Broker: "mqtts://mqtt.example.com",
		Doors: []Door{{
			Device: "front_1", Relay: Line{Name: "GPIO17", ActiveLow: true},
			Contact: &Line{Chip: "mcp23017", Name: "A0", Pull: "up", DebounceMs: new(int)},
		}},
		AirConditioners: []AirConditioner{{Name: "로비", Codes: "lg2", Transmitter: "pwm-ir-tx"}},
		Sensors:         []Sensor{{Location: "로비", Kind: "sht4x", Bus: "1", Address: 0x44}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if d := got.Doors[0].Contact.Debounce(); d != 0 {
		t.Errorf("got debounce %v, want 0", d)
	}
	if d := got.Doors[0].Relay.Debounce(); d != 20*time.Millisecond {
		t.Errorf("got default debounce %v, want 20ms", d)
	}
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"borker = 'x'", "[[sensor]]\nplace = 'x'", "broker = 5", "[[sensor]]\naddress = -1", "broker",
		"[[door]]\ndevice = 'cellar'\nrelay = {line = 'GPIO17'}",
		"[[door]]\ndevice = 'front_1'",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17', pull = 'up'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO17'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO5', pull = 'sideways'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO5', debounce_ms = -1}",
		"[[door]]\ndevice = 'front_1'\npulse_ms = 50\nrelay = {line = 'GPIO17'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17', offset = 17}",
		"[[door]]\ndevice = 'front_1'\nrelay = {offset = -1}",
		"[[door]]\ndevice = 'front_1'\nrelay = {offset = 17}\nexit = {offset = 17}",
		"[[door]]\ndevice = 'front_1'\nrelay = {offset = 17}\nexit = {offset = 18, open_drain = true}",
		"door = 5", "[door]\ndevice = 'front_1'", "sensor = ['x']",
		"[[sensor]]\nlocation = 'x'\n[[sensor]]\nlocation = 'x'",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\n[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO18'}",
	} {
		if got, err := ParseSettings([]byte(data)); err == nil {
			t.Errorf("%q: got %+v, want an error", data, got)
		}
	}
}

const frontDoor = "[[door]]\ndevice = 'front_1'\npulse_ms = 800\nrelay = {offset = 17, active_low = true, open_drain = true}\n"

// TestInvalidSectionAffectsOnlyItself checks that a mistake in one section leaves all other sections in use.
func TestInvalidSectionAffectsOnlyItself(t *testing.T) {
	t.Parallel()
	const roomDoor = "[[door]]\ndevice = 'room_1'\nrelay = {line = 'GPIO5'}\n"
	const lobby = "[[sensor]]\nlocation = 'lobby'\nkind = 'sht4x'\nbus = '1'\n"
	for name, tt := range map[string]struct {
		text, section string
		doors, rest   int // rest: sensors
	}{
		"unknown setting of a sensor": {frontDoor + "[[sensor]]\nplace = 'x'\n" + lobby, "sensor 1: unknown setting place", 1, 1},
		"wrong type in a sensor":      {frontDoor + "[[sensor]]\nlocation = 'x'\naddress = 'y'\n" + lobby, "sensor x: ", 1, 1},
		"unknown setting of a door":   {frontDoor + "[[door]]\ndevice = 'room_2'\nrelay = {line = 'GPIO6', activelow = true}\n" + roomDoor, "door room_2: unknown setting relay.activelow", 2, 0},
		"door without a relay":        {"[[door]]\ndevice = 'room_2'\n" + frontDoor, "door room_2: relay has no line", 1, 0},
		"unknown section":             {frontDoor + "[[lamp]]\nname = 'x'\n" + lobby, "unknown setting: ", 1, 1},
		"broker of the wrong type":    {"broker = 5\n" + frontDoor + lobby, "broker: must be a string", 1, 1},
		"line in use":                 {roomDoor + "[[door]]\ndevice = 'room_2'\nrelay = {line = 'GPIO5'}\n" + frontDoor, "door room_2: relay is on line GPIO5, which is also the relay of room_1", 2, 0},
	} {
		got, err := ParseSettings([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.section) {
			t.Errorf("%s: got error %v, want %q", name, err, tt.section)
		}
		if len(got.Doors) != tt.doors || len(got.Sensors) != tt.rest {
			t.Errorf("%s: got %+v, want %d doors and %d sensors", name, got, tt.doors, tt.rest)
		}
	}
	got, err := ParseSettings([]byte(frontDoor))
	if err != nil || got.Doors[0].Pulse() != 800*time.Millisecond || *got.Doors[0].Relay.Offset != 17 || !got.Doors[0].Relay.OpenDrain {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestSavedSettings checks that invalid sections fall back to the last valid settings.
func TestSavedSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, saved := filepath.Join(dir, "settings.toml"), filepath.Join(dir, "saved")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const roomDoor = "[[door]]\ndevice = 'room_1'\nrelay = {line = 'GPIO5'}\n"
	for name, tt := range map[string]struct {
		old, text string
		doors     []string
		problems  int
	}{
		"valid":                      {frontDoor, roomDoor, []string{"room_1"}, 0},
		"syntax error":               {frontDoor, roomDoor + "[[door", []string{"front_1"}, 1},
		"misspelled door":            {frontDoor + roomDoor, frontDoor + strings.Replace(roomDoor, "device", "devcie", 1), []string{"front_1", "room_1"}, 1},
		"door moved to a used line":  {frontDoor + roomDoor, roomDoor + strings.Replace(frontDoor, "offset = 17", "line = 'GPIO5'", 1), []string{"room_1", "front_1"}, 1},
		"misspelled new door":        {frontDoor, frontDoor + strings.Replace(roomDoor, "device", "devcie", 1), []string{"front_1"}, 1},
		"old door conflicts with it": {frontDoor, strings.Replace(frontDoor, "front_1", "room_2", 1) + "[[door]]\n", []string{"room_2"}, 1},
		"nothing was saved":          {"[[door", frontDoor + "[[door]]\n", []string{"front_1"}, 1},
	} {
		write(saved, tt.old)
		write(file, tt.text)
		got, problems := LoadSettings(file, saved)
		var doors []string
		for _, d := range got.Doors {
			doors = append(doors, d.Device)
		}
		if !slices.Equal(doors, tt.doors) || len(problems) != tt.problems {
			t.Errorf("%s: got doors %v and problems %v, want %v and %d", name, doors, problems, tt.doors, tt.problems)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, problems := LoadSettings(file, saved); len(problems) != 1 {
		t.Errorf("got problems %v for a missing file, want one", problems)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	if got, err := TLS("", nil); err != nil || got.RootCAs != nil {
		t.Errorf("without ca: got %v, %v", got, err)
	}
	name := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := TLS(name, nil); err == nil {
		t.Error("got no error for a missing file")
	}
	if err := os.WriteFile(name, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TLS(name, nil); err == nil {
		t.Error("got no error for a file without a certificate")
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte(enrolled))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := parseCredentials(data); err == nil && (c.Branch == "" || c.Password == "" || len(c.GrantKeys) == 0) {
			t.Errorf("got incomplete credentials %+v", c)
		}
	})
}
