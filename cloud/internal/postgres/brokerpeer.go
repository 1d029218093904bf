package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPeerReplaced is returned when another replica uses the address of this one.
var ErrPeerReplaced = errors.New("postgres: another replica has the same address for its peers")

// BrokerPeer is the embedded broker of a replica.
type BrokerPeer struct {
	URL    string // at which the other replicas reach it
	Secret []byte // sealed
}

// MeetBrokerPeers renews the row of a replica, removes rows that were not renewed within ttl, by the clock of the database, and
// returns the others. The first call after the start of the replica replaces a row of its predecessor. It returns ErrPeerReplaced.
func MeetBrokerPeers(ctx context.Context, db *DB, own BrokerPeer, first bool, ttl time.Duration) (others []BrokerPeer, err error) {
	batch := new(pgx.Batch)
	batch.Queue(`
		insert into broker_peer (url, secret, seen_at) values ($1, $2, clock_timestamp())
		on conflict (url) do update set secret = excluded.secret, seen_at = excluded.seen_at
		where $3 or broker_peer.secret = excluded.secret`, own.URL, own.Secret, first).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return ErrPeerReplaced
		}
		return nil
	})
	// Rows that another replica is about to renew or remove are left to it.
	batch.Queue(`
		delete from broker_peer where url in (
			select url from broker_peer where seen_at < clock_timestamp() - $1::interval for update skip locked)`, ttl)
	batch.Queue(`select url, secret from broker_peer where url <> $1 order by url`, own.URL).Query(func(rows pgx.Rows) error {
		others, err = pgx.CollectRows(rows, pgx.RowToStructByPos[BrokerPeer])
		return err
	})
	return others, db.Pool.SendBatch(ctx, batch).Close()
}
