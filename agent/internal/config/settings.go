// Package config reads the two files of a branch's agent: the settings, which say what hangs on the Pi and are the same
// for whoever replaces it, and the credentials, which say who it is and come from `yeolda agent enroll`.
package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/yeolda/yeolda/protocol"
)

// Settings is the settings file, TOML; deploy/agent/settings.toml explains every field to people.
type Settings struct {
	Broker          string           `toml:"broker"`
	CA              string           `toml:"ca"`
	Doors           []Door           `toml:"door"`
	AirConditioners []AirConditioner `toml:"air_conditioner"`
	Sensors         []Sensor         `toml:"sensor"`
}

// Door is a lock and what is wired beside it.
type Door struct {
	Device  string `toml:"device"` // see protocol.ParseDevice
	Relay   Line   `toml:"relay"`
	Sense   *Line  `toml:"sense"`
	Contact *Line  `toml:"contact"`
	Exit    *Line  `toml:"exit"`
}

// Line is a line of a GPIO chip. Both are named as the kernel names them, never numbered: numbers move between models and
// kernels.
type Line struct {
	Chip       string `toml:"chip"` // label; empty: the chip of the header
	Name       string `toml:"line"`
	ActiveLow  bool   `toml:"active_low"`
	Pull       string `toml:"pull"`        // inputs: "up", "down", "none"; empty: as the board has it
	DebounceMs *int   `toml:"debounce_ms"` // inputs; nil: 20
}

// Debounce is how long an input must be steady before a change counts.
func (l Line) Debounce() time.Duration {
	if l.DebounceMs == nil {
		return 20 * time.Millisecond
	}
	return time.Duration(*l.DebounceMs) * time.Millisecond
}

// AirConditioner is a unit and the transmitter that it sees.
type AirConditioner struct {
	Name        string `toml:"name"`
	Codes       string `toml:"codes"`       // one of ir.Remotes, or the name of a SmartIR file
	Transmitter string `toml:"transmitter"` // kernel driver or device; empty: the only one there is
}

// Sensor is a thermo-hygrometer: a chip on an I²C bus, or one that the kernel reads.
type Sensor struct {
	Location string `toml:"location"`
	Kind     string `toml:"kind"`    // one of sensor.Kinds
	Bus      string `toml:"bus"`     // "1" for /dev/i2c-1
	Address  uint16 `toml:"address"` // 0: the usual one of the kind
	Mux      uint16 `toml:"mux"`     // address of a PCA9548 between bus and chip; 0: none
	MuxPort  uint8  `toml:"mux_port"`
	Hwmon    string `toml:"hwmon"` // kind hwmon: the name of the kernel's device, such as sht4x
}

// ReadSettings reads the settings file.
func ReadSettings(name string) (Settings, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Settings{}, fmt.Errorf("settings: %w", err)
	}
	s, err := ParseSettings(data)
	if err != nil {
		return Settings{}, fmt.Errorf("settings %s: %w", name, err)
	}
	return s, nil
}

// ParseSettings refuses what it does not know: a setting that is misspelled must not be one that is left out.
func ParseSettings(data []byte) (Settings, error) {
	var s Settings
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&s)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		return Settings{}, fmt.Errorf("unknown setting:\n%s", strict.String())
	}
	if err != nil {
		return Settings{}, err
	}
	return s, s.validate()
}

func (s Settings) validate() error {
	var err error
	lines := make(map[[2]string]string)
	use := func(door, what string, l *Line) {
		if l == nil {
			return
		}
		key := [2]string{l.Chip, l.Name}
		switch {
		case l.Name == "":
			err = errors.Join(err, fmt.Errorf("door %s: %s has no line", door, what))
		case lines[key] != "":
			err = errors.Join(err, fmt.Errorf("door %s: %s is on line %s, as is %s", door, what, l.Name, lines[key]))
		}
		if !slices.Contains([]string{"", "up", "down", "none"}, l.Pull) {
			err = errors.Join(err, fmt.Errorf("door %s: pull %q of %s is none of up, down, none", door, l.Pull, what))
		}
		if l.Debounce() < 0 || l.Debounce() > time.Second {
			err = errors.Join(err, fmt.Errorf("door %s: debounce of %s is not within 0 and 1000 ms", door, what))
		}
		lines[key] = what + " of " + door
	}
	doors := make(map[string]bool)
	for _, d := range s.Doors {
		if _, _, deviceErr := protocol.ParseDevice(d.Device); deviceErr != nil {
			err = errors.Join(err, deviceErr)
		}
		if doors[d.Device] {
			err = errors.Join(err, fmt.Errorf("door %s stands twice", d.Device))
		}
		doors[d.Device] = true
		use(d.Device, "relay", &d.Relay)
		if d.Relay.Pull != "" || d.Relay.DebounceMs != nil {
			err = errors.Join(err, fmt.Errorf("door %s: the relay is an output and has no pull or debounce", d.Device))
		}
		use(d.Device, "sense", d.Sense)
		use(d.Device, "contact", d.Contact)
		use(d.Device, "exit", d.Exit)
	}
	return err
}

// TLS is the trust the settings ask for; nil: the system's.
func (s Settings) TLS() (*tls.Config, error) {
	if s.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: no certificate in %s", s.CA)
	}
	return &tls.Config{RootCAs: pool}, nil
}
