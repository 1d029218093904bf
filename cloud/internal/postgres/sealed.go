package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// SealedColumn is a column that holds values sealed by package seal. Table and Column are constants, never input.
type SealedColumn struct{ Table, Column, Purpose string }

// SealedColumns lists all sealed columns, which a rotation of the encryption key has to cover. broker_peer.secret is not among
// them: each replica seals it at its start.
var SealedColumns = []SealedColumn{
	{"door_pin", "pin", "door-pin"},
	{"pass", "pin", PassPINPurpose},
	{"pass_agent", "code_key", CodeKeyPurpose},
	{"message", "variables", "message"},
	{"payment", "secret", "callback-secret"},
	{"refund", "account", "refund-account"},
	{"refund", "extension_account", "refund-account"},
	{"cash_receipt", "number", "cash-receipt"},
	{"access_key", "sealed", "door-key"},
	{"reservation", "replaced_account", "refund-account"},
	{"administrator", "totp_secret", "totp"},
	{"administrator", "totp_pending", "totp"},
	{"webhook", "secret", "webhook-secret"},
	{"idempotent_request", "answer", "idempotent-answer"},
	{"grant_key", "seed", "grant-key"},
	{"legal_entity", "widget_key", EntityKeyPurpose},
	{"legal_entity", "api_key", EntityKeyPurpose},
	{"alert_contact", "contacts", "alert-contacts"},
	{"channel_listing", "feed_sealed", FeedPurpose},
	{"order_key", "sealed", OrderKeyPurpose},
	{"installation", "sealed", InstallationPurpose},
}

// keyID is the id of the key that the value of a column was sealed with (package seal: a version byte, then the key id).
func keyID(column string) string { return `substring(` + column + ` from 2 for 4)` }

// stale is a predicate for values that were not sealed with the key whose id is $1.
func (c SealedColumn) stale() string {
	return c.Column + ` is not null and ` + keyID(c.Column) + ` <> $1`
}

// CountStale counts the values of a column that were sealed with a key other than the given one.
func CountStale(ctx context.Context, q Querier, c SealedColumn, sealing []byte) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from `+c.Table+` where `+c.stale(), sealing).Scan(&n)
	return n, err
}

// resealBatch is the number of values resealed per batch.
const resealBatch = 500

// Reseal seals all values of a column with the first of the keys in small batches while the service runs. A value that
// changes in the meantime is skipped, because its writer already uses the new key. lost is the number of values whose key is not among them.
func Reseal(ctx context.Context, db *DB, c SealedColumn, keys *seal.Keyring) (n, lost int, err error) {
	type value struct {
		Place  string
		Sealed []byte
	}
	for {
		rows, err := db.Pool.Query(ctx, `select ctid::text, `+c.Column+` from `+c.Table+` where `+c.stale()+` and `+keyID(c.Column)+` = any($2) limit $3`,
			keys.SealingKeyID(), keys.KeyIDs(), resealBatch)
		if err != nil {
			return n, lost, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[value])
		if err != nil {
			return n, lost, err
		}
		if len(found) == 0 {
			break
		}
		batch := new(pgx.Batch)
		for _, v := range found {
			plain, err := keys.Open(c.Purpose, v.Sealed)
			if err != nil {
				return n, lost, fmt.Errorf("%s.%s: %w", c.Table, c.Column, err)
			}
			batch.Queue(`update `+c.Table+` set `+c.Column+` = $3 where ctid = $1::text::tid and `+c.Column+` = $2`, v.Place, v.Sealed, keys.Seal(c.Purpose, plain))
		}
		results := db.Pool.SendBatch(ctx, batch)
		for range found {
			tag, execErr := results.Exec()
			n, err = n+int(tag.RowsAffected()), errors.Join(err, execErr)
		}
		if err = errors.Join(err, results.Close()); err != nil {
			return n, lost, err
		}
	}
	err = db.Pool.QueryRow(ctx, `select count(*) from `+c.Table+` where `+keyID(c.Column)+` <> all($1)`, keys.KeyIDs()).Scan(&lost)
	return n, lost, err
}
