package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	shipInterval = time.Second
	retryDelay   = 10 * time.Second

	maintainInterval = 10 * time.Minute
	baseInterval     = 24 * time.Hour
	testInterval     = 7 * 24 * time.Hour

	// maxLoss is the age of the last row in a restored database above which the test of a restoration fails.
	maxLoss = 2 * time.Minute
)

// basedFile marks an outbox since whose creation a base backup was taken: archiving may have been off before.
const basedFile = ".based"

// Keeper archives a private database while the service runs. All fields are required.
type Keeper struct {
	Archive *Archive
	Server  *pgserver.Server
	DB      *postgres.DB
	DataDir string
	Keep    time.Duration // any moment of this time can be restored
	Log     *slog.Logger

	system   string
	timeline string     // 8 hexadecimal digits
	sending  sync.Mutex // one call of Ship at a time
}

// Run archives until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	var err error
	if k.system, err = k.query(ctx, `select system_identifier from pg_control_system()`); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if k.timeline, err = k.query(ctx, `select left(pg_walfile_name(pg_current_wal_lsn()), 8)`); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	maintained := make(chan struct{})
	go func() {
		defer close(maintained)
		k.maintain(ctx)
	}()
	k.ship(ctx)
	<-maintained
	return ctx.Err()
}

// query returns a value that the owner of the server reads.
func (k *Keeper) query(ctx context.Context, sql string) (text string, err error) {
	conn, err := pgx.Connect(ctx, k.Server.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `select (`+sql+`)::text`).Scan(&text)
	return text, err
}

