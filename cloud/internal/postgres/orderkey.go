package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// OrderKeyPurpose is the purpose of the sealed keys of order ids.
const OrderKeyPurpose = "order-key"

// ErrNoOrderKey is returned if a day has no key for order ids.
var ErrNoOrderKey = errors.New("postgres: the day has no order key")

// OrderKey returns the sealed key for the order ids of a day in UTC, or ErrNoOrderKey.
func OrderKey(ctx context.Context, q Querier, day time.Time) (sealed []byte, err error) {
	err = q.QueryRow(ctx, `select sealed from order_key where day = $1`, day.UTC().Format(time.DateOnly)).Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoOrderKey
	}
	return sealed, err
}

// OrderKeys returns all sealed keys of order ids.
func OrderKeys(ctx context.Context, q Querier) ([][]byte, error) {
	rows, err := q.Query(ctx, `select sealed from order_key order by day`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}

// PutOrderKey stores the sealed key of a day in UTC, unless the day has one.
func PutOrderKey(ctx context.Context, q Querier, day time.Time, sealed []byte) error {
	_, err := q.Exec(ctx, `insert into order_key (day, sealed) values ($1, $2) on conflict do nothing`, day.UTC().Format(time.DateOnly), sealed)
	return err
}

// PurgeOrderKeys deletes the keys of the days before one.
func PurgeOrderKeys(ctx context.Context, q Querier, day time.Time) error {
	_, err := q.Exec(ctx, `delete from order_key where day < $1`, day.UTC().Format(time.DateOnly))
	return err
}
