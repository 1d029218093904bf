package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migration/*.sql
var migrations embed.FS

// migrationLock is the advisory lock of whoever migrates: "yeolda" in ASCII.
const migrationLock int64 = 0x79656f6c6461

// silent keeps the two libraries from reporting what Migrate reports.
var silent = slog.New(slog.DiscardHandler)

// Migrate brings the schema up to date: the service's own tables and those of
// River. It holds one advisory lock all the while, so replicas may start at
// once; all but one find nothing left to do. A schema newer than this program is
// left alone. On an error the migrations before the failed one stay applied.
func Migrate(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	// Connections of its own, because a migration and the wait for the lock may
	// well take longer than a statement of the service.
	config := pool.Config()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 4
	config.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()

	locker, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	lock := locker.Hijack()
	// The end of the session gives the lock back, whatever has happened to ctx.
	defer lock.Close(context.WithoutCancel(ctx))
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return fmt.Errorf("migrate: wait for the lock: %w", err)
	}
	if err := migrateService(ctx, pool, logger); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := migrateRiver(ctx, pool, logger); err != nil {
		return fmt.Errorf("migrate River: %w", err)
	}
	return nil
}

func migrateService(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	files, err := fs.Sub(migrations, "migration")
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSlog(silent), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return err
	}
	for _, m := range applied {
		logger.InfoContext(ctx, "migrated", "migration", m.Source.Path, "took", m.Duration)
	}
	return nil
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return err
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return err
	}
	for _, m := range result.Versions {
		logger.InfoContext(ctx, "migrated River", "version", m.Version, "migration", m.Name, "took", m.Duration)
	}
	return nil
}

// SchemaHash names the schema Migrate makes: it changes whenever a migration is
// added or edited.
func SchemaHash() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := migrations.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", err
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Logger: silent})
	if err != nil {
		return "", err
	}
	for _, m := range river.AllVersions() {
		fmt.Fprintf(hash, "river %d %d\n%s", m.Version, len(m.SQLUp), m.SQLUp)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
