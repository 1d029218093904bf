package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The owner of the tables migrates them. The role of the service reads and writes rows, and cannot change a table, disable a
// trigger, or change or remove a row of an append-only table, so that a program with its rights cannot rewrite the audit log.

// grantLock is the advisory lock of the process that grants rights.
const grantLock = 0x79656f6c_000c

// granted are the rights of the service on tables where they differ from those on all others.
var granted = map[string]string{
	"audit":            "select, insert, update (place, prev_hash, hash)", // the columns of the chain, which are written once
	"ledger":           "select, insert",
	"money_entry":      "select, insert",
	"goose_db_version": "select",
	"river_migration":  "select",
}

const (
	grantedOnTables    = "select, insert, update, delete"
	grantedOnSequences = "usage, select"
)

// OpenMigrated migrates the database and opens it for the service, whose connections for doors stay open: while they were closed,
// other clients could use up max_connections. owner is the connection string of the role that owns the tables; empty: the service
// owns them.
func OpenMigrated(ctx context.Context, owner, service string, logger *slog.Logger) (*DB, error) {
	if owner != "" {
		if err := MigrateFor(ctx, owner, service, logger); err != nil {
			return nil, err
		}
		return open(ctx, service, doorConns, logger)
	}
	db, err := open(ctx, service, doorConns, logger)
	if err != nil {
		return nil, err
	}
	if err := Migrate(ctx, db.Pool, logger); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// MigrateFor migrates the database as the owner of its tables and grants the role of the service its rights.
func MigrateFor(ctx context.Context, owner, service string, logger *slog.Logger) error {
	of, err := pgx.ParseConfig(service)
	if err != nil {
		return fmt.Errorf("database URL: %w", err)
	}
	config, err := pgxpool.ParseConfig(owner)
	if err != nil {
		return fmt.Errorf("database URL of the owner: %w", err)
	}
	config.MaxConns = 2
	leaveLostServers(config)
	pool, err := openPool(ctx, config)
	if err != nil {
		return fmt.Errorf("as the owner of the tables: %w", err)
	}
	defer pool.Close()
	if err := Migrate(ctx, pool, logger); err != nil {
		return err
	}
	db := &DB{Pool: pool, Logger: logger, Now: time.Now}
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return grantService(ctx, tx, of.User) })
}

// grantService creates the role of the service if it is missing, and grants what is missing on the tables of this role.
func grantService(ctx context.Context, tx pgx.Tx, role string) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(grantLock)); err != nil {
		return err
	}
	var exists, owner, superuser, creates bool
	err := tx.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1), current_user = $1, (select rolsuper from pg_roles where rolname = current_user)`,
		role).Scan(&exists, &owner, &superuser)
	if err != nil {
		return err
	}
	if owner {
		return errors.New("YEOLDA_DATABASE_URL and YEOLDA_DATABASE_OWNER_URL have the same user: the service needs a role of its own, or no owner")
	}
	name := pgx.Identifier{role}.Sanitize()
	if !exists {
		if _, err := tx.Exec(ctx, `create role `+name+` login`); err != nil {
			return fmt.Errorf("create the role of the service, %s: %w", role, err)
		}
	}
	var statements []string
	if superuser {
		statements = append(statements, `grant pg_read_all_stats to `+name) // transactions of other roles that are in progress
	}
	if err := tx.QueryRow(ctx, `select has_schema_privilege($1, 'public', 'create')`, role).Scan(&creates); err != nil {
		return err
	}
	if creates {
		statements = append(statements, `revoke create on schema public from public, `+name)
	}
	rows, err := tx.Query(ctx, `
		select c.relname, c.relkind = 'S' from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and pg_has_role(c.relowner, 'member') and $1 <> '' order by 1`, role)
	if err != nil {
		return err
	}
	var table string
	var sequence bool
	_, err = pgx.ForEachRow(rows, []any{&table, &sequence}, func() error {
		kind, rights := "table", grantedOnTables
		if sequence {
			kind, rights = "sequence", grantedOnSequences
		}
		if special, ok := granted[table]; ok {
			rights = special
			statements = append(statements, `revoke all on table `+pgx.Identifier{table}.Sanitize()+` from `+name)
		}
		statements = append(statements, `grant `+rights+` on `+kind+` `+pgx.Identifier{table}.Sanitize()+` to `+name)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, strings.Join(statements, ";"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}

// ExcessRights returns what a role may do although the service does not need it, as phrases; empty: nothing. An empty role is
// the current user.
func ExcessRights(ctx context.Context, q Querier, role string) ([]string, error) {
	var excess []string
	err := q.QueryRow(ctx, `
		with role as (select * from pg_roles where rolname = coalesce(nullif($1, ''), current_user)),
		guarded as (select c.oid, c.relname, c.relowner from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname = any($2))
		select array_remove(array[
			(select 'is a superuser' from role where rolsuper),
			(select 'creates objects in the schema' from role where has_schema_privilege(role.oid, 'public', 'create')),
			(select 'owns ' || string_agg(relname, ', ' order by relname) from guarded, role where pg_has_role(role.oid, relowner, 'member')),
			(select 'changes rows of ' || string_agg(relname, ', ' order by relname) from guarded, role
			 where has_table_privilege(role.oid, guarded.oid, 'update, delete, truncate'))], null)`, role, appendOnly()).Scan(&excess)
	if err != nil {
		return nil, fmt.Errorf("rights of the service: %w", err)
	}
	return excess, nil
}

// appendOnly returns the tables whose rows the service may not change.
func appendOnly() (tables []string) {
	for table, rights := range granted {
		if strings.HasPrefix(rights, "select, insert") {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}
