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

	"github.com/pelletier/go-toml/v2"
)

// Settings is the settings file, TOML.
//
//	broker = "mqtts://mqtt.example.com"
//	ca = "/etc/yeolda-agent/ca.pem"      # only for a broker whose certificate the system does not know
//
//	[[sensor]]
//	location = "로비"
//	kind = "sht4x"                       # sensor.Kinds
//	bus = "1"                            # /dev/i2c-1
//	address = 0x44                       # left out: the usual one of the kind
type Settings struct {
	Broker  string   `toml:"broker"`
	CA      string   `toml:"ca"`
	Sensors []Sensor `toml:"sensor"`
}

// Sensor is a thermo-hygrometer on an I²C bus.
type Sensor struct {
	Location string `toml:"location"`
	Kind     string `toml:"kind"`
	Bus      string `toml:"bus"`
	Address  uint16 `toml:"address"`
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
	return s, nil
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
