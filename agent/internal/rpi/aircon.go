package rpi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/lirc"
	"github.com/yeolda/yeolda/agent/ir"
)

// AirConditioners reads the code sets of the units in the settings and assigns their transmitters; sys is the root of sysfs.
// Units with the same transmitter share it. The error names the omitted units.
func AirConditioners(settings []config.AirConditioner, sys fs.FS) ([]agent.AirConditioner, error) {
	devices := make(map[string]*lirc.Device)
	var units []agent.AirConditioner
	var failed error
	for _, s := range settings {
		codes, err := codeSet(s.Codes)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("air conditioner %q: %w", s.Name, err))
			continue
		}
		if devices[s.Transmitter] == nil {
			devices[s.Transmitter] = lirc.Open(sys, s.Transmitter)
		}
		units = append(units, agent.AirConditioner{Name: s.Name, Codes: codes, Transmitter: devices[s.Transmitter]})
	}
	return units, failed
}

func codeSet(name string) (*ir.CodeSet, error) {
	if set, known := ir.Remote(name); known {
		return set, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("codes are neither one of %v nor a file: %w", ir.Remotes(), err)
	}
	s, err := ir.ParseSmartIR(data)
	if err != nil {
		return nil, fmt.Errorf("codes of %s: %w", name, err)
	}
	return s.Codes, nil
}
