package chatops_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/chatops"
	"github.com/yeolda/yeolda/cloud/internal/discord"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// newBranch returns a database with a branch and its rooms, and a function that executes a statement there.
func newBranch(t *testing.T, rooms int) (db *postgres.DB, exec func(sql string, args ...any)) {
	t.Helper()
	db = pgtest.New(t)
	exec = func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into branch (code) values ('gangnam')`)
	exec(`insert into room (branch_id, no, machine) select id, generate_series(1, $1::int), 'Bed' from branch`, rooms)
	return db, exec
}

// Staff see a stay until the end of its extension, the next guest of tomorrow too, and no quarantine as a reservation.
func TestRoomsOfTheChat(t *testing.T) {
	t.Parallel()
	db, exec := newBranch(t, 3)
	add := func(room int, start, end time.Time, more, values string) {
		t.Helper()
		exec(`insert into reservation (branch_id, room_id, start_at, end_at, occupied, name, `+more+`)
			select branch_id, id, $2, $3, tstzrange($2, $3::timestamptz + interval '10 minutes'), '홍길동', `+values+` from room where no = $1`, room, start, end)
	}
	const stay = "state, source, method, amount, paid_at, extends"
	mark := db.Now().Truncate(10 * time.Minute)
	start, end, extended, tomorrow := mark.Add(-time.Hour), mark.Add(10*time.Minute), mark.Add(40*time.Minute), mark.Add(23*time.Hour)
	add(1, start, end, stay, `'DONE', 'CUSTOMER', '카드', 1000, now(), null`)
	add(1, end, extended, stay, `'WAITING_FOR_DEPOSIT', 'CUSTOMER', '카드', 1000, now(), (select max(id) from reservation)`)
	exec(`update reservation set state = 'DONE' where state = 'WAITING_FOR_DEPOSIT'`) // a trigger lengthens the stay
	add(2, tomorrow, tomorrow.Add(time.Hour), stay, `'DONE', 'CUSTOMER', '카드', 1000, now(), null`)
	add(3, mark, extended, "state, source, expires_at, quarantine_of", `'HOLD', 'ADMIN', now() + interval '1 hour', (select max(id) from reservation)`)

	chat := &chatops.Backend{DB: db}
	rooms, err := chat.Rooms(t.Context(), "gangnam")
	if err != nil || len(rooms) != 3 {
		t.Fatal(rooms, err)
	}
	for i, want := range []discord.Room{{InUse: true, Until: extended}, {Until: tomorrow}, {}} {
		if got := rooms[i]; got.InUse != want.InUse || !got.Until.Equal(want.Until) {
			t.Errorf("room %d: in use %v until %v, want %v until %v", got.No, got.InUse, got.Until, want.InUse, want.Until)
		}
	}
	branch, err := db.Branch(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	near, err := postgres.ReservationNear(t.Context(), db.Pool, branch.ID, 1, end.Add(10*time.Minute), time.Hour)
	if r, found := postgres.Reservation(t.Context(), db.Pool, near); err != nil || found != nil || r.Extends != 0 {
		t.Errorf("the reservation to diagnose during an extension: got %d (%v, %v), want the stay, which has the key", near, err, found)
	}
	list, err := chat.Reservations(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || list[0].Room != 1 || !list[0].End.Equal(extended) {
		t.Fatalf("got %+v, want the stay in room 1 until %v", list, extended)
	}
	for _, r := range list[1:] {
		if r.Room != 2 { // today, if this test runs in the last hour of a day
			t.Errorf("got %+v, want neither the extension nor the quarantine", r)
		}
	}
}

// A partner's booking of three days is stored as a reservation of five hours and extensions of five hours. Two days after its start, staff
// still see it as one stay, with the times of the whole. A confirmed extension whose stay is not confirmed occupies its room, too.
func TestLongPartnerStayInTheChat(t *testing.T) {
	t.Parallel()
	db, exec := newBranch(t, 2)
	mark := db.Now().Truncate(10 * time.Minute)
	add := func(room int, state string, start, end time.Time, root any) {
		t.Helper()
		exec(`insert into reservation (branch_id, room_id, start_at, end_at, occupied, name, state, source, amount, paid_at, extends)
			select branch_id, id, $2, $3, tstzrange(case when $5::bigint is null then $2::timestamptz else $2::timestamptz + interval '10 minutes' end, $3::timestamptz + interval '10 minutes'),
			       '손님', $4, 'PARTNER', 0, now(), $5 from room where no = $1`, room, start, end, state, root)
	}
	root := func() (id int64) {
		t.Helper()
		if err := db.Pool.QueryRow(t.Context(), `select max(id) from reservation where extends is null`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	begin, end := mark.Add(-48*time.Hour), mark.Add(24*time.Hour)
	add(1, "DONE", begin, begin.Add(5*time.Hour), nil)
	long := root()
	for start := begin.Add(5 * time.Hour); start.Before(end); start = start.Add(5 * time.Hour) {
		until := start.Add(5 * time.Hour)
		if until.After(end) {
			until = end
		}
		add(1, "DONE", start, until, long)
	}
	exec(`update reservation set stay_end = $2 where id = $1`, long, end) // as postgres.InsertPartnerReservation does
	add(2, "CANCELED", mark.Add(-time.Hour), mark.Add(-10*time.Minute), nil)
	add(2, "DONE", mark.Add(-10*time.Minute), mark.Add(time.Hour), root())

	chat := &chatops.Backend{DB: db}
	rooms, err := chat.Rooms(t.Context(), "gangnam")
	if err != nil || len(rooms) != 2 {
		t.Fatal(rooms, err)
	}
	for i, want := range []time.Time{end, mark.Add(time.Hour)} {
		if got := rooms[i]; !got.InUse || !got.Until.Equal(want) {
			t.Errorf("room %d: in use %v until %v, want in use until %v", got.No, got.InUse, got.Until, want)
		}
	}
	list, err := chat.Reservations(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || list[0].Room != 1 || !list[0].Start.Equal(begin) || !list[0].End.Equal(end) {
		t.Fatalf("got %+v, want the stay in room 1 from %v to %v", list, begin, end)
	}
	for _, r := range list[1:] {
		if r.Room != 2 {
			t.Errorf("got %+v, want no extension of the stay in room 1", r)
		}
	}
}

// away is the connection to agents of a service whose agents are all offline.
type away struct{}

func (away) Send(protocol.Peer, protocol.Message) error { return nil }
func (away) Online(string) []string                     { return nil }

// A captured command is sent again to another replica, or to the same one after a restart: it opens no door a second time.
func TestCommandOpensADoorOnce(t *testing.T) {
	t.Parallel()
	db, exec := newBranch(t, 1)
	exec(`update branch set front_doors = '{front_1}'`)
	replica := func() *chatops.Backend {
		return &chatops.Backend{DB: db, Access: &access.Service{DB: db, Link: away{}, Log: slog.New(slog.DiscardHandler)}}
	}
	ask := discord.UnlockRequest{InteractionID: "1", By: "discord:2", Branch: "gangnam"}
	if opened, err := replica().Unlock(t.Context(), ask); opened || err != nil {
		t.Fatalf("got %t, %v, want a door that cannot be reached", opened, err)
	}
	var refusal discord.Refusal
	if _, err := replica().Unlock(t.Context(), ask); !errors.As(err, &refusal) {
		t.Errorf("the same command again: got %v, want a refusal", err)
	}
	ask.InteractionID = "2"
	if _, err := replica().Unlock(t.Context(), ask); err != nil {
		t.Errorf("another command: %v", err)
	}
	var n int
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from door_request`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d requests, %v, want 2", n, err)
	}
}
