package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
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

// stale is a predicate for values that were not sealed with the key whose id is $1 (package seal: a version byte,
// then the key id).
func (c SealedColumn) stale() string {
	return fmt.Sprintf(`%s is not null and substring(%[1]s from 2 for 4) <> $1`, c.Column)
}

// CountStale counts the values of a column that were sealed with a key other than the given one.
func CountStale(ctx context.Context, q Querier, c SealedColumn, keyID []byte) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from `+c.Table+` where `+c.stale(), keyID).Scan(&n)
	return n, err
}

// resealBatch is the number of values resealed per batch.
const resealBatch = 500

// Reseal seals all values of a column with the given key in small batches while the service runs. A value that
// changes in the meantime is skipped, because its writer already uses the new key. reseal converts one value.
func Reseal(ctx context.Context, db *DB, c SealedColumn, keyID []byte, reseal func(sealed []byte) ([]byte, error)) (n int, err error) {
	type value struct {
		Place  string
		Sealed []byte
	}
	for {
		rows, err := db.Pool.Query(ctx, `select ctid::text, `+c.Column+` from `+c.Table+` where `+c.stale()+` limit $2`, keyID, resealBatch)
		if err != nil {
			return n, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[value])
		if err != nil || len(found) == 0 {
			return n, err
		}
		batch := new(pgx.Batch)
		for _, v := range found {
			fresh, err := reseal(v.Sealed)
			if err != nil {
				return n, fmt.Errorf("%s.%s: %w", c.Table, c.Column, err)
			}
			batch.Queue(`update `+c.Table+` set `+c.Column+` = $3 where ctid = $1::text::tid and `+c.Column+` = $2`, v.Place, v.Sealed, fresh)
		}
		results := db.Pool.SendBatch(ctx, batch)
		for range found {
			tag, execErr := results.Exec()
			n, err = n+int(tag.RowsAffected()), errors.Join(err, execErr)
		}
		if err = errors.Join(err, results.Close()); err != nil {
			return n, err
		}
	}
}
