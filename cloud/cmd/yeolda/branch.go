package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/branchfile"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type branchCmd struct {
	Apply branchApplyCmd `cmd:"" help:"Apply a file of branches: the changes are shown, then made."`
	List  branchListCmd  `cmd:"" help:"List the branches."`
	Show  branchShowCmd  `cmd:"" help:"Show a branch with its rooms."`
}

// branchApplyCmd is `yeolda branch apply`.
type branchApplyCmd struct {
	File     string          `short:"f" required:"" placeholder:"FILE" help:"YAML file with branches; - is standard input."`
	DryRun   bool            `help:"Show the changes and make none."`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run shows the changes and makes them.
func (c *branchApplyCmd) Run(p *program) error {
	name, content, err := c.read(p.in)
	if err != nil {
		return err
	}
	file, err := branchfile.Parse(name, content)
	if err != nil {
		return err
	}
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		plan, err := branchfile.MakePlan(p.ctx, db.Pool, keys, name, file, db.Now())
		if err != nil {
			return err
		}
		fmt.Fprint(p.out, plan)
		if c.DryRun || len(plan.Changes) == 0 {
			return nil
		}
		if err := branchfile.Apply(p.ctx, db, keys, name, file, plan, p.by()); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		fmt.Fprintf(p.out, "%d changes made\n", len(plan.Changes))
		return nil
	})
}

func (c *branchApplyCmd) read(in io.Reader) (name string, content []byte, err error) {
	if c.File == "-" {
		content, err = io.ReadAll(io.LimitReader(in, branchfile.MaxSize+1))
		return "standard input", content, err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, branchfile.MaxSize+1))
	return filepath.ToSlash(c.File), content, err
}

// branchListCmd is `yeolda branch list`.
type branchListCmd struct {
	Database config.Database `embed:""`
}

// Run lists the branches.
func (c *branchListCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		codes, err := db.BranchCodes(p.ctx)
		if err != nil {
			return err
		}
		table := newTable(p.out, "CODE", "ROOMS", "FRONT DOORS", "TIME ZONE", "NAME")
		for _, code := range codes {
			b, err := db.Branch(p.ctx, code)
			if err != nil {
				return err
			}
			enabled := 0
			for _, room := range b.Rooms {
				if room.Enabled {
					enabled++
				}
			}
			rooms := fmt.Sprint(len(b.Rooms))
			if enabled < len(b.Rooms) {
				rooms = fmt.Sprintf("%d (%d disabled)", len(b.Rooms), len(b.Rooms)-enabled)
			}
			table.row(b.Code, rooms, strings.Join(b.FrontDoors, " "), b.Zone.String(), b.NameKo)
		}
		return table.flush()
	})
}

// branchShowCmd is `yeolda branch show`.
type branchShowCmd struct {
	Code     string          `arg:"" help:"Code of the branch."`
	Database config.Database `embed:""`
}

// Run shows a branch.
func (c *branchShowCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		b, err := db.Branch(p.ctx, c.Code)
		if errors.Is(err, postgres.ErrNoBranch) {
			return fmt.Errorf("there is no branch %q; see yeolda branch list", c.Code)
		}
		if err != nil {
			return err
		}
		today := b.Schedule.Day(booking.DateOf(db.Now(), b.Zone))
		table := newTable(p.out)
		table.row("code", b.Code)
		for _, fact := range b.Facts() {
			table.row(fact.Name, fact.Text)
		}
		table.row("today", strings.TrimSpace(string(today.Status)+" "+today.Reason))
		if err := table.flush(); err != nil {
			return err
		}
		fmt.Fprintln(p.out)
		table = newTable(p.out, "ROOM", "GRADE", "10 MIN", "30 MIN", "60 MIN", "STATE", "MACHINE")
		for _, room := range b.Rooms {
			state := "enabled"
			if !room.Enabled {
				state = "disabled"
			}
			table.row(fmt.Sprint(room.No), string(room.Grade),
				won(room.Price.Min10), won(room.Price.Min30), won(room.Price.Min60), state, room.Machine)
		}
		return table.flush()
	})
}

func won(price *int) string {
	if price == nil {
		return "-"
	}
	return fmt.Sprint(*price)
}

// table writes aligned columns. It counts characters, but Korean ones are two columns wide, so they come last.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer, heads ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(heads) > 0 {
		t.row(heads...)
	}
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

func (t table) flush() error { return t.Flush() }

// when formats a time for operators; a zero time is a dash.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
