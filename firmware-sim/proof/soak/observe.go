package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// observer reads the database directly, not through a replica's link.
type observer struct {
	pool *pgxpool.Pool
	log  string
	mark int64 // the ledger's last row at the time of the first fingerprint
}

// witness makes the database record each version of a reservation and each switch of a room in the transaction of the
// change, because rows are updated in place. A version is written at the commit, when its keys are written, too; its key is
// the hash of the owner's key while that key opens doors. The database keeps the commit time of each row
// (track_commit_timestamp). The functions run as the owner of the database: the service has no rights in this schema.
const witness = `
create schema proof;
create table proof.version (
	seq bigint generated always as identity primary key, deleted boolean not null, id bigint not null,
	branch_id int, room_id int, start_at timestamptz, end_at timestamptz, state text, source text, expires_at timestamptz,
	order_id text, amount int, method text, key_hash text
);
create table proof.switched (seq bigint generated always as identity primary key, room_id int not null, enabled boolean not null);
create function proof.write_version() returns trigger language plpgsql security definer as $$
declare
	deleted constant boolean := tg_op = 'DELETE';
	r public.reservation;
begin
	if deleted then
		r := old;
	elsif tg_table_name = 'reservation' then
		select * into r from public.reservation where id = new.id;
	else
		select * into r from public.reservation where id = new.reservation_id;
	end if;
	insert into proof.version (deleted, id, branch_id, room_id, start_at, end_at, state, source, expires_at, order_id, amount, method, key_hash)
	select deleted, r.id, r.branch_id, r.room_id, r.start_at, r.end_at, r.state, r.source, r.expires_at, r.order_id, r.amount, r.method,
	       (select encode(k.hash, 'hex') from public.access_key k
	        where k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null and r.state = 'DONE' and not r.keys_blocked)
	where r.id is not null;
	return null;
end $$;
create constraint trigger proof_version after insert or update or delete on reservation deferrable initially deferred
	for each row execute function proof.write_version();
create constraint trigger proof_version after insert or update on access_key deferrable initially deferred
	for each row execute function proof.write_version();
create function proof.write_switch() returns trigger language plpgsql security definer as $$
begin
	insert into proof.switched (room_id, enabled) values (new.id, new.enabled);
	return null;
end $$;
create trigger proof_switched after update of enabled on room for each row when (old.enabled is distinct from new.enabled) execute function proof.write_switch();
`

func observe(ctx context.Context, w *world.World) (*observer, error) {
	config, err := pgxpool.ParseConfig(w.Database)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.ConnConfig.RuntimeParams["application_name"] = 4, "proof"
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // the schema changes during the connection
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		return nil, err
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(ctx, witness).ReadAll(); err != nil {
		pool.Close()
		return nil, fmt.Errorf("witness: %w", err)
	}
	return &observer{pool: pool, log: w.LogFile}, nil
}

func (o *observer) close() { o.pool.Close() }

// idleQuery returns the longest idle transaction.
const idleQuery = `
	select coalesce(extract(epoch from now() - state_change), 0), query from pg_stat_activity
	where state like 'idle in transaction%' and application_name <> 'proof' and pid <> pg_backend_pid()
	order by state_change limit 1`

// watch observes transactions, and takes the ledger's fingerprint half way.
func (o *observer) watch(ctx context.Context, s *Soak) {
	half := time.After(s.options.For / 2)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-half:
			o.fingerprint(ctx, s)
		case <-tick.C:
			if i, err := o.idle(ctx); err == nil && i.Took > 100*time.Millisecond {
				s.note(func(rec *record.Record) { rec.Idle = append(rec.Idle, i) })
			}
		}
	}
}

func (o *observer) idle(ctx context.Context) (record.Idle, error) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var seconds float64
	i := record.Idle{At: time.Now()}
	err := o.pool.QueryRow(limited, idleQuery).Scan(&seconds, &i.Query)
	if errors.Is(err, pgx.ErrNoRows) {
		return i, nil
	}
	i.Took = time.Duration(seconds * float64(time.Second))
	return i, err
}

const ledgerPrint = `select count(*), coalesce(md5(string_agg(l::text, '' order by id)), ''), coalesce(max(id), 0) from ledger l where id <= $1`

// fingerprint reads the ledger, without the newest rows, before which uncommitted rows may still appear.
func (o *observer) fingerprint(ctx context.Context, s *Soak) {
	for ctx.Err() == nil {
		var mark record.Mark
		err := o.pool.QueryRow(ctx, `select coalesce(max(id), 0) from ledger where at < now() - interval '20 seconds'`).Scan(&o.mark)
		if err == nil {
			var last int64
			err = o.pool.QueryRow(ctx, ledgerPrint, o.mark).Scan(&mark.Rows, &mark.Before, &last)
		}
		if err == nil {
			s.note(func(rec *record.Record) { rec.LedgerMark = mark })
			return
		}
		pause(ctx, time.Second)
	}
}

// said counts occurrences of a text in the programs' logs.
func (o *observer) said(what string) (int, error) {
	text, err := os.ReadFile(o.log)
	return strings.Count(string(text), what), err
}
