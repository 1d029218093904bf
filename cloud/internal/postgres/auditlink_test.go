package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// aged moves the rows of `sound` out of the time in which they may still change.
const aged = `set session_replication_role = replica;
	update ledger set at = at - interval '1 minute'; update money_entry set booked_at = booked_at - interval '1 minute';
	update door_request set created_at = now() - interval '1 hour'; update pass_entry set stored_at = stored_at - interval '1 minute';
	update pass set ended_at = now() - interval '2 days';
	set session_replication_role = origin`

// linkedDB is a database whose rows of money, doors and passes are linked and chained.
func linkedDB(t *testing.T) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	exec(t, db.Pool, sound)
	exec(t, db.Pool, aged)
	link(t, db, 9)
	return db
}

func link(t *testing.T, db *postgres.DB, want int) {
	t.Helper()
	linked, err := db.LinkRows(t.Context())
	if err != nil || linked != want {
		t.Fatalf("linked %d rows (%v), want %d", linked, err, want)
	}
	if _, err := db.ChainAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLinkedRowsHold(t *testing.T) {
	t.Parallel()
	db := linkedDB(t)
	verified := func(want int) {
		t.Helper()
		if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != want {
			t.Errorf("verified %d rows (%v), want %d", rows, err, want)
		}
	}
	verified(9)
	link(t, db, 0)
	// Rows that the service may still change: the outcomes of an ended request, the sealing of a PIN.
	exec(t, db.Pool, `update door_request set outcomes = '{"room_1": {"outcome": "opened"}}'`)
	exec(t, db.Pool, `update pass set pin = 'resealed', changed_at = now()`)
	verified(9)
	exec(t, db.Pool, `insert into ledger (reservation_id, kind) select id, 'confirm.done' from reservation`)
	exec(t, db.Pool, `select pg_sleep(1.1)`) // the rows reach the age from which they are linked
	link(t, db, 2)
	verified(11)
}

// A transaction in progress may still write rows of the time since it began, so these are not linked before its end.
func TestLinkWaitsForTransactions(t *testing.T) {
	t.Parallel()
	db := linkedDB(t)
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, `insert into ledger (reservation_id, kind) select id, 'slow' from reservation`)
	exec(t, db.Pool, `insert into ledger (reservation_id, kind) select id, 'fast' from reservation`)
	exec(t, db.Pool, `select pg_sleep(1.1)`) // the rows reach the age from which they are linked
	link(t, db, 0)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	link(t, db, 4)
	if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != 13 {
		t.Errorf("verified %d rows: %v", rows, err)
	}
}

