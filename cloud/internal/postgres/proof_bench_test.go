package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// million is a million paid stays of 500 rooms, each with payment, ledger, books, key, one press and its events; every
// tenth was canceled and refunded.
const million = `
	insert into branch (code) select 'b' || n from generate_series(1, 50) n;
	insert into room (branch_id, no) select id, n from branch, generate_series(1, 10) n;
	insert into agent_credential (username, branch_id, secret_hash, active) select 'agent-' || code, id, '', true from branch;
	set session_replication_role = replica;
	insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id, amount, method, paid_at, canceled_at)
	select branch_id, id, case when n % 10 = 0 then 'CANCELED' else 'DONE' end, 'CUSTOMER', t, t + interval '1 hour', tstzrange(t, t + interval '70 minutes'),
	       'order-' || id || '-' || n, 20000, '카드', t - interval '1 day', case when n % 10 = 0 then t - interval '1 hour' end
	from room, generate_series(1, 2000) n, lateral (select date_trunc('hour', now()) - n * interval '2 hours' as t) at;
	insert into orders (order_id, purchase_id, reservation_id, amount) select order_id, id, id, amount from reservation;
	insert into payment (reservation_id, key_set, payment_key, confirm_key, provider_status, total_amount, balance_amount, approved_at)
	select id, 'widget', order_id, order_id, 'DONE', amount, amount, paid_at from reservation;
	insert into ledger (reservation_id, order_id, kind, amount) select id, order_id, k, amount from reservation, (values ('confirm.sent'), ('confirm.done')) e (k);
	insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
	select 'paid:' || order_id, id, branch_id, order_id, 'paid', amount, paid_at from reservation
	union all select 'refunded:' || order_id, id, branch_id, order_id, 'refunded', -amount, canceled_at from reservation where state = 'CANCELED';
	insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key, created_at)
	select id, 'COMPLETED', '', amount, 'customer', order_id, canceled_at from reservation where state = 'CANCELED';
	insert into access_key (reservation_id, hash, kind, created_by) select id, sha256(order_id::bytea), 'owner', 'system' from reservation;
	insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices, state, created_at, nonce, granted_at, finished_at)
	select gen_random_uuid(), r.branch_id, r.id, sha256(order_id::bytea), 'customer', 'room', 'room_' || no, array['room_' || no], 'SUCCESS', t, 'n', t + interval '300 ms', t + interval '400 ms'
	from reservation r join room m on m.id = r.room_id, lateral (select start_at + interval '1 minute' as t) at where r.state = 'DONE';
	insert into door_event (branch_id, device, kind, at, request_id, detail)
	select branch_id, device, k, granted_at, id, d::jsonb from door_request, (values ('energized', '{}'), ('released', '{"energizedMs": 3000}')) e (k, d);
	insert into pass (id, reservation_id, branch_id, room_id, pin, not_before, not_after)
	select gen_random_uuid(), id, branch_id, room_id, '', start_at - interval '2 minutes', end_at - interval '2 minutes' from reservation where state = 'DONE';
	set session_replication_role = origin;
	analyze`

// BenchmarkProof measures a proof of a million reservations.
func BenchmarkProof(b *testing.B) {
	db := pgtest.New(b)
	if _, err := db.Pool.Exec(b.Context(), `set statement_timeout = 0; `+million); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		results, err := postgres.Prove(b.Context(), db.Pool, time.Time{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if r.Violations > 0 {
				b.Errorf("%s: %+v", r.ID, r.Findings[0])
			}
		}
	}
}
