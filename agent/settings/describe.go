package settings

import (
	"slices"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// Description is the branch that settings describe, for simulated machines.
type Description struct {
	Broker string   // empty: that of the enrolment
	Doors  []string // devices
}

// Describe parses settings. It returns everything without a mistake, together with the mistakes.
func Describe(text string) (Description, error) {
	s, err := config.ParseSettings([]byte(text))
	d := Description{Broker: s.Broker}
	for _, door := range s.Doors {
		d.Doors = append(d.Doors, door.Device)
	}
	slices.Sort(d.Doors)
	return d, err
}
