package doctor

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/protocol"
)

// TestFindings examines a machine with nearly every possible fault.
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
		"dev/i2c-1":                                              {Mode: fs.ModeDevice | 0o600},
	}
	var out bytes.Buffer
	d := Doctor{Root: root, SettingsFile: settings, CredentialsFile: filepath.Join(dir, "credentials"), Out: &out}
	if n := d.Examine(t.Context()); n == 0 {
		t.Error("got no failures")
	}
	for _, want := range []string{
		"ok    settings     2 doors, 2 air conditioners, 2 sensors",
		"FAIL  credentials",
		"warn  gpio         pinctrl_rp1 keeps outputs driven",
		"strict_gpiod",
		"ok    infrared     /dev/lirc0: pwm-ir-tx",
		"FAIL  infrared     hall: there is no infrared transmitter gpio-ir-tx",
		"warn  infrared     lobby: on a Pi 5",
		`FAIL  infrared     air conditioner "hall"`,
		"ok    i2c          /dev/i2c-1",
		"FAIL  i2c          /dev/i2c-1 has mode 600: the agent cannot use it",
		"ok    sensor       lobby: 21.5 °C, 45 %",
		"FAIL  sensor       hall: hwmon sht3x",
		"warn  watchdog     the kernel has no watchdog",
		"FAIL  broker       mqtt://127.0.0.1:1: connect to",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestBootLevel checks that a relay is reported only if the pull at reset energises it.
func TestBootLevel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"GPIO17 high": false, "GPIO17 low": true, "GPIO5 low": false, "GPIO5 high": true, "A3 high": false,
		"GPIO_GCLK high": true, "SPI_CE0_N low": false, "TXD1 low": true,
	} {
		line, level, _ := strings.Cut(name, " ")
		if got := len(bootLevel(door(config.Line{Name: line, ActiveLow: level == "low"}))) > 0; got != want {
			t.Errorf("%s: reported %v, want %v", name, got, want)
		}
	}
	four, seventeen := 4, 17
	for _, tt := range []struct {
		line config.Line
		want bool
	}{{config.Line{Offset: &four}, true}, {config.Line{Offset: &seventeen}, false}, {config.Line{Chip: "mcp23017", Offset: &four}, false}, {config.Line{Chip: "pinctrl-rp1", Offset: &four}, true}} {
		if got := len(bootLevel(door(tt.line))) > 0; got != tt.want {
			t.Errorf("%+v: reported %v, want %v", tt.line, got, tt.want)
		}
	}
}

// TestSelfTests checks that the findings about the machine reach the status, so that the console shows branches whose doors
// would stay open.
func TestSelfTests(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"sys/module/pinctrl_rp1/parameters/persist_gpio_outputs": {Data: []byte("Y\n")},
		"dev/watchdog": {},
	}
	four := 4
	got := make(map[string]protocol.SelfTest)
	for _, test := range SelfTests(root, []config.Door{door(config.Line{Offset: &four})}, t.TempDir()) {
		got[test.Name] = test
	}
	if test, ok := got["machine strict_gpiod"]; !ok || test.OK || !strings.Contains(test.Detail, "dtparam=strict_gpiod") {
		t.Errorf("strict_gpiod: got %+v", test)
	}
	if test, ok := got["machine boot level front_1"]; !ok || test.OK {
		t.Errorf("boot level: got %+v", test)
	}
	if test, ok := got["machine watchdog"]; !ok || !test.OK {
		t.Errorf("watchdog: got %+v", test)
	}
	v := protocol.Inventory{}
	if _, err := protocol.Encode(protocol.Status{State: protocol.Online, BootID: "b", Inventory: &v, SelfTest: SelfTests(root, nil, "/no/such/directory")}); err != nil {
		t.Error(err)
	}
}

