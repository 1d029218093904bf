package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/archive"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type archiveCmd struct {
	Key     archiveKeyCmd     `cmd:"" help:"Print a new key for YEOLDA_ARCHIVE_KEY."`
	List    archiveListCmd    `cmd:"" help:"List the base backups."`
	Test    archiveTestCmd    `cmd:"" help:"Restore the archive into a temporary directory and examine the result. Exit code 1: it cannot be restored."`
	Restore archiveRestoreCmd `cmd:"" help:"Restore the private database from the archive into an empty data directory."`
}

// openArchive returns the archive of the settings.
func openArchive(a config.Archive) (*archive.Archive, error) {
	if a.Place == "" {
		return nil, &config.Problem{Variable: "YEOLDA_ARCHIVE", Text: "names no archive"}
	}
	return archive.Open(a.Place, a.Key.Reveal(), a.AccessKey, a.SecretKey.Reveal())
}

// archiveKeyCmd is `yeolda archive key`.
type archiveKeyCmd struct{}

// Run prints a key.
func (archiveKeyCmd) Run(p *program) error {
	key, err := archive.NewKey()
	if err == nil {
		fmt.Fprintln(p.out, key)
	}
	return err
}

// archiveListCmd is `yeolda archive list`.
type archiveListCmd struct {
	Archive config.Archive `embed:""`
}

// Run lists the base backups, the oldest first.
func (c *archiveListCmd) Run(p *program) error {
	a, err := openArchive(c.Archive)
	if err != nil {
		return err
	}
	bases, err := a.Bases(p.ctx)
	if err != nil {
		return err
	}
	table := newTable(p.out, "SYSTEM", "RESTORES FROM", "FIRST SEGMENT")
	for _, b := range bases {
		table.row(b.System, b.End.Format(time.RFC3339), b.Segment)
	}
	return table.flush()
}

// archiveTestCmd is `yeolda archive test`.
type archiveTestCmd struct {
	Archive config.Archive `embed:""`
	DataDir string         `name:"data-dir" env:"YEOLDA_DATA_DIR" default:"./data" help:"The temporary directory is created here."`
	System  string         `help:"System to restore, if the archive has several."`
}

// Run restores the newest state and prints what it holds.
func (c *archiveTestCmd) Run(p *program) error {
	a, base, err := chooseBase(p, c.Archive, c.System, time.Time{})
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	found, err := a.Test(p.ctx, pgserver.Options{DataDir: dir, Logger: p.logger()}, base)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "restored until %s; schema %d, %d violations of the rules\n", found.Until.Format(time.RFC3339), found.Schema, found.Violations)
	return nil
}

// archiveRestoreCmd is `yeolda archive restore`.
type archiveRestoreCmd struct {
	Archive  config.Archive  `embed:""`
	Database config.Database `embed:""`
	Until    time.Time       `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Moment to restore, such as 2026-11-21T15:04:00+09:00; without it the last one."`
	System   string          `help:"System to restore, if the archive has several."`
	Erasures string          `type:"existingfile" placeholder:"FILE" help:"List of erased persons beside the backups, for a moment before the last one."`
}

// Run restores the database, and begins a rebuild, which yeolda rebuild or the service completes.
func (c *archiveRestoreCmd) Run(p *program) error {
	if c.Database.URL != "" {
		return errors.New("the archive holds a private database: unset YEOLDA_DATABASE_URL")
	}
	erasures, err := readErasures(c.Erasures, c.Erasures == "")
	if err != nil {
		return err
	}
	a, base, err := chooseBase(p, c.Archive, c.System, c.Until)
	if err != nil {
		return err
	}
	began := time.Now()
	server, err := a.Restore(p.ctx, pgserver.Options{DataDir: c.Database.DataDir, Logger: p.logger()}, base, c.Until)
	if err != nil {
		return err
	}
	err = p.run(func(db *postgres.DB) error {
		last, err := postgres.LastSuccesses(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "restored until %s, within %s\n", last[postgres.WorkWrite].Format(time.RFC3339), time.Since(began).Round(time.Second))
		return db.InTx(p.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			return postgres.BeginRestoration(ctx, tx, postgres.Restoration{File: c.Archive.Place, Erasures: erasures})
		})
	})(postgres.Open(p.ctx, server.URL(), p.logger()))
	if err == nil {
		err = server.EndRestoration() // from here on, the record in the database leads to the rebuild
	}
	server.Stop()
	if err != nil {
		return err
	}
	return p.endRestoration(c.Database)
}

func chooseBase(p *program, set config.Archive, system string, until time.Time) (*archive.Archive, archive.Base, error) {
	a, err := openArchive(set)
	if err != nil {
		return nil, archive.Base{}, err
	}
	base, err := a.Choose(p.ctx, system, until)
	return a, base, err
}

// pgUpgradeCmd is `yeolda pg-upgrade`.
type pgUpgradeCmd struct {
	Database config.Database `embed:""`
}

// Run upgrades the stopped database and refreshes the planner's statistics, which pg_upgrade does not move.
func (c *pgUpgradeCmd) Run(p *program) error {
	if c.Database.URL != "" {
		return errors.New("the database of YEOLDA_DATABASE_URL belongs to its own server: upgrade it there")
	}
	from, to, err := pgserver.Upgrade(p.ctx, pgserver.Options{DataDir: c.Database.DataDir, Logger: p.logger()})
	if err != nil {
		return err
	}
	if from == to {
		fmt.Fprintf(p.out, "PostgreSQL %s is the newest version here\n", to)
		return nil
	}
	err = p.withRawDatabase(c.Database, func(db *postgres.DB) error { return postgres.Analyze(p.ctx, db.Pool) })
	if err == nil {
		fmt.Fprintf(p.out, "upgraded from PostgreSQL %s to %s; the old files remain below %s/postgres/cluster-%s\n", from, to, c.Database.DataDir, from)
	}
	return err
}
