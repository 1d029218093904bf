package main

import (
	"encoding/json"
	"fmt"

	"github.com/yeolda/yeolda/cloud/client"
)

type doorsCmd struct {
	List doorsListCmd `cmd:"" help:"List the doors of a branch."`
	Open doorsOpenCmd `cmd:"" help:"Open the door of a room, or the front doors of a branch. Exit code 1: it did not open."`
}

type doorsListCmd struct {
	Branch string `arg:"" help:"Code of the branch."`
}

// Run lists the doors.
func (c *doorsListCmd) Run(p *program) error {
	answer, err := p.api.ListDoorsWithResponse(p.ctx, c.Branch)
	if err != nil {
		return err
	}
	list := answer.JSON200.Data
	return printList(p, list, list.Doors, func(d client.Door) []any { return []any{d.Device, d.Kind, list.Online} }, "DOOR", "KIND", "ONLINE")
}

type doorsOpenCmd struct {
	Branch string `arg:"" help:"Code of the branch."`
	Room   string `arg:"" optional:"" help:"Number of the room. Without it, the front doors open."`
}

// Run opens a door and waits for the result.
func (c *doorsOpenCmd) Run(p *program) error {
	outcome, err := client.OpenDoorAsStaff(p.ctx, p.api, c.Branch, c.Room)
	if err != nil {
		return err
	}
	if p.json {
		if err := json.NewEncoder(p.out).Encode(outcome); err != nil {
			return err
		}
	}
	if outcome.Status != "SUCCESS" {
		if outcome.FailoverKey != nil {
			return fmt.Errorf("%s did not open; code for its keypad: %s", text(outcome.Device), *outcome.FailoverKey)
		}
		return fmt.Errorf("%s did not open", text(outcome.Device))
	}
	if !p.json {
		fmt.Fprintf(p.out, "%s opened\n", text(outcome.Device))
	}
	return nil
}
