package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// PutPageFiles stores the files of the pages of a replica that starts, by name, and deletes those of versions that have not been
// started for a year.
func PutPageFiles(ctx context.Context, q Querier, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files)) // replicas that start at the same time lock the rows in the same order
	data := make([][]byte, len(names))
	for i, name := range names {
		data[i] = files[name]
	}
	if _, err := q.Exec(ctx, `
		insert into page_file (name, data) select * from unnest($1::text[], $2::bytea[])
		on conflict (name) do update set started_at = excluded.started_at`, names, data); err != nil {
		return err
	}
	_, err := q.Exec(ctx, `delete from page_file where started_at < now() - interval '1 year'`)
	return err
}

// PageFile returns a file of the pages of any version, or nil.
func PageFile(ctx context.Context, q Querier, name string) (data []byte, err error) {
	err = q.QueryRow(ctx, `select data from page_file where name = $1`, name).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return data, err
}
