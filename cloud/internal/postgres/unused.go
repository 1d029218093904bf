package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// migrated are the tables that have rows once the migrations have run, or once the service has started.
var migrated = []string{"goose_db_version", "river_migration", "mqtt_kind", "key_text", "event_head", "installation"}

// TablesInUse returns the names of the tables that have rows which no migration made.
func TablesInUse(ctx context.Context, tx pgx.Tx) (used []string, err error) {
	rows, err := tx.Query(ctx, `select relname from pg_class
		where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> all($1) order by 1`, migrated)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tables, func(table string) bool {
		var has bool
		if err == nil {
			err = tx.QueryRow(ctx, `select exists (select from `+pgx.Identifier{table}.Sanitize()+`)`).Scan(&has)
		}
		return !has
	}), err
}

// DropTables removes the tables, functions and types of the schema, except those of extensions.
func DropTables(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `do $$
	declare
		command text;
	begin
		-- All commands first: a name cannot be looked up once the thing is dropped.
		foreach command in array array(
			select format('drop table if exists %s cascade', oid::regclass) from pg_class
			where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
			union all select format('drop view if exists %s cascade', oid::regclass) from pg_class
			where relnamespace = current_schema()::regnamespace and relkind = 'v'
			union all select format('drop sequence if exists %s cascade', oid::regclass) from pg_class
			where relnamespace = current_schema()::regnamespace and relkind = 'S'
			union all select format('drop routine if exists %s cascade', oid::regprocedure) from pg_proc p
			where pronamespace = current_schema()::regnamespace and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
			union all select format('drop type if exists %s cascade', oid::regtype) from pg_type t
			where typnamespace = current_schema()::regnamespace and typtype in ('e', 'd') and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e'))
		loop
			execute command;
		end loop;
	end $$`)
	return err
}