// ship stores finished segments as they appear.
func (k *Keeper) ship(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		shipped, err := k.send(ctx)
		delay := shipInterval
		switch {
		case err != nil && ctx.Err() == nil:
			if delay = retryDelay; !failing {
				k.Log.ErrorContext(ctx, "the database is not archived", "error", err)
			}
			failing = true
		case shipped > 0:
			if failing {
				k.Log.InfoContext(ctx, "the database is archived again")
			}
			failing = false
			k.note(ctx, postgres.WorkArchive)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// Finish stores the last segments, which the server has written when it stopped: a machine that is stopped to be replaced loses
// nothing. Call it after Run has returned and the server has stopped.
func (k *Keeper) Finish(ctx context.Context) {
	if k.system == "" {
		return // it never ran
	}
	if _, err := k.send(ctx); err != nil {
		k.Log.ErrorContext(ctx, "the last changes are not archived; they follow at the next start", "error", err)
	}
}

func (k *Keeper) send(ctx context.Context) (shipped int, err error) {
	k.sending.Lock()
	defer k.sending.Unlock()
	return k.Archive.Ship(ctx, k.system, k.timeline, k.Server.Outbox())
}

// note stores the time of a success, which becomes a metric. Without it an alert begins.
func (k *Keeper) note(ctx context.Context, work string) {
	if err := postgres.NoteSuccess(ctx, k.DB.Pool, work, k.DB.Now()); err != nil && ctx.Err() == nil {
		k.Log.WarnContext(ctx, "archive: the time of a success was not stored", "work", work, "error", err)
	}
}

// maintain takes a base backup every day and tests the restoration every week.
func (k *Keeper) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.Due(ctx); err != nil && ctx.Err() == nil {
			k.Log.ErrorContext(ctx, "the archive was not maintained", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(maintainInterval):
		}
	}
}

// Due takes a base backup and tests the restoration if it is time.
func (k *Keeper) Due(ctx context.Context) error {
	last, err := postgres.LastSuccesses(ctx, k.DB.Pool)
	if err != nil {
		return err
	}
	due := func(work string, interval time.Duration) bool { return k.DB.Now().Sub(last[work]) >= interval }
	bases, err := k.Archive.Bases(ctx)
	if err != nil {
		return err
	}
	// An archive that was moved to another place has none.
	none := !slices.ContainsFunc(bases, func(b Base) bool { return b.System == k.system })
	based := filepath.Join(k.Server.Outbox(), basedFile)
	if _, err := os.Stat(based); err != nil || none || due(postgres.WorkBase, baseInterval) {
		if err := k.Base(ctx); err != nil {
			return err
		}
		if err := os.WriteFile(based, nil, 0o600); err != nil {
			return err
		}
		if err := k.prune(ctx); err != nil {
			return err
		}
	}
	if !due(postgres.WorkRestoreTest, testInterval) {
		return nil
	}
	found, err := k.Test(ctx)
	if err != nil {
		return fmt.Errorf("the database could not be restored from the archive: %w", err)
	}
	k.Log.InfoContext(ctx, "the database was restored from the archive for a test", "until", found.Until, "violations", found.Violations)
	return nil
}

// prune removes what no wanted moment needs, unless the clock may be wrong.
func (k *Keeper) prune(ctx context.Context) error {
	now := k.DB.Now()
	steady, err := postgres.ClockSteady(ctx, k.DB.Pool, now)
	if err != nil || !steady {
		return err
	}
	return k.Archive.Prune(ctx, k.system, now.Add(-k.Keep))
}

// Base stores a base backup, which is complete once the segments that it needs are stored, too.
func (k *Keeper) Base(ctx context.Context) error {
	first, err := k.query(ctx, `select pg_walfile_name(pg_current_wal_lsn())`)
	if err != nil {
		return err
	}
	err = k.Archive.PutBase(ctx, k.system, first, k.DB.Now, func(w io.Writer) error {
		if err := k.Server.BaseBackup(ctx, w); err != nil {
			return err
		}
		_, err := k.send(ctx)
		return err
	})
	if err != nil {
		return err
	}
	k.note(ctx, postgres.WorkBase)
	return nil
}

// Test restores the last moment of the archive into a temporary directory, which needs twice the size of the database, and
// checks the result.
func (k *Keeper) Test(ctx context.Context) (Found, error) {
	began := k.DB.Now()
	if err := k.checkSpace(ctx); err != nil {
		return Found{}, err
	}
	base, err := k.Archive.Choose(ctx, k.system, time.Time{})
	if err != nil {
		return Found{}, err
	}
	found, err := k.Archive.Test(ctx, pgserver.Options{DataDir: k.DataDir, Logger: k.Log}, base)
	if err != nil {
		return Found{}, err
	}
	if lost := began.Sub(found.Until); lost > maxLoss {
		return Found{}, fmt.Errorf("the restored database ends %s ago, at %s", lost.Round(time.Second), found.Until)
	}
	k.note(ctx, postgres.WorkRestoreTest)
	return found, nil
}

func (k *Keeper) checkSpace(ctx context.Context) error {
	free, _, err := pgserver.FreeSpace(k.DataDir)
	if err != nil {
		return err
	}
	text, err := k.query(ctx, `select pg_database_size(current_database())`)
	if err != nil {
		return err
	}
	size, err := strconv.ParseUint(text, 10, 64)
	if err == nil && free < 2*size {
		err = fmt.Errorf("%d MiB are free on the disk of %s, a test needs %d", free>>20, k.DataDir, 2*size>>20)
	}
	return err
}

// Found describes a restored database.
type Found struct {
	Until      time.Time // its last write
	Schema     int64
	Violations int // of the rules of reservations, money and doors
}

// Test restores a base backup and the segments after it beside the data directory of opts, and examines the result.
func (a *Archive) Test(ctx context.Context, opts pgserver.Options, base Base) (found Found, err error) {
	dir, err := os.MkdirTemp(opts.DataDir, "restore-test-*")
	if err != nil {
		return Found{}, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own directory below it is closed to others
		return Found{}, err
	}
	opts.DataDir, opts.Archive = dir, pgserver.ArchivingKept
	defer func() { err = errors.Join(err, pgserver.Discard(dir), os.RemoveAll(dir)) }()
	server, err := a.Restore(ctx, opts, base, time.Time{})
	if err != nil {
		return Found{}, err
	}
	defer server.Stop()
	return examine(ctx, server.URL(), opts.Logger)
}

// examine reads all rows that the rules are about.
func examine(ctx context.Context, url string, logger *slog.Logger) (found Found, err error) {
	db, err := postgres.Open(ctx, url, logger)
	if err != nil {
		return Found{}, err
	}
	defer db.Close()
	have, want, err := postgres.SchemaVersions(ctx, db.Pool)
	if err != nil {
		return Found{}, err
	}
	if found.Schema = have; have != want {
		return Found{}, fmt.Errorf("the restored schema is %d, not %d", have, want)
	}
	last, err := postgres.LastSuccesses(ctx, db.Pool)
	if err != nil {
		return Found{}, err
	}
	found.Until = last[postgres.WorkWrite]
	results, err := postgres.Prove(ctx, db.Pool, time.Time{})
	for _, r := range results {
		found.Violations += r.Violations
	}
	return found, err
}
