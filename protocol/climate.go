package protocol

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// CommandTTL is the message expiry of climate commands and sensor reads: after it the cloud has answered that the
// branch does not respond (docs/specification.md, Devices 1).
const CommandTTL = 7 * time.Second

// MaxSensors bounds the sensors of a branch.
const MaxSensors = 64

const (
	maxName    = 100
	maxOptions = 8 // levels of an option tree
	idLen      = 20
)

// ClimateCommand sends one infrared code. Like SensorsRead it is published with the Response Topic of the branch,
// Correlation Data (echoed as it is) and a message expiry of CommandTTL.
type ClimateCommand struct {
	RequestID        string `json:"requestId"` // UUID
	AirConditionerID string `json:"airconditioner_id"`
}

// ClimateOutcome is the result of a command. Infrared has no feedback: the agent knows only that the code was sent.
type ClimateOutcome string

const (
	ClimateSent    ClimateOutcome = "sent"
	ClimateFailed  ClimateOutcome = "failed"  // the transmitter reported an error
	ClimateUnknown ClimateOutcome = "unknown" // no such id at this branch
)

// ClimateResult answers a ClimateCommand.
type ClimateResult struct {
	RequestID        string         `json:"requestId"`
	AirConditionerID string         `json:"airconditioner_id"`
	Outcome          ClimateOutcome `json:"outcome"`
	Detail           string         `json:"detail"`
}

// SensorsRead requests the current readings of all sensors of the branch.
type SensorsRead struct {
	RequestID string `json:"requestId"` // UUID
}

// SensorsReadings answers a SensorsRead. Sensors that failed are omitted.
type SensorsReadings struct {
	RequestID string    `json:"requestId"`
	Readings  []Reading `json:"readings"`
}

// Reading is a measurement of a thermo-hygrometer.
type Reading struct {
	Location         string  `json:"location"`
	Celsius          float64 `json:"celsius"`
	RelativeHumidity float64 `json:"relativeHumidity"` // percent
}

// UnmarshalJSON rejects a reading without a value: a missing temperature must not become 0 degrees.
func (r *Reading) UnmarshalJSON(text []byte) error {
	var said struct {
		Location         string   `json:"location"`
		Celsius          *float64 `json:"celsius"`
		RelativeHumidity *float64 `json:"relativeHumidity"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	if said.Celsius == nil || said.RelativeHumidity == nil {
		return fmt.Errorf("reading of %q lacks a value", said.Location)
	}
	*r = Reading{said.Location, *said.Celsius, *said.RelativeHumidity}
	return nil
}

// Option is a node in the option tree of an air conditioner: a mode, a temperature, a fan speed, a fan direction. A leaf has
// no children and corresponds to an infrared code. Its id is not transmitted: LeafID derives it from the branch of the
// topic, so that no agent can name a leaf of another branch, and the status stays small.
type Option struct {
	Name     string   `json:"name"`
	Children []Option `json:"children,omitempty"`
}

// AirConditioner is a unit and its options.
type AirConditioner struct {
	Name    string   `json:"name"`
	Options []Option `json:"options"`
	// OptionsOf names an earlier unit with the same options, which are then not repeated. Decode replaces it by the options.
	OptionsOf string `json:"optionsOf,omitempty"`
}

// OptionNode is an option with its id, as administrators receive it (docs/specification.md, Devices 1): leaves have an id and null children,
// inner nodes the reverse.
type OptionNode struct {
	Name             string       `json:"name"`
	AirConditionerID *string      `json:"airconditioner_id"`
	Children         []OptionNode `json:"children"`
}

// LeafID is the airconditioner_id of a leaf: base32(SHA-256(branch, unit, path)), 20 lower-case characters. It is unique
// over all branches, stable over restarts, and untouched by changes to other leaves.
func LeafID(branch, unit string, path ...string) string {
	h := sha256.New()
	for _, s := range append([]string{branch, unit}, path...) {
		h.Write(appendField(nil, s))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:idLen]
}

// OptionTree returns the units of a branch as one tree. Several units get a level on top that names them (docs/specification.md, Devices 1).
func OptionTree(branch string, units []AirConditioner) []OptionNode {
	if len(units) == 1 {
		return optionNodes(branch, units[0].Name, nil, units[0].Options)
	}
	nodes := make([]OptionNode, 0, len(units))
	for _, u := range units {
		nodes = append(nodes, OptionNode{Name: u.Name, Children: optionNodes(branch, u.Name, nil, u.Options)})
	}
	return nodes
}

func optionNodes(branch, unit string, path []string, options []Option) []OptionNode {
	nodes := make([]OptionNode, 0, len(options))
	for _, o := range options {
		below := append(path[:len(path):len(path)], o.Name)
		node := OptionNode{Name: o.Name}
		if len(o.Children) == 0 {
			id := LeafID(branch, unit, below...)
			node.AirConditionerID = &id
		} else {
			node.Children = optionNodes(branch, unit, below, o.Children)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// Kind implements Message.
func (ClimateCommand) Kind() Kind { return KindClimateCommand }

// Kind implements Message.
func (ClimateResult) Kind() Kind { return KindClimateResult }

// Kind implements Message.
func (SensorsRead) Kind() Kind { return KindSensorsRead }

// Kind implements Message.
func (SensorsReadings) Kind() Kind { return KindSensorsReadings }

// Validate implements Message.
func (m ClimateCommand) Validate() error {
	return errors.Join(checkRequestID(m.RequestID), checkLeafID(m.AirConditionerID))
}

// Validate implements Message.
func (m ClimateResult) Validate() error {
	var err error
	switch m.Outcome {
	case ClimateSent, ClimateFailed, ClimateUnknown:
	default:
		err = fmt.Errorf("outcome %q is unknown", m.Outcome)
	}
	return errors.Join(err, checkRequestID(m.RequestID), checkLeafID(m.AirConditionerID),
		checkText("detail", m.Detail, maxDetail, false))
}

// Validate implements Message.
func (m SensorsRead) Validate() error { return checkRequestID(m.RequestID) }

// Validate implements Message.
func (m SensorsReadings) Validate() error {
	return errors.Join(checkRequestID(m.RequestID), checkReadings(m.Readings))
}

func checkReadings(readings []Reading) error {
	if len(readings) > MaxSensors {
		return fmt.Errorf("more than %d readings", MaxSensors)
	}
	for _, r := range readings {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Validate rejects readings outside the range of real sensors, as loose wires produce.
func (r Reading) Validate() error {
	if !within(r.Celsius, -60, 150) || !within(r.RelativeHumidity, 0, 100) {
		return fmt.Errorf("reading of %q is out of range", r.Location)
	}
	return checkText("location", r.Location, maxName, true)
}

func within(v, low, high float64) bool { return !math.IsNaN(v) && v >= low && v <= high }

func checkLeafID(id string) error {
	if len(id) != idLen || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return errors.New("airconditioner_id is not a leaf id")
	}
	return nil
}

// checkOptions also rejects siblings with the same name, whose leaves would have the same ids.
func checkOptions(options []Option, levels int) error {
	if levels == 0 {
		return fmt.Errorf("options are nested deeper than %d levels", maxOptions)
	}
	seen := make(map[string]struct{}, len(options))
	for _, o := range options {
		if err := checkText("option name", o.Name, maxName, true); err != nil {
			return err
		}
		if _, twice := seen[o.Name]; twice {
			return fmt.Errorf("duplicate option %q at one level", o.Name)
		}
		seen[o.Name] = struct{}{}
		if len(o.Children) > 0 {
			if err := checkOptions(o.Children, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}
