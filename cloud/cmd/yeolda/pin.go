package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type pinCmd struct {
	List pinListCmd `cmd:"" help:"List the door PINs that guests have seen since they were changed."`
	Set  pinSetCmd  `cmd:"" help:"Record that the PIN of a door was changed at its keypad. The PIN is read from standard input."`
}

// pinListCmd is `yeolda pin list`.
type pinListCmd struct {
	All      bool            `help:"List all PINs."`
	Database config.Database `embed:""`
}

// Run lists the disclosed PINs, without their digits.
func (c *pinListCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		pins, err := postgres.DoorPINs(p.ctx, db.Pool, "")
		if err != nil {
			return err
		}
		table := newTable(p.out, "BRANCH", "DOOR", "CHANGED", "DISCLOSED SINCE")
		for _, pin := range pins {
			if pin.Reveals > 0 || c.All {
				table.row(pin.Branch, pin.Device, when(pin.ChangedAt), fmt.Sprint(pin.Reveals))
			}
		}
		return table.flush()
	})
}

// pinSetCmd is `yeolda pin set`.
type pinSetCmd struct {
	Branch   string          `arg:"" help:"Code of the branch."`
	Door     string          `arg:"" help:"front or room_<n>."`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run stores the PIN that was set at a keypad.
func (c *pinSetCmd) Run(p *program) error {
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		branch, err := db.Branch(p.ctx, c.Branch)
		if errors.Is(err, booking.ErrNoBranch) {
			return fmt.Errorf("there is no branch %q; see yeolda branch list", c.Branch)
		}
		if err != nil {
			return err
		}
		known := c.Door == "front"
		for _, room := range branch.Rooms {
			known = known || room.Device() == c.Door
		}
		if !known {
			return fmt.Errorf("branch %s has no door %q; expected front or room_<n>", c.Branch, c.Door)
		}
		line, err := bufio.NewReader(p.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the PIN: %w", err)
		}
		pin := strings.TrimSpace(line)
		office := &backoffice.Service{DB: db, Keys: keys}
		if err := office.SetPIN(p.ctx, branch, c.Door, pin, p.by()); err != nil {
			return fmt.Errorf("set the PIN of %s: %w", c.Door, err)
		}
		fmt.Fprintf(p.out, "PIN of %s at %s recorded\n", c.Door, c.Branch)
		return nil
	})
}
