package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestPartnerBookingsAreFoundByIndex: what sweeps and imports look for among the bookings of partners is found without reading the others.
func TestPartnerBookingsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	oneRoom(t, db, now)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{
		`insert into channel_listing (channel, partner, external_id, room_id) select 'ical', 'p', n, id from room, generate_series(1, 40) n`,
		`insert into partner_booking (partner, external_id, listing_id, status, start_at, end_at)
		 select 'p', n, (select min(id) from channel_listing) + n % 40, 'CONFIRMED', '2026-01-01', '2026-01-02' from generate_series(1, 20000) n`,
		`insert into partner_booking (partner, external_id, listing_id, reservation_id, status, start_at, end_at)
		 select 'p', 'conflict', (select min(id) from channel_listing), id, 'CONFLICT', start_at, end_at from reservation`,
		`insert into partner_conflict (reservation_id, room_id, occupied) select id, room_id, occupied from reservation`,
		`analyze`,
		`set plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	listings, err := postgres.ConflictListings(t.Context(), conn, now, 10)
	if err != nil || len(listings) != 1 {
		t.Fatalf("listings in conflict: %v, %v; want one", listings, err)
	}
	if list, err := postgres.PartnerBookings(t.Context(), conn, listings[0].ID, now); err != nil || len(list) != 1 {
		t.Fatalf("bookings of the listing: %v, %v; want one", list, err)
	}
	if _, err := postgres.PartnerBookingOf(t.Context(), conn, 0); !errors.Is(err, postgres.ErrNoPartnerBooking) {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `
		select format('explain execute %I (%s)', name, array_to_string(array_fill('null'::text, array[cardinality(parameter_types)]), ', '))
		from pg_prepared_statements where statement like '%partner_booking%' and statement not like '%pg_prepared_statements%'`)
	if err != nil {
		t.Fatal(err)
	}
	explains, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(explains) != 3 {
		t.Fatalf("%d statements, %v; want 3", len(explains), err)
	}
	for _, explain := range explains {
		rows, err := conn.Query(t.Context(), explain, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan on partner_booking") {
			t.Errorf("all bookings are read:\n%s", text)
		}
	}
}
