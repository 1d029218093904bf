package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
)

// The rows of money, doors and passes are linked into the audit log in batches: an entry audit.link contains, for each
// source with new final rows, a span of time, the number of its rows and a digest of them:
//
//	digest = SHA-256(SHA-256(row) ‖ SHA-256(row) ‖ …), rows by time and key, a row as PostgreSQL's text of a JSON array
//
// Linking at the insert would serialize all presses and payments. A row that is changed, added to or removed from a linked
// span no longer matches its entry, which cannot be changed because it is in the chain (auditchain.go).

// linkLock is the advisory lock of the replica that links.
const linkLock = 0x79656f6c_000a

// linkAction is the action of the entries.
const linkAction = "audit.link"

// linkSource is a table whose rows are linked.
type linkSource struct {
	name string
	rows string        // t (a time of the database's clock), k (a key), and v, the columns that are final
	age  time.Duration // from which a row is final
	ttl  time.Duration // after which rows are deleted; 0: never
}

const day = 24 * time.Hour

var linkSources = slices.Concat(
	linkedByTime("ledger", "ledger", "at", `id::text`, `id, at, reservation_id, order_id, kind, amount, code, detail`, 0),
	linkedByTime("money", "money_entry", "booked_at", `id::text`, `id, source, reservation_id, branch_id, order_id, kind, won, at, booked_at`, 0),
	// Later reports of an ended request change its outcomes only. See package jobs for the time for which rows are kept.
	linkedByTime("door", "door_request", "created_at", `id::text`, `id, branch_id, reservation_id, encode(key_hash, 'hex'), requested_by, kind, device, devices,
		state, created_at, nonce, granted_at, finished_at, detail`, 365*day),
	linkedByTime("entry", "pass_entry", "stored_at", `concat_ws(' ', username, journal, entry)`, `username, journal, entry, branch_id, pass_id, reservation_id, device, at,
		outcome, reason, source, previous, hash, stored_at`, 365*day),
	// The end of a pass whose window is over anyway changes nothing. The PIN is sealed again when the encryption key changes.
	[]linkSource{{"pass", `select least(ended_at, not_after) as t, id::text as k, jsonb_build_array(id, reservation_id, branch_id, room_id, not_before, not_after, created_at,
		case when ended_at < not_after then ended_at end) as v from pass`, day, 30 * day}},
)

// linkedByTime returns the sources of a table whose rows are final when they are written: those by their time, and those that were
// written while the clock was behind the times that had been linked (migration 00235).
func linkedByTime(name, table, at, key, columns string, ttl time.Duration) []linkSource {
	rows := func(t, where string) string {
		return `select ` + t + ` as t, ` + key + ` as k, jsonb_build_array(` + columns + `) as v from ` + table + ` where ` + where
	}
	return []linkSource{
		{name, rows(at, "late_at is null"), 0, ttl},
		{name + "-late", rows("late_at", "late_at is not null"), 0, ttl},
	}
}