// Rows are not compared when they may have been deleted. The age that counts is theirs, not that of a quiet time before them: in the first
// entries after a year without any, and in the passes after a month, a change would remain unnoticed.
func TestRowsAfterAQuietTimeAreVerified(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, sound)
	exec(t, db.Pool, aged)
	from, until := time.Now().UTC().AddDate(0, 0, -800).Truncate(time.Second), time.Now().UTC().AddDate(0, 0, -400).Truncate(time.Second)
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		exec(t, tx, `insert into audit_link (source, until) values ('entry', $1)`, until)
		return postgres.AppendAudit(t.Context(), tx, audit.Entry{Actor: "system", Action: "audit.link", Detail: map[string]any{"batches": []map[string]any{
			{"source": "entry", "from": from, "until": until, "rows": 0, "digest": ""}}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	link(t, db, 9)
	if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != 9 {
		t.Errorf("verified %d rows (%v), want 9", rows, err)
	}
	exec(t, db.Pool, `set session_replication_role = replica; update pass_entry set device = 'front_1'; set session_replication_role = origin`)
	if _, err := postgres.VerifyLinks(t.Context(), db.Pool); err == nil {
		t.Error("a changed entry after a quiet time is not found")
	}
}

// The database's clock is set back, or a database with a clock that is behind takes over. The times of new rows were linked already, and
// these rows are linked, too.
func TestRowsOfAClockThatIsBehindAreLinked(t *testing.T) {
	t.Parallel()
	db := linkedDB(t)
	// The clock was three seconds ahead when all rows up to its time were linked.
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `update audit_link l set until = clock_timestamp() + interval '3 seconds' from audit_link old where l.source = old.source and l.source <> 'pass'
			returning l.source, old.until, l.until, 0, ''`)
		if err != nil {
			return err
		}
		batches, err := pgx.CollectRows(rows, pgx.RowToStructByPos[batch])
		if err != nil {
			return err
		}
		return postgres.AppendAudit(t.Context(), tx, audit.Entry{Actor: "system", Action: "audit.link", Detail: map[string]any{"batches": batches}})
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		exec(t, db.Pool, `
			insert into ledger (reservation_id, kind) select id, 'confirm.done' from reservation limit 1;
			insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
				select 'late:' || gen_random_uuid(), id, branch_id, order_id, 'refunded', -1, now() from reservation where order_id = 'paid';
			insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
				select gen_random_uuid(), id, 'admin:hq', 'front', 'front', front_doors, 'FAILED', clock_timestamp(), clock_timestamp() from branch limit 1;
			insert into pass_entry (username, journal, entry, branch_id, pass_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
				select username, gen_random_uuid()::text, entry, branch_id, pass_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at from pass_entry limit 1`)
	}
	verified := func(when string, want int) {
		t.Helper()
		if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != want {
			t.Errorf("%s: verified %d rows (%v), want %d", when, rows, err, want)
		}
	}
	write()
	link(t, db, 0)
	verified("behind", 9)
	exec(t, db.Pool, `select pg_sleep(4.2)`) // the clock passes what was linked, and the rows reach the age from which they are linked
	write()
	link(t, db, 4)
	verified("after it", 13)
	exec(t, db.Pool, `select pg_sleep(1.1)`)
	link(t, db, 4)
	verified("later", 17)
	exec(t, db.Pool, `set session_replication_role = replica; update ledger set amount = 1 where late_at is not null; set session_replication_role = origin`)
	if _, err := postgres.VerifyLinks(t.Context(), db.Pool); err == nil {
		t.Error("a change of a row that was written behind the clock is not found")
	}
}

// batch is a batch of an entry of the audit log.
type batch struct {
	Source string    `json:"source"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Rows   int       `json:"rows"`
	Digest string    `json:"digest"`
}

// extended extends the paid stay of `sound` by an hour and moves it to three days ago.
const extended = `set session_replication_role = replica;
	update reservation set start_at = start_at - interval '3 days', end_at = end_at - interval '3 days', stay_end = end_at - interval '3 days' + interval '1 hour',
		occupied = tstzrange(start_at - interval '3 days', end_at - interval '3 days' + interval '10 minutes') where order_id = 'paid';
	insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends, order_id, amount, method, paid_at)
	select branch_id, room_id, 'DONE', 'CUSTOMER', end_at, stay_end, tstzrange(end_at + interval '10 minutes', stay_end + interval '10 minutes'), id, 'extension', 20000, '카드', end_at
	from reservation where order_id = 'paid';
	insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
	select 'paid:' || order_id, id, branch_id, order_id, 'paid', amount, paid_at from reservation where order_id = 'extension';
	update door_request set created_at = created_at - interval '3 days', granted_at = granted_at - interval '3 days', finished_at = finished_at - interval '3 days';
	update pass_entry set at = at - interval '3 days';
	update pass set not_before = not_before - interval '3 days', not_after = not_after - interval '3 days' + interval '1 hour';
	set session_replication_role = origin`

// Days after a stay, its extension may be refunded, or the whole stay, or its end corrected. The pass opened the doors until its linked end
// all the same.
func TestShorteningAStayThatIsOverLeavesItsPassAsItWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"refund of the extension": `update reservation set state = 'CANCELED', canceled_at = now() where order_id = 'extension'`,
		"refund of both, the extension first": `update reservation set state = 'CANCELED', canceled_at = now() where order_id = 'extension';
			update reservation set state = 'CANCELED', canceled_at = now() where order_id = 'paid'`,
		"refund of both, the stay first": `update reservation set state = 'CANCELED', canceled_at = now() where order_id = 'paid';
			update reservation set state = 'CANCELED', canceled_at = now() where order_id = 'extension'`,
		"correction of the end": `insert into reservation_move (reservation_id, from_room, from_start, from_end, to_room, to_start, to_end, moved_by)
				select r.id, no, start_at, end_at, no, start_at, end_at - interval '10 minutes', 'hq' from reservation r join room m on m.id = r.room_id where order_id = 'paid';
			update reservation set stay_end = null, end_at = end_at - interval '10 minutes', occupied = tstzrange(start_at, end_at) where order_id = 'paid'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			exec(t, db.Pool, sound)
			exec(t, db.Pool, extended)
			exec(t, db.Pool, `select pg_sleep(1.1)`) // the rows reach the age from which they are linked
			link(t, db, 10)
			exec(t, db.Pool, change)
			if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != 10 {
				t.Errorf("verified %d rows (%v), want 10", rows, err)
			}
			results, err := postgres.Prove(t.Context(), db.Pool, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.ID[0] != 'M' && r.Violations > 0 { // the refund of the money is not part of this test
					t.Errorf("%s: %+v", r.ID, r.Findings)
				}
			}
		})
	}
}

