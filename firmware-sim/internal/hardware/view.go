package hardware

import (
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/protocol"
)

// The rows below are those of the panel (docs/specification.md, Simulator).

// State is the complete state of a branch.
type State struct {
	Branch          string           `json:"branch"`
	Online          bool             `json:"online"` // the agent has a working connection and the broker has its status
	Doors           []Door           `json:"doors"`
	AirConditioners []AirConditioner `json:"airConditioners"`
	Sensors         []Sensor         `json:"sensors"`
	Powered         bool             `json:"powered"`
	Faults          fault.List       `json:"faults"`
}

// Door is one door and its lock.
type Door struct {
	Device     string            `json:"device"`
	Kind       protocol.DoorKind `json:"kind"`
	Locked     bool              `json:"locked"`     // the relay is idle
	Open       bool              `json:"open"`       // the leaf
	Actuations int               `json:"actuations"` // how often the relay was energised
	Released   bool              `json:"released"`   // the bolt is back, by relay or keypad: the sense line
	Exit       bool              `json:"exit"`       // the exit button is pressed
	Pin        int               `json:"pin"`        // GPIO line of the relay
}

// Actuation is one time that a relay was energised.
type Actuation struct {
	At     time.Time `json:"at"`
	Device string    `json:"device"`
	// RequestID is the request for which the agent drove the relay; empty if the agent named none, which is a
	// violation.
	RequestID   string `json:"requestId"`
	Source      Source `json:"source"`      // empty until the agent has named it
	EnergizedMs int64  `json:"energizedMs"` // so far, while Energized
	Energized   bool   `json:"energized"`
}

// Source is why the agent drove a relay.
type Source string

// Remote is the source of an actuation for a request. The others are those of package protocol: code and pin.
const Remote Source = "remote"

// AirConditioner is the display of a unit, and the last signal that its receiver got.
type AirConditioner struct {
	Name        string  `json:"name"`
	Power       bool    `json:"power"`
	Mode        string  `json:"mode"`        // 냉방, 난방, 자동, 제습, 송풍, as in the option tree; empty: never set
	Temperature int     `json:"temperature"` // °C; 0: never set
	Fan         string  `json:"fan"`         // 약, 중, 강, 자동; empty: never set
	Direction   string  `json:"direction"`   // 회전: the louvre swings; 고정; empty: never set
	Frames      int     `json:"frames"`      // signals for this unit
	Noise       int     `json:"noise"`       // other signals
	Signal      *Signal `json:"signal"`
}

// Signal is one transmission as a receiver saw it.
type Signal struct {
	At        time.Time `json:"at"`
	CarrierHz int       `json:"carrierHz"`
	Protocol  string    `json:"protocol"` // LG, Samsung, raw (matched with the code set); empty: noise
	Durations []uint32  `json:"durations"`
}

// Sensor is one thermo-hygrometer and the air around it.
type Sensor struct {
	Location    string  `json:"location"`
	Thermometer float64 `json:"thermometer"` // °C
	Hygrometer  float64 `json:"hygrometer"`  // percent
	Kind        string  `json:"kind"`        // chip
	Held        bool    `json:"held"`        // set from the panel: it does not drift
}

// Change is one change; exactly one pointer is set.
type Change struct {
	Door           *Door           `json:"door,omitempty"`
	Actuation      *Actuation      `json:"actuation,omitempty"`
	AirConditioner *AirConditioner `json:"airConditioner,omitempty"`
	Sensor         *Sensor         `json:"sensor,omitempty"`
	Keypad         *Keypad         `json:"keypad,omitempty"`
}

// Keypad is the entry of a PIN. The PIN itself is not reported.
type Keypad struct {
	Device string `json:"device"`
	Right  bool   `json:"right"`
}
