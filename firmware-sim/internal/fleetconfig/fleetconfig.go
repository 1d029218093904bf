// Package fleetconfig describes the simulated branches and their hardware: from a file, the embedded demo branches, or
// a fleet of small equal ones for load tests.
package fleetconfig

import (
	_ "embed"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/protocol"
)

// Demo is the file of the demo branches, a copy of deploy/demo/sim.yaml, so that the program runs without a checkout.
//
//go:embed demo.yaml
var Demo []byte

// Branch is one simulated branch.
type Branch struct {
	Branch   string
	Password string // of the agent's MQTT credential
	Plan     hardware.Plan
	Settings string // the settings file of the Pi; empty: none
}

// DemoPassword is the agent's password in the demo data.
func DemoPassword(branch string) string { return protocol.AgentID(branch) + "-demo" }

// file is the format of a simulation file; deploy/demo/sim.yaml explains the fields.
type file struct {
	Branches []struct {
		Branch          string            `yaml:"branch"`
		Password        string            `yaml:"password"`
		Doors           []string          `yaml:"doors"`
		Keypads         string            `yaml:"keypads"`
		PINs            map[string]string `yaml:"pins"`
		AirConditioners []struct {
			Name   string   `yaml:"name"`
			Remote string   `yaml:"remote"`
			Cools  []string `yaml:"cools"`
		} `yaml:"airConditioners"`
		Sensors []struct {
			Location string  `yaml:"location"`
			Kind     string  `yaml:"kind"`
			Celsius  float64 `yaml:"celsius"`
			Humidity float64 `yaml:"humidity"`
		} `yaml:"sensors"`
	} `yaml:"branches"`
}

// Parse reads a simulation file. A branch without a password gets that of the demo data. Unknown fields are errors;
// package hardware rejects what it cannot build.
func Parse(text []byte) ([]Branch, error) {
	var f file
	if err := yaml.Load(text, &f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("simulation file: %w", err)
	}
	if len(f.Branches) == 0 {
		return nil, errors.New("simulation file: no branches")
	}
	seen := make(map[string]bool)
	var branches []Branch
	for _, in := range f.Branches {
		if !protocol.ValidBranch(in.Branch) || seen[in.Branch] {
			return nil, fmt.Errorf("simulation file: %q is not a branch code, or is a duplicate", in.Branch)
		}
		seen[in.Branch] = true
		b := Branch{Branch: in.Branch, Password: in.Password}
		if b.Password == "" {
			b.Password = DemoPassword(in.Branch)
		}
		for _, device := range in.Doors {
			b.Plan.Doors = append(b.Plan.Doors, hardware.DoorPlan{Device: device, PIN: in.PINs[device], Agent: in.Keypads == "agent"})
			delete(in.PINs, device)
		}
		if in.Keypads != "" && in.Keypads != "agent" && in.Keypads != "standalone" {
			return nil, fmt.Errorf("simulation file: %s: keypads %q; expected agent or standalone", in.Branch, in.Keypads)
		}
		for device := range in.PINs {
			return nil, fmt.Errorf("simulation file: %s has a PIN for %q but no such door", in.Branch, device)
		}
		for _, a := range in.AirConditioners {
			codes, err := Remote(a.Remote)
			if err != nil {
				return nil, fmt.Errorf("simulation file: %s: air conditioner %q: %w", in.Branch, a.Name, err)
			}
			b.Plan.AirConditioners = append(b.Plan.AirConditioners, hardware.UnitPlan{Name: a.Name, Cools: a.Cools, Codes: codes})
		}
		for _, s := range in.Sensors {
			b.Plan.Sensors = append(b.Plan.Sensors, hardware.SensorPlan(s))
		}
		branches = append(branches, b)
	}
	return branches, nil
}
