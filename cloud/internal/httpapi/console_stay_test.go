package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The record shows when the guests entered and left, as far as the doors have shown it.
func TestStayRecord(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	start := c.start
	id := reservationAt(t, s, 1, start)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	type visit struct {
		EnteredAt time.Time
		ByKey     *string
		LeftAt    *time.Time
	}
	read := func() *visit {
		t.Helper()
		var record struct{ Stay *visit }
		c.Manager.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record)
		return record.Stay
	}
	press := func(kind, device, state string, at time.Time) {
		t.Helper()
		exec(`insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices, state, created_at, finished_at)
			select gen_random_uuid(), branch_id, id, (select hash from access_key k where k.reservation_id = r.id limit 1), 'customer', $2, $3, '{}', $4, $5, $5
			from reservation r where id = $1::bigint`, id, kind, device, state, at)
	}
	room := "room_1"
	event := func(kind string, at time.Time) {
		t.Helper()
		exec(`insert into door_event (branch_id, device, kind, at) select branch_id, $4, $2, $3 from reservation where id = $1::bigint`, id, kind, at, room)
	}
	press("front", "front", "SUCCESS", start.Add(time.Minute))
	press("room", "room_1", "FAILED", start.Add(2*time.Minute))
	if got := read(); got != nil {
		t.Fatalf("before the room was opened: %+v, want null", got)
	}
	exec(`insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
		select username, 'j', 1, r.branch_id, r.id, 'room_1', $2, 'opened', '', 'pin', '', '', $2
		from reservation r join agent_credential a on a.branch_id = r.branch_id where r.id = $1::bigint limit 1`, id, start.Add(4*time.Minute))
	if got := read(); got == nil || !got.EnteredAt.Equal(start.Add(4*time.Minute)) || got.ByKey == nil || *got.ByKey != "pin" {
		t.Fatalf("after an entry at the keypad: %+v", got)
	}
	press("room", "room_1", "SUCCESS", start.Add(3*time.Minute))
	event("energized", start.Add(3*time.Minute))
	event("door-opened", start.Add(3*time.Minute+2*time.Second))
	event("door-closed", start.Add(3*time.Minute+5*time.Second))
	event("door-opened", start.Add(40*time.Minute))
	event("door-closed", start.Add(40*time.Minute+5*time.Second))
	if got := read(); got == nil || !got.EnteredAt.Equal(start.Add(3*time.Minute)) || got.ByKey == nil || *got.ByKey != "owner" || got.LeftAt != nil {
		t.Fatalf("during the stay: %+v", got)
	}
	s.Clock.Advance(3*time.Hour + 61*time.Minute)
	if got := read(); got.LeftAt == nil || !got.LeftAt.Equal(start.Add(40*time.Minute+5*time.Second)) {
		t.Errorf("after the stay: left at %v", got.LeftAt)
	}
	event("door-opened", start.Add(65*time.Minute)) // still open
	if got := read(); got.LeftAt != nil {
		t.Errorf("while the door is open after the stay: left at %v, want null", got.LeftAt)
	}

	// The stay was moved. Openings of the first room concern other guests.
	exec(`update reservation r set room_id = m.id from room m where r.id = $1::bigint and m.branch_id = r.branch_id and m.no = $2`, id, 2)
	event("door-closed", start.Add(66*time.Minute))
	if got := read(); got == nil || !got.EnteredAt.Equal(start.Add(3*time.Minute)) || got.LeftAt != nil {
		t.Errorf("moved, and not entered the other room: %+v, want no time of leaving", got)
	}
	room = "room_2"
	event("door-opened", start.Add(10*time.Minute)) // before the guests were there
	event("door-closed", start.Add(11*time.Minute))
	press("room", room, "SUCCESS", start.Add(20*time.Minute))
	if got := read(); got.LeftAt != nil {
		t.Errorf("in the other room: left at %v, want null", got.LeftAt)
	}
	event("door-opened", start.Add(50*time.Minute))
	event("door-closed", start.Add(51*time.Minute))
	if got := read(); got.LeftAt == nil || !got.LeftAt.Equal(start.Add(51*time.Minute)) {
		t.Errorf("after the stay in the other room: left at %v", got.LeftAt)
	}

	// It was cancelled during its time. Later openings are those of other guests.
	exec(`update reservation set state = 'CANCELED', canceled_at = $2 where id = $1::bigint`, id, start.Add(30*time.Minute))
	if got := read(); got == nil || got.LeftAt != nil {
		t.Errorf("cancelled: %+v, want no time of leaving", got)
	}
	event("door-opened", start.Add(32*time.Minute))
	event("door-closed", start.Add(33*time.Minute))
	if got := read(); got.LeftAt == nil || !got.LeftAt.Equal(start.Add(33*time.Minute)) {
		t.Errorf("after the cancellation: left at %v", got.LeftAt)
	}
}
