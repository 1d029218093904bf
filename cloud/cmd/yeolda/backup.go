package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// backupCmd is `yeolda backup`.
type backupCmd struct {
	File     string          `arg:"" type:"path" help:"File to write, in pg_dump's custom format."`
	Database config.Database `embed:""`
}

// Run writes a consistent copy of the database while the service runs. The file appears complete or not at all. Sealed
// values remain sealed: keep YEOLDA_ENCRYPTION_KEY elsewhere.
func (c *backupCmd) Run(p *program) error {
	// A name of its own: two backups at once must not write into one file.
	f, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*.part")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it was renamed after success
	err = p.withTool(c.Database, "pg_dump", func(tool *exec.Cmd, _ *postgres.DB) error {
		// Not to its standard output, to which pg_dump 17 appends the list of contents a second time instead of completing the first one.
		tool.Args = append(tool.Args, "--format=custom", "--no-owner", "--no-privileges", "--exclude-table="+postgres.RestorationTable, "--file="+f.Name())
		return tool.Run()
	})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), c.File); err != nil {
		return err
	}
	err = p.withRawDatabase(c.Database, func(db *postgres.DB) error { // the metric of its age
		if err := p.keepErasures(db, erasuresBeside(c.File)); err != nil {
			return err
		}
		return postgres.NoteSuccess(p.ctx, db.Pool, postgres.WorkBackup, db.Now())
	})
	if err != nil {
		p.logger().Warn("the backup is complete, but its time or the list of erasures was not stored", "error", err)
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s: %d KiB\n", filepath.Base(c.File), (info.Size()+1023)/1024)
	return nil
}

// restoreCmd is `yeolda restore`.
type restoreCmd struct {
	File     string          `arg:"" type:"existingfile" help:"File written by yeolda backup."`
	Erasures string          `type:"path" placeholder:"FILE" help:"List of erased persons, who are erased again; without it the file erasures beside the backup."`
	Database config.Database `embed:""`
}

// Run fills an empty database from a backup, completely or not at all, migrates its schema, and begins a rebuild, which
// yeolda rebuild or the service completes. If it is interrupted, its repetition or the next migration does the rest.
func (c *restoreCmd) Run(p *program) error {
	erasures, err := readErasures(cmp.Or(c.Erasures, erasuresBeside(c.File)), c.Erasures == "")
	if err != nil {
		return err // afterwards it could not be repeated: the database would not be empty
	}
	err = p.withTool(asOwner(c.Database), "pg_restore", func(tool *exec.Cmd, db *postgres.DB) error {
		release, err := postgres.LockRestoration(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		defer release()
		restored, err := p.beginRestoration(db, postgres.Restoration{File: filepath.Base(c.File), Erasures: erasures})
		if err != nil || restored {
			return err
		}
		tool.Args = append(tool.Args, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", c.File)
		err = tool.Run()
		if err != nil && p.ctx.Err() == nil { // after an interruption the server may have committed, or commit yet
			err = errors.Join(err, postgres.DropRestoration(p.ctx, db.Pool))
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.endRestoration(c.Database)
}

// beginRestoration prepares an empty database for pg_restore. restored is true if an earlier restoration of the same backup was interrupted
// after pg_restore.
func (p *program) beginRestoration(db *postgres.DB, r postgres.Restoration) (restored bool, err error) {
	have, _, err := postgres.SchemaVersions(p.ctx, db.Pool)
	if err != nil {
		return false, err
	}
	earlier, found, err := postgres.FindRestoration(p.ctx, db.Pool)
	switch {
	case err != nil:
		return false, err
	case found && have > 0 && earlier.File != r.File:
		return false, fmt.Errorf("an interrupted restoration has filled the database from %s: repeat it with that file, or restore into a new database", earlier.File)
	case found && have > 0:
		restored = true
	case have > 0:
		if err := p.emptySchema(db); err != nil {
			return false, err
		}
	}
	return restored, db.InTx(p.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRestoration(ctx, tx, r) })
}

// endRestoration migrates a restored database, which begins the rebuild.
func (p *program) endRestoration(d config.Database) error {
	err := (&migrateCmd{Database: d}).Run(p)
	if err == nil {
		fmt.Fprintln(p.out, "no new reservations are taken until yeolda rebuild, or the service, has read the payment provider's books")
	}
	return err
}

// emptySchema removes a schema without data, as a command such as yeolda branch list makes in an empty database.
func (p *program) emptySchema(db *postgres.DB) error {
	return db.InTx(p.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		used, err := postgres.TablesInUse(ctx, tx)
		if err != nil {
			return err
		}
		if len(used) > 0 {
			return fmt.Errorf("the database is not empty, it has rows in %s; restore into a new one: createdb, and YEOLDA_DATABASE_URL, or with a "+
				"private one an empty YEOLDA_DATA_DIR", strings.Join(used[:min(3, len(used))], ", "))
		}
		return postgres.DropTables(ctx, tx)
	})
}

// withTool prepares one of PostgreSQL's programs, of the right version and connected to the database, for do.
func (p *program) withTool(d config.Database, name string, do func(tool *exec.Cmd, db *postgres.DB) error) error {
	return p.withRawDatabase(d, func(db *postgres.DB) error {
		server, err := postgres.DiagnoseServer(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		path, err := pgserver.Tool(p.ctx, name, server.VersionNumber/100_00)
		if err != nil {
			return err
		}
		tool := connect(p.ctx, path, db.Pool.Config().ConnString(), db.Pool.Config().ConnConfig.Password)
		tool.Stdout, tool.Stderr = p.out, p.err
		if err := do(tool, db); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// connect returns a command that connects to a database. The password is not visible in the process list.
func connect(ctx context.Context, path, database, password string) *exec.Cmd {
	tool := exec.CommandContext(ctx, path, "--dbname="+forTools(database), "--no-password")
	tool.Env = os.Environ()
	if password != "" {
		tool.Env = append(tool.Env, "PGPASSWORD="+password)
	}
	return tool
}

// poolParameter matches a parameter that only pgx knows, or a password, in a keyword connection string.
var poolParameter = regexp.MustCompile(`\b(pool_\w+|default_query_exec_mode|statement_cache_capacity|description_cache_capacity|password)\s*=\s*('(\\.|[^'])*'|\S*)`)

// forTools returns a connection string for libpq, without the password.
func forTools(database string) string {
	u, err := url.Parse(database)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return strings.TrimSpace(poolParameter.ReplaceAllString(database, ""))
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if poolParameter.MatchString(name + "=") {
			query.Del(name)
		}
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq does not decode +
	return u.String()
}
