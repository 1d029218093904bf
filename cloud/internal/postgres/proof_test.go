package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// sound is a paid stay with its door request, its pass and an entry with it, a part refund, and a canceled stay with its
// refund: nothing violates a rule. Times are relative to now; $1 is the hash of the key.
const sound = `
	insert into branch (code) values ('gangnam');
	insert into room (branch_id, no) select id, n from branch, generate_series(1, 3) n;
	insert into agent_credential (username, branch_id, secret_hash, active) select 'agent-1', id, '', true from branch;
	insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, amount, method, paid_at, canceled_at)
	select r.branch_id, r.id, s.state, 'CUSTOMER', s.start_at, s.start_at + interval '1 hour', tstzrange(s.start_at, s.start_at + interval '70 minutes'),
	       s.order_id, 20000, '카드', now() - interval '1 day', case s.state when 'CANCELED' then now() - interval '1 hour' end
	from room r, (values ('DONE', 'paid', date_trunc('hour', now())), ('CANCELED', 'gone', date_trunc('hour', now()) + interval '1 day')) s (state, order_id, start_at)
	where r.no = 1;
	insert into orders (order_id, purchase_id, reservation_id, amount) select order_id, id, id, amount from reservation;
	insert into payment (reservation_id, key_set, payment_key, confirm_key, provider_status, total_amount, balance_amount, approved_at, returned)
	select id, 'widget', order_id, order_id, 'DONE', amount, amount, paid_at, case state when 'DONE' then 5000 else 0 end from reservation;
	insert into ledger (reservation_id, order_id, kind, amount) select id, order_id, 'confirm.sent', amount from reservation;
	insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
	select 'paid:' || order_id, id, branch_id, order_id, 'paid', amount, paid_at from reservation
	union all select 'refunded:' || order_id, id, branch_id, order_id, 'refunded', case state when 'DONE' then -5000 else -amount end, now() from reservation;
	insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key, keeps_stay, created_at)
	select id, 'COMPLETED', '', case state when 'DONE' then 5000 else amount end, 'customer', order_id, state = 'DONE', now() - interval '1 hour' from reservation;
	insert into access_key (reservation_id, hash, kind, created_by) select id, order_id::bytea, 'owner', 'system' from reservation;
	insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices, state, created_at, nonce, granted_at, finished_at)
	select '00000000-0000-0000-0000-000000000001', branch_id, id, 'paid', 'customer', 'room', 'room_1', '{room_1}', 'SUCCESS', t, 'n', t + interval '300 ms', t + interval '400 ms'
	from (select *, start_at + interval '1 minute' as t from reservation where state = 'DONE') r;
	insert into door_event (branch_id, device, kind, at, request_id, detail)
	select branch_id, 'room_1', k, now(), id, d::jsonb from door_request, (values ('energized', '{}'), ('released', '{"energizedMs": 3000}'), ('released', '{"energizedMs": 3000}')) e (k, d);
	insert into pass (id, reservation_id, branch_id, room_id, pin, not_before, not_after)
	select '00000000-0000-0000-0000-000000000002', id, branch_id, room_id, '', start_at - interval '2 minutes', end_at - interval '2 minutes' from reservation where state = 'DONE';
	insert into pass_journal (username, journal, entry, hash) values ('agent-1', 'j', 1, 'h');
	insert into pass_entry (username, journal, entry, branch_id, pass_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
	select 'agent-1', 'j', 1, branch_id, id, reservation_id, 'room_1', not_before + interval '5 minutes', 'opened', '', 'pin', '', 'h', now() from pass`