// auditBatch is a linked span of a source: from <= t < until.
type auditBatch struct {
	Source string    `json:"source"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Rows   int       `json:"rows"`
	Digest string    `json:"digest"`
}

// digests is the query of the rows and the digest of each span between neighbouring bounds $1 of a source.
func (s linkSource) digests() string {
	return `select width_bucket(t, $1::timestamptz[]), count(*), sha256(string_agg(sha256(convert_to(v::text, 'UTF8')), ''::bytea order by t, k))
		from (` + s.rows + `) rows where t >= ($1::timestamptz[])[1] and t < ($1::timestamptz[])[cardinality($1::timestamptz[])] group by 1`
}

// LinkRows links the rows that are final and returns their number. While another replica links, it does nothing.
func (db *DB) LinkRows(ctx context.Context) (linked int, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		linked = 0
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(linkLock)).Scan(&mine); err != nil || !mine {
			return err
		}
		if _, err := tx.Exec(ctx, `set local statement_timeout = '5min'`); err != nil { // the first time reads all rows
			return err
		}
		cutoff, err := linkCutoff(ctx, tx)
		if err != nil {
			return err
		}
		var batches []auditBatch
		for _, source := range linkSources {
			found, err := source.link(ctx, tx, cutoff.Add(-source.age))
			if err != nil {
				return fmt.Errorf("link rows of %s: %w", source.name, err)
			}
			batches = append(batches, found...)
			for _, b := range found {
				linked += b.Rows
			}
		}
		if len(batches) == 0 {
			return nil
		}
		return AppendAudit(ctx, tx, audit.Entry{Actor: "system", Action: linkAction, Detail: map[string]any{"batches": batches}})
	})
	return linked, err
}

// linkCutoff returns the time before which no transaction in progress can have written a row, and no press is undecided.
// A transaction writes only times after its own beginning, which it publishes within the second.
func linkCutoff(ctx context.Context, tx pgx.Tx) (cutoff time.Time, err error) {
	err = tx.QueryRow(ctx, `
		select least(clock_timestamp() - interval '1 second',
			(select min(xact_start) from pg_stat_activity
			 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()),
			(select min(created_at) from door_request where state in ('PENDING', 'GRANTED')))`).Scan(&cutoff)
	return cutoff, err
}

// link computes the batches of a source up to a time and stores where the next one begins. A quiet time of more than a day is a batch of
// its own: verified rows are as old as their batch, which would otherwise begin with the last row before that time.
func (s linkSource) link(ctx context.Context, tx pgx.Tx, until time.Time) ([]auditBatch, error) {
	var from, first *time.Time
	err := tx.QueryRow(ctx, `select coalesce((select until from audit_link where source = $1), (select min(t) from (`+s.rows+`) rows))`, s.name).Scan(&from)
	if err != nil || from == nil || !from.Before(until) {
		return nil, err
	}
	err = tx.QueryRow(ctx, `select min(t) from (`+s.rows+`) rows where t >= $1 and t < $2`, *from, until).Scan(&first)
	if err != nil || first == nil {
		return nil, err
	}
	bounds := []time.Time{*from}
	if first.Sub(*from) > day {
		bounds = append(bounds, *first)
	}
	found, err := s.spans(ctx, tx, append(bounds, until))
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `insert into audit_link (source, until) values ($1, $2) on conflict (source) do update set until = excluded.until`, s.name, until)
	return found, err
}

// spans returns the batches between neighbouring bounds.
func (s linkSource) spans(ctx context.Context, q Querier, bounds []time.Time) ([]auditBatch, error) {
	batches := make([]auditBatch, len(bounds)-1)
	for i := range batches {
		batches[i] = auditBatch{Source: s.name, From: bounds[i].UTC(), Until: bounds[i+1].UTC()}
	}
	rows, err := q.Query(ctx, s.digests(), bounds)
	if err != nil {
		return nil, err
	}
	var (
		place, count int
		digest       []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&place, &count, &digest}, func() error {
		batches[place-1].Rows, batches[place-1].Digest = count, hex.EncodeToString(digest)
		return nil
	})
	return batches, err
}

// placedBatch is a batch with its entry in the audit log.
type placedBatch struct {
	auditBatch
	place, id int64
}

// verifyChunk is the number of batches that are verified in one statement.
const verifyChunk = 500

// VerifyLinks compares the linked rows with their entries and returns the number of rows. It returns *AuditBroken at the
// first mismatch. The caller has verified the chain. Rows that are old enough to be deleted are not compared.
func VerifyLinks(ctx context.Context, q Querier) (rows int, err error) {
	linked, err := linkedBatches(ctx, q)
	if err != nil {
		return 0, err
	}
	var now time.Time
	if err := q.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return 0, err
	}
	for _, source := range linkSources {
		list := linked[source.name]
		for i, b := range list {
			if i > 0 && !b.From.Equal(list[i-1].Until) {
				return rows, &AuditBroken{b.place, b.id, "the rows of " + source.name + " before it were never linked"}
			}
		}
		for source.ttl > 0 && len(list) > 0 && list[0].From.Before(now.Add(day-source.ttl)) {
			list = list[1:]
		}
		for len(list) > 0 {
			chunk := list[:min(len(list), verifyChunk)]
			list = list[len(chunk):]
			n, err := source.verify(ctx, q, chunk)
			if rows += n; err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

func linkedBatches(ctx context.Context, q Querier) (map[string][]placedBatch, error) {
	rows, err := q.Query(ctx, `select place, id, detail -> 'batches' from audit where action = $1 and place is not null order by place`, linkAction)
	if err != nil {
		return nil, err
	}
	linked := map[string][]placedBatch{}
	var (
		place, id int64
		text      json.RawMessage
	)
	_, err = pgx.ForEachRow(rows, []any{&place, &id, &text}, func() error {
		var batches []auditBatch
		if err := json.Unmarshal(text, &batches); err != nil {
			return err
		}
		for _, b := range batches {
			linked[b.Source] = append(linked[b.Source], placedBatch{b, place, id})
		}
		return nil
	})
	return linked, err
}

// verify compares successive batches.
func (s linkSource) verify(ctx context.Context, q Querier, list []placedBatch) (rows int, err error) {
	bounds := []time.Time{list[0].From}
	for _, b := range list {
		bounds = append(bounds, b.Until)
	}
	found, err := s.spans(ctx, q, bounds)
	if err != nil {
		return 0, err
	}
	for i, b := range list {
		if found[i].Rows != b.Rows || found[i].Digest != b.Digest {
			what := fmt.Sprintf("rows of %s from %s to %s were changed, added or removed (%d rows, %d were linked)", s.name,
				b.From.Format(time.RFC3339Nano), b.Until.Format(time.RFC3339Nano), found[i].Rows, b.Rows)
			return rows, &AuditBroken{b.place, b.id, what}
		}
		rows += b.Rows
	}
	return rows, nil
}
