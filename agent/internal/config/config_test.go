package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	key1 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, ed25519.PublicKeySize))
	key2 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, ed25519.PublicKeySize))
)

// enrolled is what `yeolda agent enroll` writes.
var enrolled = "YEOLDA_BRANCH=gangnam\nYEOLDA_AGENT_USERNAME=agent-gangnam-abcd2345\nYEOLDA_AGENT_PASSWORD=s=cr=t\nYEOLDA_GRANT_PUBLIC_KEYS=" + key1 + "," + key2 + "\n"

func TestCredentials(t *testing.T) {
	t.Parallel()
	got, err := ParseCredentials([]byte("# the agent of Gangnam\n\n" + enrolled))
	if err != nil {
		t.Fatal(err)
	}
	want := Credentials{Branch: "gangnam", Username: "agent-gangnam-abcd2345", Password: "s=cr=t",
		GrantKeys: []ed25519.PublicKey{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestCredentialsErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"", "s=cr=t", "YEOLDA_AGENT_PASSWORD s=cr=t", enrolled + enrolled,
		strings.Replace(enrolled, "YEOLDA_BRANCH=gangnam\n", "", 1),
		strings.Replace(enrolled, key2, "s=cr=t", 1),
		strings.Replace(enrolled, key2, "c=cr=t", 1),
		strings.Replace(enrolled, key1+","+key2, "", 1),
	} {
		_, err := ParseCredentials([]byte(data))
		if err == nil {
			t.Errorf("%q accepted", data)
		} else if strings.Contains(err.Error(), "cr=t") {
			t.Errorf("error tells a secret: %v", err)
		}
	}
}

func TestCredentialsFileIsItsOwnersAlone(t *testing.T) {
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
		t.Error("a file its group may read was accepted")
	}
}

func TestCredentialsFromTheEnvironment(t *testing.T) {
	for line := range strings.Lines(enrolled) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	if got, err := ReadCredentials(""); err != nil || got.Branch != "gangnam" || len(got.GrantKeys) != 2 {
		t.Errorf("got %+v, %v", got, err)
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
		t.Errorf("got %+v", got)
	}
	if d := got.Doors[0].Contact.Debounce(); d != 0 {
		t.Errorf("debounce %v, want none", d)
	}
	if d := got.Doors[0].Relay.Debounce(); d != 20*time.Millisecond {
		t.Errorf("default debounce %v", d)
	}
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"borker = 'x'", "[[sensor]]\nplace = 'x'", "broker = 5", "[[sensor]]\naddress = -1", "broker",
		"[[door]]\ndevice = 'cellar'\nrelay = {line = 'GPIO17'}",
		"[[door]]\ndevice = 'front_1'",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17', pull = 'up'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO17'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO5', pull = 'sideways'}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\nexit = {line = 'GPIO5', debounce_ms = -1}",
		"[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO17'}\n[[door]]\ndevice = 'front_1'\nrelay = {line = 'GPIO18'}",
	} {
		if got, err := ParseSettings([]byte(data)); err == nil {
			t.Errorf("%q read as %+v", data, got)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	if got, err := (Settings{}).TLS(); got != nil || err != nil {
		t.Errorf("no ca: %v, %v", got, err)
	}
	name := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := (Settings{CA: name}).TLS(); err == nil {
		t.Error("a missing file is trusted")
	}
	if err := os.WriteFile(name, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Settings{CA: name}).TLS(); err == nil {
		t.Error("a file without a certificate is trusted")
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte(enrolled))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseCredentials(data); err == nil && (c.Branch == "" || c.Password == "" || len(c.GrantKeys) == 0) {
			t.Errorf("incomplete: %+v", c)
		}
	})
}
