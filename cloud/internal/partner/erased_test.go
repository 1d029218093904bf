package partner_test

import (
	"fmt"
	"testing"
	"time"
)

// A partner that repeats the contact of a guest who was erased after an early departure brings nothing back. If it extends a stay that has
// ended, the stay has a contact again, which is removed like any other when its time has come.
func TestPartnerAfterAnErasure(t *testing.T) {
	t.Parallel()
	const phone = "010-7100-0001"
	for name, c := range map[string]struct {
		early   bool
		event   time.Duration // from the start: the end that the partner reports after the erasure
		contact int           // reservations with the contact afterwards
	}{
		"left early, and the event is repeated": {early: true, event: 3 * time.Hour},
		"ended, and the event is repeated":      {event: 3 * time.Hour},
		"ended, and extended":                   {event: 5 * time.Hour, contact: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			at := s.start(1)
			report := func(seq int, length time.Duration) map[string]any {
				t.Helper()
				_, answer := s.event(t, map[string]any{
					"type": "booking.updated", "externalId": "A", "listingId": "gangnam-1", "seq": seq,
					"start": at, "end": at.Add(length), "customer": map[string]string{"name": "박손님", "phone": phone},
				})
				return answer
			}
			id := int64(report(1, 3*time.Hour)["reservationId"].(float64))
			s.Clock.Advance(at.Add(time.Hour).Sub(s.Clock.Now()))
			if c.early {
				reply, err := s.buyer().Post(s.ctx, "/v2/keys/"+s.OwnerKey(t, id)+"/end", nil)
				must(t, reply, err)
				s.Clock.Advance(20 * time.Minute)
			} else {
				s.Clock.Advance(2*time.Hour + time.Minute)
			}
			erase := func() (kept int64) {
				t.Helper()
				reply, err := s.admin(t).Post(s.ctx, "/v2/admin/personal-data/erase", map[string]string{"contact": phone})
				must(t, reply, err)
				if err := s.DB.Pool.QueryRow(s.ctx, `select (select count(*) from reservation where mobile is not null) +
					(select count(*) from partner_booking where mobile is not null)`).Scan(&kept); err != nil {
					t.Fatal(err)
				}
				return kept
			}
			if kept := erase(); kept != 0 {
				t.Fatalf("the erasure has left %d numbers", kept)
			}
			report(2, c.event)
			var reservations, bookings, forGood int
			if err := s.DB.Pool.QueryRow(s.ctx, `select count(*) filter (where mobile is not null), count(*) filter (where mobile is not null and anonymised_at is not null),
				(select count(*) from partner_booking where mobile is not null) from reservation`).Scan(&reservations, &forGood, &bookings); err != nil {
				t.Fatal(err)
			}
			if reservations != c.contact || bookings != c.contact || forGood != 0 {
				t.Errorf("%d reservations and %d bookings have the number, want %d; %d of the reservations count as erased", reservations, bookings, c.contact, forGood)
			}
		})
	}
}

// TestErasureOfANumberThatStaffCorrected: the partner has reported the number of a stranger, and staff have entered the guest's. The stranger is
// erased, and stays so when the partner repeats the number. The guest keeps the key.
func TestErasureOfANumberThatStaffCorrected(t *testing.T) {
	t.Parallel()
	const stranger, guest = "010-7100-0001", "01071000002"
	s := open(t)
	at := s.start(3)
	report := func(seq int) map[string]any {
		_, answer := s.event(t, map[string]any{
			"type": "booking.updated", "externalId": "A", "listingId": "gangnam-1", "seq": seq,
			"start": at, "end": at.Add(time.Hour), "customer": map[string]string{"name": "박손님", "phone": stranger},
		})
		return answer
	}
	id := report(1)["reservationId"]
	admin := s.admin(t)
	reply, err := admin.Do(s.ctx, "PATCH", fmt.Sprintf("/v2/admin/reservations/%v/contact", id), map[string]string{"mobileNum": guest, "reason": "잘못 적음"})
	must(t, reply, err)
	reply, err = admin.Post(s.ctx, "/v2/admin/personal-data/erase", map[string]string{"contact": stranger})
	must(t, reply, err)
	for _, when := range []string{"after the erasure", "after another event"} {
		var stored string
		var known int
		err := s.DB.Pool.QueryRow(s.ctx, `select mobile, (select count(*) from partner_booking where mobile is not null) from reservation where id = $1`, id).Scan(&stored, &known)
		if err != nil || stored != guest || known != 0 {
			t.Errorf("%s: the guest has the number %s, and %d numbers are stored beside bookings; want %s and none (%v)", when, stored, known, guest, err)
		}
		report(2)
	}
}
