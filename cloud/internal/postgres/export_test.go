package postgres

import (
	"context"
	"io/fs"
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// MigrationLockHolders exports migrationLockHolders.
var MigrationLockHolders = migrationLockHolders

// RejectPooler exports rejectPooler.
var RejectPooler = rejectPooler

// MigrateTo creates the schema of an earlier release.
func MigrateTo(ctx context.Context, pool *pgxpool.Pool, version int64) error {
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
	_, err = provider.UpTo(ctx, version)
	return err
}

// Waiting returns the number of calls that are not in a batch yet.
func (b *Batcher[Q, A]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Dial opens a connection as a pool does.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer().DialContext(ctx, network, address)
}

// LostTimeout exports lostTimeout.
const LostTimeout = lostTimeout

// DeleteBefore exports deleteBefore.
var DeleteBefore = deleteBefore

// PhoneKey exports phoneKey.
var PhoneKey = phoneKey