// planted has violations of each rule, by the subject that is found.
var planted = map[string][]struct{ name, sql, subject string }{
	"B1": {{"overlap", `
		alter table reservation drop constraint reservation_no_overlap;
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		select branch_id, room_id, 'WAITING_FOR_DEPOSIT', 'ADMIN', end_at, end_at + interval '1 hour', tstzrange(end_at, end_at + interval '70 minutes')
		from reservation where state = 'DONE'`, "reservation:1003"}, {"turnover", `
		alter table reservation drop constraint reservation_no_overlap;
		update reservation set turnover_minutes = 60, occupied = tstzrange(start_at, end_at + interval '1 hour') where state = 'DONE';
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		select branch_id, room_id, 'WAITING_FOR_DEPOSIT', 'ADMIN', end_at + interval '20 minutes', end_at + interval '50 minutes',
		       tstzrange(end_at + interval '20 minutes', end_at + interval '1 hour')
		from reservation where state = 'DONE'`, "reservation:1003"}},
	"M2": {
		{"confirmed without money", `delete from money_entry where kind = 'paid' and order_id = 'paid'`, "reservation:1001"},
		{"part of the money is missing", `update money_entry set won = -9000 where kind = 'refunded' and order_id = 'paid'`, "reservation:1001"},
		{"canceled with the money", `delete from money_entry where kind = 'refunded' and order_id = 'gone'`, "reservation:1002"},
	},
	"M4": {
		{"another order", `update orders set amount = 19000 where order_id = 'paid'`, "reservation:1001"},
		{"another amount was sent", `update ledger set amount = 200 where order_id = 'gone'`, "reservation:1002"},
		{"the provider states another", `update payment set total_amount = 20001 where payment_key = 'paid'`, "reservation:1001"},
	},
	"M6": {
		{"more than was paid", `update money_entry set won = -20001 where kind = 'refunded' and order_id = 'gone'`, "reservation:1002"},
		{"a completed refund has not left", `update refund set amount = 6000 where keeps_stay`, "reservation:1001"},
	},
	"M7": {
		{"no key", `update access_key set revoked_at = now(), revoked_as = 'rotated' where hash = 'paid'`, "reservation:1001"},
		{"a refund in progress", `update refund set state = 'REQUESTED', keeps_stay = false where keeps_stay`, "reservation:1001"},
	},
	"D1": {
		{"two pulses", `insert into door_event (branch_id, device, kind, at, request_id, detail)
			select branch_id, 'room_1', 'released', now(), id, '{"energizedMs": 2999}' from door_request`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"another door", `update door_event set device = 'room_2'`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"no grant", `update door_request set granted_at = null`, "door-request:00000000-0000-0000-0000-000000000001"},
	},
	"D2": {{"late", `update door_request set granted_at = created_at + interval '5 seconds'`, "door-request:00000000-0000-0000-0000-000000000001"}},
	"D3": {
		{"over", `update door_request set created_at = created_at + interval '58 minutes', granted_at = granted_at + interval '58 minutes'`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"early", `update door_request set created_at = created_at - interval '4 minutes', granted_at = granted_at - interval '4 minutes'`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"another room", `update door_request set device = 'room_2', devices = '{room_2}'; update door_event set device = 'room_2'`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"revoked key", `update access_key set revoked_at = (select granted_at - interval '10 seconds' from door_request), revoked_as = 'rotated' where hash = 'paid';
			insert into access_key (reservation_id, hash, kind, created_by) select id, 'new', 'owner', 'system' from reservation where state = 'DONE'`, "door-request:00000000-0000-0000-0000-000000000001"},
		{"canceled", `update door_request set reservation_id = (select id from reservation where state = 'CANCELED')`, "door-request:00000000-0000-0000-0000-000000000001"},
	},
	"P1": {
		{"not confirmed", `update pass set reservation_id = (select id from reservation where state = 'CANCELED')`, "pass:00000000-0000-0000-0000-000000000002"},
		{"another room", `update pass set room_id = room_id + 1`, "pass:00000000-0000-0000-0000-000000000002"},
		{"longer", `update pass set not_after = not_after + interval '1 minute'`, "pass:00000000-0000-0000-0000-000000000002"},
	},
	"P2": {
		{"late", `update pass_entry set at = at + interval '1 hour'`, "pass:00000000-0000-0000-0000-000000000002"},
		{"early", `update pass_entry set at = at - interval '6 minutes'`, "pass:00000000-0000-0000-0000-000000000002"},
	},
	"P3": {{"broken", `update pass_journal set broken = 1`, "agent:agent-1"}},
}

