package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/panel"
	"github.com/yeolda/yeolda/protocol"
)

// enrolment finds server and token in the command that the service shows: curl -fsS SERVER/install.sh | sudo sh -s -- TOKEN.
var enrolment = regexp.MustCompile(`(https?://\S+)/install\.sh\s.*\s(\S+)\s*$`)

// enroll exchanges the token of a command, and describes a Pi with a front door and some rooms, each with a keypad, and a sensor.
func enroll(ctx context.Context, command string, rooms int) (agent.Config, hardware.Plan, error) {
	found := enrolment.FindStringSubmatch(command)
	if found == nil {
		return agent.Config{}, hardware.Plan{}, fmt.Errorf("%w: expected the command of the service, with install.sh and a token", panel.ErrEnroll)
	}
	credential, err := agent.Enroll(ctx, found[1], found[2])
	if err != nil {
		return agent.Config{}, hardware.Plan{}, fmt.Errorf("%w: %w", panel.ErrEnroll, err)
	}
	plan := hardware.Plan{
		Doors:   []hardware.DoorPlan{{Device: protocol.DoorFront.Device("1")}},
		Sensors: []hardware.SensorPlan{{Location: "홀", Kind: "sht4x", Celsius: 23, Humidity: 45}},
	}
	for room := range rooms {
		plan.Doors = append(plan.Doors, hardware.DoorPlan{Device: protocol.DoorRoom.Device(fmt.Sprint(room + 1))})
	}
	return credential, plan, nil
}