// An entry of a journal has the time of the agent, whose clock may never have been set, and may arrive late. It is kept for as long as its
// link is verified.
func TestLinkedEntriesAreKeptWhateverTheirAgentsClock(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"clock that was never set": `timestamptz '2000-01-01 00:00Z'`,
		"delivered a week late":    `stored_at - interval '7 days'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			exec(t, db.Pool, sound)
			exec(t, db.Pool, aged)
			exec(t, db.Pool, `update pass_entry set stored_at = now() - interval '360 days'`)
			exec(t, db.Pool, `update pass_entry set at = `+at)
			link(t, db, 9)
			prune := func(later time.Duration) {
				t.Helper()
				now := time.Now().Add(later)
				if err := postgres.PrunePasses(t.Context(), db.Pool, now.AddDate(0, 0, -30), now.AddDate(0, 0, -365), now); err != nil {
					t.Fatal(err)
				}
			}
			prune(0)
			if rows, err := postgres.VerifyLinks(t.Context(), db.Pool); err != nil || rows != 9 {
				t.Errorf("verified %d rows (%v), want 9", rows, err)
			}
			prune(6 * 24 * time.Hour)
			if n := one[int](t, db, `select count(*) from pass_entry`); n != 0 {
				t.Errorf("%d entries are left 366 days after they were stored", n)
			}
		})
	}
}

// A superuser who changes, adds or removes a row of money, a door or a pass is found out.
func TestLinkedRowsTellWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, deed := range map[string]struct{ source, sql string }{
		"amount in the ledger": {"ledger", `update ledger set amount = amount - 1 where order_id = 'paid'`},
		"removed from ledger":  {"ledger", `delete from ledger where order_id = 'gone'`},
		"added to the ledger":  {"ledger", `insert into ledger (reservation_id, kind, at) select reservation_id, kind, at from ledger where order_id = 'paid'`},
		"amount in the books":  {"money", `update money_entry set won = won + 1 where kind = 'refunded' and order_id = 'gone'`},
		"result of a press":    {"door", `update door_request set state = 'FAILED'`},
		"removed press":        {"door", `delete from door_event; delete from door_request`},
		"time of a grant":      {"door", `update door_request set granted_at = granted_at + interval '1 microsecond'`},
		"entry with a pass":    {"entry", `update pass_entry set device = 'front_1'`},
		"window of a pass":     {"pass", `update pass set not_after = not_after + interval '1 minute'`},
		"the end of a pass":    {"pass", `update pass set ended_at = null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := linkedDB(t)
			exec(t, db.Pool, `set session_replication_role = replica; `+deed.sql+`; set session_replication_role = origin`)
			_, err := postgres.VerifyLinks(t.Context(), db.Pool)
			var broken *postgres.AuditBroken
			if !errors.As(err, &broken) || !strings.Contains(broken.What, "rows of "+deed.source) || broken.Place == 0 {
				t.Errorf("got %v", err)
			}
			if _, _, err := postgres.VerifyAudit(t.Context(), db.Pool, postgres.AuditHead{}); err != nil {
				t.Errorf("the chain itself: %v", err)
			}
		})
	}
	// A forged link that leaves rows out does not continue the one before it.
	db := linkedDB(t)
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return postgres.AppendAudit(t.Context(), tx, audit.Entry{Actor: "system", Action: "audit.link", Detail: map[string]any{"batches": []map[string]any{
			{"source": "ledger", "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z", "rows": 1, "digest": "00"}}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ChainAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.VerifyLinks(t.Context(), db.Pool); err == nil || !strings.Contains(err.Error(), "never linked") {
		t.Errorf("a gap: got %v", err)
	}
}
