package partner_test

import (
	"fmt"
	"testing"
	"time"
)

// A phone number that the partner reports anew receives the key. One that staff corrected stays while the partner repeats its own.
func TestPartnerCorrectsThePhoneNumber(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	report := func(kind string, seq int, start time.Time, phone string) (id any) {
		t.Helper()
		status, answer := s.event(t, map[string]any{
			"type": "booking." + kind, "externalId": "A", "listingId": "gangnam-1", "seq": seq,
			"start": start, "end": start.Add(time.Hour), "customer": map[string]string{"name": "박손님", "phone": phone},
		})
		if status != 200 {
			t.Fatalf("%s %d: %d %v", kind, seq, status, answer)
		}
		return answer["reservationId"]
	}
	id := report("created", 1, at, "010-7100-0001")
	want := func(mobile string) {
		t.Helper()
		var stored, receiver string
		err := s.DB.Pool.QueryRow(s.ctx, `
			select r.mobile, (select m.to_mobile from message m where m.reservation_id = r.id and m.state <> 'FAILED' order by m.id desc limit 1)
			from reservation r where r.id = $1 and r.state = 'DONE'`, id).Scan(&stored, &receiver)
		if err != nil || stored != mobile || receiver != mobile {
			t.Errorf("the guest has %s, and the last message goes to %s; want %s (%v)", stored, receiver, mobile, err)
		}
	}
	keys := func() (n int) {
		t.Helper()
		if err := s.DB.Pool.QueryRow(s.ctx, `select count(*) from access_key where reservation_id = $1 and revoked_at is null`, id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	want("010-7100-0001")
	report("updated", 2, at, "010-7100-0002")
	want("010-7100-0002")
	if n := keys(); n != 1 {
		t.Errorf("%d keys are valid", n)
	}
	reply, err := s.admin(t).Do(s.ctx, "PATCH", fmt.Sprintf("/v2/admin/reservations/%v/contact", id), map[string]string{"mobileNum": "01071000003", "reason": "잘못 적음"})
	must(t, reply, err)
	want("01071000003")
	report("updated", 3, at.Add(time.Hour), "010-7100-0002")
	want("01071000003")
	report("updated", 4, at.Add(time.Hour), "") // the partner does not disclose it this time
	report("updated", 5, at.Add(2*time.Hour), "010-7100-0004")
	want("010-7100-0004")
	if n := keys(); n != 1 {
		t.Errorf("%d keys are valid", n)
	}
}

// Of a booking without a phone number, only messages that carry the key are recorded: their failure has staff give the key by
// another way. A message about the cancellation has no receiver, so it is not recorded. The address of a branch is optional.
func TestPartnerBookingWithoutContact(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"서울특별시 강남구 가상대로 123", ""} {
		t.Run(fmt.Sprintf("address %q", address), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			if _, err := s.DB.Pool.Exec(s.ctx, `update branch set address = $1`, address); err != nil {
				t.Fatal(err)
			}
			at := s.start(3)
			var id any
			for seq, kind := range []string{"created", "cancelled"} {
				status, answer := s.event(t, map[string]any{
					"type": "booking." + kind, "externalId": "A", "listingId": "gangnam-1", "seq": seq + 1,
					"start": at, "end": at.Add(time.Hour), "customer": map[string]string{"name": "박손님"},
				})
				if status != 200 {
					t.Fatalf("%s: %d %v", kind, status, answer)
				}
				if seq == 0 {
					id = answer["reservationId"]
				}
			}
			var state string
			var templates *string
			err := s.DB.Pool.QueryRow(s.ctx, `select state, (select string_agg(template, ' ' order by id) from message where reservation_id = r.id) from reservation r where id = $1`, id).Scan(&state, &templates)
			if err != nil || state != "CANCELED" || templates == nil || *templates != "reservation-confirmed" {
				t.Errorf("%s with the messages %v, want CANCELED and the confirmation only (%v)", state, templates, err)
			}
		})
	}
}

// A partner changes a booking whose stay staff move to another room at that moment: the change is made in the new room.
func TestChangeWhileStaffMoveTheStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	report := func(seq int, end time.Time) (int, map[string]any) {
		return s.event(t, map[string]any{"type": "booking.updated", "externalId": "A", "listingId": "gangnam-1", "seq": seq, "start": at, "end": end})
	}
	_, created := report(1, at.Add(time.Hour))
	tx, err := s.DB.Pool.Begin(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(s.ctx) }()
	if _, err := tx.Exec(s.ctx, `select from room where no in (1, 2) for update`); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := report(2, at.Add(90*time.Minute))
		answered <- status
	}()
	for waiting := false; !waiting; time.Sleep(10 * time.Millisecond) { // PostgreSQL reports no event for a lock
		if err := s.DB.Pool.QueryRow(s.ctx, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	_, err = tx.Exec(s.ctx, `update reservation set room_id = (select o.id from room o join room m using (branch_id) where m.id = room_id and o.no = 2) where id = $1`, created["reservationId"])
	if err == nil {
		err = tx.Commit(s.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != 200 {
		t.Errorf("HTTP %d, want 200", status)
	}
	var room int
	var length time.Duration
	err = s.DB.Pool.QueryRow(s.ctx, `select m.no, r.end_at - r.start_at from reservation r join room m on m.id = r.room_id where r.id = $1 and r.state = 'DONE'`, created["reservationId"]).Scan(&room, &length)
	if err != nil || room != 2 || length != 90*time.Minute {
		t.Errorf("%s in room %d (%v), want 90 minutes in room 2", length, room, err)
	}
}

// Two first events of a booking arrive at the same time, for two rooms: it has one stay, that of the newer event.
func TestFirstEventsAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	answered := make(chan int, 2)
	report := func(room, seq int) {
		status, _ := s.event(t, map[string]any{
			"type": "booking.updated", "externalId": "A", "listingId": fmt.Sprint("gangnam-", room), "seq": seq, "start": at, "end": at.Add(time.Hour),
		})
		answered <- status
	}
	tx, err := s.DB.Pool.Begin(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(s.ctx) }()
	_, err = tx.Exec(s.ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, paid_at)
		select branch_id, m.id, 'DONE', 'ADMIN', $1::timestamptz, $1::timestamptz + interval '1 hour', tstzrange($1::timestamptz, $1::timestamptz + interval '70 minutes'), '관리자', 0, now()
		from room m join branch b on b.id = m.branch_id where b.code = 'gangnam' and m.no = 1`, at)
	if err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) bool {
		var got int
		if err := s.DB.Pool.QueryRow(s.ctx, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1`, "Lock").Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got >= n
	}
	go report(1, 1)
	for !waiting(1) {
		time.Sleep(10 * time.Millisecond) // PostgreSQL reports no event for a lock
	}
	go report(2, 2)
	for !waiting(2) && len(answered) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := tx.Rollback(s.ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := <-answered; status != 200 {
			t.Errorf("HTTP %d, want 200", status)
		}
	}
	var stays string
	err = s.DB.Pool.QueryRow(s.ctx, `
		select string_agg(format('room %s, seq %s', m.no, b.seq), '; ') from reservation r join room m on m.id = r.room_id
		left join partner_booking b on b.reservation_id = r.id where r.source = 'PARTNER' and r.state = $1`, "DONE").Scan(&stays)
	if err != nil || stays != "room 2, seq 2" {
		t.Errorf("stays: %s (%v), want one in room 2, of seq 2", stays, err)
	}
}