// Each planted violation is found by its rule, with the row and the call that repairs it; nothing is found in sound rows.
func TestProofFindsEachPlantedViolation(t *testing.T) {
	t.Parallel()
	prove := func(t *testing.T, plant string, since time.Time) (results []postgres.ProofResult) {
		db := pgtest.New(t)
		exec(t, db.Pool, sound)
		if plant != "" {
			exec(t, db.Pool, `set session_replication_role = replica; `+plant+`; set session_replication_role = origin`)
		}
		results, err := postgres.Prove(t.Context(), db.Pool, since)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	violations := func(results []postgres.ProofResult) (list []string) {
		for _, r := range results {
			for _, f := range r.Findings {
				list = append(list, r.ID+" "+f.Subject+": "+f.Detail)
			}
		}
		return list
	}
	whole := prove(t, "", time.Time{})
	if found := violations(whole); len(found) > 0 {
		t.Errorf("sound rows: %q", found)
	}
	for _, r := range whole {
		if r.Checked == 0 {
			t.Errorf("%s examined no row", r.ID)
		}
		if len(planted[r.ID]) == 0 {
			t.Errorf("%s has no planted violation", r.ID)
		}
	}
	for id, plants := range planted {
		for _, plant := range plants {
			t.Run(fmt.Sprint(id, " ", plant.name), func(t *testing.T) {
				t.Parallel()
				results := prove(t, plant.sql, time.Time{})
				i := slices.IndexFunc(results, func(r postgres.ProofResult) bool { return r.ID == id })
				if i < 0 || results[i].Violations != 1 || results[i].Findings[0].Subject != plant.subject || results[i].Findings[0].Branch != "gangnam" || results[i].Findings[0].Target == "" {
					t.Errorf("got %+v", results)
				}
			})
		}
	}
	later := prove(t, strings.Join([]string{planted["M2"][0].sql, planted["D2"][0].sql}, ";"), time.Now().Add(2*time.Hour))
	if found := violations(later); len(found) > 0 {
		t.Errorf("since later than every row: %q", found)
	}
}

// reversedExtension adds to the paid stay an extension of an hour, in which its guest has pressed and used the PIN, and whose deposit the bank
// has taken back afterwards.
const reversedExtension = `
	insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, amount, method, canceled_at, extends)
	select branch_id, room_id, 'CANCELED', 'CUSTOMER', end_at, end_at + interval '1 hour', 'empty', 'longer', 20000, '가상계좌', end_at + interval '10 minutes', id
	from reservation where state = 'DONE';
	insert into orders (order_id, purchase_id, reservation_id, amount) select order_id, id, id, amount from reservation where order_id = 'longer';
	insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
	select k || ':longer', id, branch_id, order_id, k, won, start_at from reservation, (values ('paid', 20000), ('reversed', -20000)) e (k, won) where order_id = 'longer';
	insert into ledger (reservation_id, order_id, kind, amount) select id, order_id, 'deposit.done', amount from reservation where order_id = 'longer';
	update door_request set created_at = created_at + interval '1 hour', granted_at = granted_at + interval '1 hour';
	update pass_entry set at = at + interval '1 hour'`

// The doors that a guest opened during an extension are no violation after its deposit was reversed.
func TestProofOfAReversedExtension(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, sound)
	exec(t, db.Pool, `set session_replication_role = replica; `+reversedExtension+`; set session_replication_role = origin`)
	results, err := postgres.Prove(t.Context(), db.Pool, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, f := range r.Findings {
			t.Errorf("%s %s: %s", r.ID, f.Subject, f.Detail)
		}
	}
}

// A guest who enters by PIN in the time of an extension after its deposit was reversed, and its account closed, is a discrepancy.
func TestEntryAfterReversalOfAnExtension(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, sound)
	exec(t, db.Pool, `set session_replication_role = replica; `+reversedExtension+`; set session_replication_role = origin`)
	var ended time.Time
	if err := db.Pool.QueryRow(t.Context(), `select canceled_at from reservation where order_id = 'longer'`).Scan(&ended); err != nil {
		t.Fatal(err)
	}
	for minutes, want := range map[time.Duration]bool{-5: false, 5: true} {
		e := protocol.PassEntry{
			Journal: "j", Entry: uint64(10 + minutes), Pass: "00000000-0000-0000-0000-000000000002", Device: "room_1", At: ended.Add(minutes * time.Minute),
			Outcome: protocol.EntryOpened, Source: protocol.SourcePIN,
		}
		err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			stored, err := postgres.StoreEntry(ctx, tx, "agent-1", e, now)
			if err == nil && stored.AfterRefund != want {
				t.Errorf("%d minutes after the end of the extension: a discrepancy %t, want %t", minutes, stored.AfterRefund, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A difference that an administrator has decided about is no violation.
func TestProofLeavesMoneyUnderReviewAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, sound)
	exec(t, db.Pool, `set session_replication_role = replica; delete from money_entry where kind = 'paid' and order_id = 'paid'; set session_replication_role = origin`)
	count := func() (n int) {
		results, err := postgres.Prove(t.Context(), db.Pool, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.ID[0] == 'M' {
				n += r.Violations
			}
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("not reviewed: got %d violations, want M2 and M6", n)
	}
	exec(t, db.Pool, `insert into reconciliation_difference (order_id, kind, detail) values ('paid', 'balance', '')`)
	if n := count(); n != 0 {
		t.Errorf("under review: got %d violations", n)
	}
	exec(t, db.Pool, `update reconciliation_difference set resolved_at = now(), resolution = 'settled'`)
	if n := count(); n != 2 {
		t.Errorf("settled by the service: got %d violations, want 2", n)
	}
}
