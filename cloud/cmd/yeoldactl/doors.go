package main

import (
	"encoding/json"
	"errors"
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
	Branch string  `arg:"" help:"Code of the branch."`
	Room   *string `arg:"" optional:"" help:"Number of the room. Without it, the front doors open."`
}

// Validate rejects an empty room: a variable of a script that has no value must not open the front doors.
func (c *doorsOpenCmd) Validate() error {
	if c.Room != nil && *c.Room == "" {
		return errors.New("the room has no number; leave it out to open the front doors")
	}
	return nil
}

// Run opens a door and waits for the result.
func (c *doorsOpenCmd) Run(p *program) error {
	outcome, err := c.open(p)
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

func (c *doorsOpenCmd) open(p *program) (client.DoorOutcome, error) {
	if c.Room == nil {
		return client.OpenFrontAsStaff(p.ctx, p.api, c.Branch)
	}
	return client.OpenRoomAsStaff(p.ctx, p.api, c.Branch, *c.Room)
}
