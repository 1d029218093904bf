package fleetconfig

import (
	"fmt"

	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

// MaxFleet is the largest number of branches.
const MaxFleet = 200_000

// FleetRooms is the number of rooms of a branch of a fleet.
const FleetRooms = 2

// FleetName returns the code of a branch of a fleet; n counts from 1.
func FleetName(n int) string { return fmt.Sprintf("load-%04d", n) }

// FleetSettings is the settings file of a Pi of a fleet.
const FleetSettings = `# broker
[[door]]
device = "front_1"
relay = { line = "GPIO17" }

[[door]]
device = "room_1"
relay = { line = "GPIO22" }

[[door]]
device = "room_2"
relay = { line = "GPIO23" }
`

// Fleet returns n branches load-0001 to load-<n>, each with one front door and two rooms without contacts, so that
// thousands fit into one process.
func Fleet(n int) ([]Branch, error) {
	if n < 1 || n > MaxFleet {
		return nil, fmt.Errorf("fleet: %d branches, want 1 to %d", n, MaxFleet)
	}
	branches := make([]Branch, n)
	for i := range branches {
		name := FleetName(i + 1)
		doors := []hardware.DoorPlan{{Device: "front_1", Bare: true}}
		for room := range FleetRooms {
			doors = append(doors, hardware.DoorPlan{Device: fmt.Sprintf("room_%d", room+1), Bare: true})
		}
		branches[i] = Branch{Branch: name, Password: DemoPassword(name), Plan: hardware.Plan{Doors: doors}}
	}
	return branches, nil
}
