// Package config reads the two files of a branch's agent: the settings, which describe the hardware of the branch and are the
// same for a replacement Pi, and the credentials, which identify the agent and come from `yeolda-agent enroll`.
package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Settings is the settings file in TOML; deploy/agent/settings.toml documents every field for administrators.
type Settings struct {
	Broker          string
	CA              string
	Doors           []Door
	AirConditioners []AirConditioner
	Sensors         []Sensor
}

// Door is a lock and its inputs.
type Door struct {
	Device  string `toml:"device"`   // see protocol.ParseDevice
	PulseMs int    `toml:"pulse_ms"` // how long the relay is energised; 0: the pulse of the grant
	Relay   Line   `toml:"relay"`
	Sense   *Line  `toml:"sense"`
	Contact *Line  `toml:"contact"`
	Exit    *Line  `toml:"exit"`

	Keypads []Keypad `toml:"keypad"` // that the agent reads
}

// Keypad is a Wiegand keypad on two lines, or an input device of the kernel.
type Keypad struct {
	D0  *Line  `toml:"d0"`
	D1  *Line  `toml:"d1"`
	USB string `toml:"usb"` // below /dev/input
}

// Pulse is PulseMs as a duration.
func (d Door) Pulse() time.Duration { return time.Duration(d.PulseMs) * time.Millisecond }

// Line is a line of a GPIO chip. Chips are identified by their label or their device, because their number differs between models and
// kernels; lines by their name or, where the kernel has other names for the pins, by their offset on the chip.
type Line struct {
	Chip       string `toml:"chip"`   // label or device; empty: the chip of the pin header
	Name       string `toml:"line"`   // as gpioinfo shows it
	Offset     *int   `toml:"offset"` // instead of Name; on the pin header the number of the GPIO
	ActiveLow  bool   `toml:"active_low"`
	OpenDrain  bool   `toml:"open_drain"`  // relays: drive Low only and let the board pull the line High
	Pull       string `toml:"pull"`        // inputs: "up", "down", "none"; empty: unchanged
	DebounceMs *int   `toml:"debounce_ms"` // inputs; nil: 20
}

// String returns the name of the line or "offset n".
func (l Line) String() string {
	if l.Offset != nil {
		return "offset " + strconv.Itoa(*l.Offset)
	}
	return l.Name
}

// Debounce is the time an input must be steady before a change counts.
func (l Line) Debounce() time.Duration {
	if l.DebounceMs == nil {
		return 20 * time.Millisecond
	}
	return time.Duration(*l.DebounceMs) * time.Millisecond
}

// AirConditioner is a unit and its transmitter.
type AirConditioner struct {
	Name        string `toml:"name"`
	Codes       string `toml:"codes"`       // one of ir.Remotes, or a SmartIR file
	Transmitter string `toml:"transmitter"` // kernel driver or device; empty: the only transmitter
}

// Sensor is a thermo-hygrometer: a chip on an I²C bus, or one that the kernel reads.
type Sensor struct {
	Location string `toml:"location"`
	Kind     string `toml:"kind"`    // one of sensor.Kinds
	Bus      string `toml:"bus"`     // "1" for /dev/i2c-1
	Address  uint16 `toml:"address"` // 0: the default of the kind
	Mux      uint16 `toml:"mux"`     // address of a PCA9548 between bus and chip; 0: none
	MuxPort  uint8  `toml:"mux_port"`
	Hwmon    string `toml:"hwmon"` // kind hwmon: the name of the kernel's device, such as sht4x
}

// TLS returns a TLS configuration that trusts the certificates in the file ca, or the system's if ca is empty. now is the
// time for certificates; nil: time.Now.
func TLS(ca string, now func() time.Time) (*tls.Config, error) {
	settings := &tls.Config{Time: now}
	if ca == "" {
		return settings, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: no certificate in %s", ca)
	}
	return settings, nil
}

// PackageTLS is TLS for packages, whose address may be that of the service or a public one: the system's authorities are trusted beside
// the private one.
func PackageTLS(ca string, now func() time.Time) (*tls.Config, error) {
	settings, err := TLS(ca, now)
	if err != nil || ca == "" {
		return settings, err
	}
	all, err := x509.SystemCertPool()
	if err != nil {
		return settings, nil //nolint:nilerr // a system without authorities: the private one is enough for the service
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	all.AppendCertsFromPEM(pem)
	settings.RootCAs = all
	return settings, nil
}
