package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// InstallationPurpose is the purpose with which the constant of the installation is sealed.
const InstallationPurpose = "installation"

// Installation records the keys that a database was written with.
type Installation struct {
	Sealed    []byte   // a constant
	GrantKeys []string // public keys, base64, that every agent without a key list accepts
}

// FindInstallation returns the record. found is false before the first start of the service.
func FindInstallation(ctx context.Context, q Querier) (record Installation, found bool, err error) {
	err = q.QueryRow(ctx, `select sealed, grant_keys from installation where single`).Scan(&record.Sealed, &record.GrantKeys)
	if errors.Is(err, pgx.ErrNoRows) {
		return record, false, nil
	}
	return record, err == nil, err
}

// InsertInstallation stores the record unless there is one.
func InsertInstallation(ctx context.Context, q Querier, record Installation) error {
	_, err := q.Exec(ctx, `insert into installation (sealed, grant_keys) values ($1, $2) on conflict do nothing`, record.Sealed, record.GrantKeys)
	return err
}

// ReplaceInstallation stores the record in place of any other.
func ReplaceInstallation(ctx context.Context, q Querier, record Installation) error {
	_, err := q.Exec(ctx, `
		insert into installation (sealed, grant_keys) values ($1, $2)
		on conflict (single) do update set sealed = excluded.sealed, grant_keys = excluded.grant_keys`, record.Sealed, record.GrantKeys)
	return err
}

// PutInstallationGrantKeys replaces the grant keys of the record.
func PutInstallationGrantKeys(ctx context.Context, q Querier, keys []string) error {
	_, err := q.Exec(ctx, `update installation set grant_keys = $1 where grant_keys <> $1`, keys)
	return err
}

// AgentsWithFirstKeys reports whether a credential that is not revoked uses grant keys of the settings, not a key list.
func AgentsWithFirstKeys(ctx context.Context, q Querier) (found bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from agent_credential where revoked_at is null and key_epoch = $1)`, 0).Scan(&found)
	return found, err
}

// SampleSealed returns at most limit values of a sealed column.
func SampleSealed(ctx context.Context, q Querier, c SealedColumn, limit int) ([][]byte, error) {
	rows, err := q.Query(ctx, `select `+c.Column+` from `+c.Table+` where `+c.Column+` is not null limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}
