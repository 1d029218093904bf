package doctor

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// TestFindings: one machine with about everything wrong that can be.
func TestFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := filepath.Join(dir, "settings.toml")
	if err := os.WriteFile(settings, []byte(`
broker = "mqtt://127.0.0.1:1"
[[door]]
device = "front_1"
relay = { line = "GPIO17", active_low = true }
[[door]]
device = "room_1"
relay = { line = "GPIO5" }
[[air_conditioner]]
name = "lobby"
codes = "lg2"
[[air_conditioner]]
name = "hall"
codes = "/no/such/file.json"
transmitter = "gpio-ir-tx"
[[sensor]]
location = "lobby"
kind = "hwmon"
hwmon = "sht4x"
[[sensor]]
location = "hall"
kind = "hwmon"
hwmon = "sht3x"
`), 0o600); err != nil {
		t.Fatal(err)
	}
	root := fstest.MapFS{
		"proc/device-tree/model":                                 {Data: []byte("Raspberry Pi 5 Model B Rev 1.0\x00")},
		"sys/module/pinctrl_rp1/parameters/persist_gpio_outputs": {Data: []byte("Y\n")},
		"sys/class/rc/rc0/uevent":                                {Data: []byte("DRV_NAME=pwm-ir-tx\n")},
		"sys/class/rc/rc0/lirc0/dev":                             {},
		"sys/class/hwmon/hwmon0/name":                            {Data: []byte("sht4x\n")},
		"sys/class/hwmon/hwmon0/temp1_input":                     {Data: []byte("21500\n")},
		"sys/class/hwmon/hwmon0/humidity1_input":                 {Data: []byte("45000\n")},
		"dev/i2c-1":                                              {},
	}
	var out bytes.Buffer
	d := Doctor{Root: root, SettingsFile: settings, CredentialsFile: filepath.Join(dir, "credentials"), Out: &out}
	if n := d.Examine(t.Context()); n == 0 {
		t.Error("nothing to mend")
	}
	for _, want := range []string{
		"ok    settings     2 doors, 2 air conditioners, 2 sensors",
		"FAIL  credentials",
		"warn  gpio         pinctrl_rp1 leaves outputs as they are",
		"strict_gpiod",
		"ok    infrared     /dev/lirc0: pwm-ir-tx",
		"FAIL  infrared     hall: there is no infrared transmitter gpio-ir-tx",
		"warn  infrared     lobby: on a Pi 5",
		`FAIL  infrared     air conditioner "hall"`,
		"ok    i2c          /dev/i2c-1",
		"ok    sensor       lobby: 21.5 °C, 45 %",
		"FAIL  sensor       hall: hwmon sht3x",
		"warn  watchdog     the kernel has none",
		"FAIL  broker       dial mqtt://127.0.0.1:1",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestBootLevel(t *testing.T) {
	t.Parallel()
	// Where the reset pulls and the polarity of the relay agree is no warning.
	for name, want := range map[string]bool{"GPIO17 high": false, "GPIO17 low": true, "GPIO5 low": false, "GPIO5 high": true, "A3 high": false} {
		var out bytes.Buffer
		d := Doctor{Out: &out}
		line, level, _ := strings.Cut(name, " ")
		d.bootLevel(door(line, level == "low"))
		if got := strings.Contains(out.String(), "power-on"); got != want {
			t.Errorf("%s: warned %v", name, got)
		}
	}
}

// TestBareMachine: one where nothing has been done yet is told what to do.
func TestBareMachine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dir := t.TempDir()
	d := Doctor{Root: fstest.MapFS{"sys/x": {}}, SettingsFile: filepath.Join(dir, "settings.toml"), CredentialsFile: filepath.Join(dir, "credentials"), Out: &out}
	if n := d.Examine(t.Context()); n < 3 {
		t.Errorf("%d things to mend", n)
	}
	for _, want := range []string{"FAIL  settings", "FAIL  credentials", "yeolda agent enroll BRANCH", "FAIL  broker       neither"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, out.String())
		}
	}
}

func TestBrokerAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	settings := filepath.Join(t.TempDir(), "settings.toml")
	if err := os.WriteFile(settings, []byte("broker = 'mqtt://"+l.Addr().String()+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := Doctor{Root: fstest.MapFS{"sys/x": {}}, SettingsFile: settings, Out: &out}
	d.Examine(t.Context())
	if want := "ok    broker       mqtt://" + l.Addr().String() + " answers"; !strings.Contains(out.String(), want) {
		t.Errorf("nothing says %q:\n%s", want, out.String())
	}
}

func door(line string, activeLow bool) config.Door {
	return config.Door{Device: "front_1", Relay: config.Line{Name: line, ActiveLow: activeLow}}
}