// TestStorage judges state directories that can and cannot be written.
func TestStorage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		free uint64
		err  error
		want string // of the text; the fix is wanted too, unless healthy
		well bool
	}{
		{"healthy", 1 << 30, nil, "1024 MiB are free", true},
		{"not created yet", 0, syscall.ENOENT, "does not exist yet", true},
		{"read-only", 1 << 30, syscall.EROFS, "read-only file system", false},
		{"full", 4096, nil, "4 KiB of free space", false},
	} {
		f := storage("/state", func(string) (uint64, error) { return tt.free, tt.err })
		if (f.fix == "") != tt.well || !strings.Contains(f.text, tt.want) {
			t.Errorf("%s: got %+v, want %q", tt.name, f, tt.want)
		}
	}
	if free, err := space(t.TempDir()); err != nil || free == 0 {
		t.Errorf("the directory of a test: %d bytes free, %v", free, err)
	}
	if _, err := space("/no/such/directory"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestClock judges the clock of a machine by what the kernel knows of it. After the start, a Pi needs a while until it has the time.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		state  int
		err    error
		uptime time.Duration
		well   bool
	}{
		{"synchronised", unix.TIME_OK, nil, time.Hour, true},
		{"not synchronised after the start", unix.TIME_ERROR, nil, syncTime - time.Second, true},
		{"not synchronised", unix.TIME_ERROR, nil, syncTime, false},
		{"not known", unix.TIME_ERROR, syscall.EPERM, time.Hour, true},
	} {
		f := clock(func(*unix.Timex) (int, error) { return tt.state, tt.err }, tt.uptime)
		if (f.fix == "") != tt.well {
			t.Errorf("%s: got %+v, want well: %v", tt.name, f, tt.well)
		}
	}
	if up := uptime(); up <= 0 {
		t.Errorf("got an uptime of %v", up)
	}
}

// TestBareMachine examines a machine that is not configured yet: every failure names its fix.
func TestBareMachine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dir := t.TempDir()
	d := Doctor{Root: fstest.MapFS{"sys/x": {}}, SettingsFile: filepath.Join(dir, "settings.toml"), CredentialsFile: filepath.Join(dir, "credentials"), Out: &out}
	if n := d.Examine(t.Context()); n < 3 {
		t.Errorf("got %d failures, want at least 3", n)
	}
	for _, want := range []string{"FAIL  settings", "FAIL  credentials", "yeolda agent enroll BRANCH", "FAIL  broker       neither"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
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
		t.Errorf("%q is missing:\n%s", want, out.String())
	}
}

// TestConnected checks that the doctor of a machine whose credentials are revoked finds it: its broker answers all the same.
func TestConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	credentials, health := filepath.Join(dir, "credentials"), filepath.Join(dir, "health")
	for _, tt := range []struct {
		name, health  string
		age, enrolled time.Duration // since it was written
		want          string
	}{
		{"connected", "connected=yes\nfailed=0\n", time.Hour, 2 * time.Hour, "ok    agent"},
		{"not connected", "connected=no\nfailed=0\n", time.Hour, 2 * time.Hour, "FAIL  agent"},
		{"it has just started", "connected=no\nfailed=0\n", 0, 2 * time.Hour, ""},
		{"enrolled since", "connected=no\nfailed=0\n", 2 * time.Hour, time.Hour, ""},
		{"never run", "", 0, time.Hour, ""},
	} {
		_ = os.Remove(health)
		if tt.health != "" {
			writeAt(t, health, tt.health, time.Now().Add(-tt.age))
		}
		writeAt(t, credentials, "", time.Now().Add(-tt.enrolled))
		var out bytes.Buffer
		d := Doctor{Root: fstest.MapFS{"sys/x": {}}, CredentialsFile: credentials, HealthFile: health, Out: &out}
		d.Examine(t.Context())
		if found := strings.Contains(out.String(), "ok    agent") || strings.Contains(out.String(), "FAIL  agent"); found != (tt.want != "") || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: want %q in:\n%s", tt.name, tt.want, out.String())
		}
	}
}

func writeAt(t *testing.T, name, text string, at time.Time) {
	t.Helper()
	if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, at, at)); err != nil {
		t.Fatal(err)
	}
}

func door(relay config.Line) config.Door { return config.Door{Device: "front_1", Relay: relay} }
