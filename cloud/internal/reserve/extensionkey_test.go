package reserve_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestKeyOfAnExtensionIsThatOfItsStay: staff who search for a guest may open the extension. Its key and its contact are those of the stay.
func TestKeyOfAnExtensionIsThatOfItsStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	g := s.guest(t, sandbox.MethodCard)
	id := booking.ReservationID(g.extend(t, s, g.end().Add(time.Hour)))
	s.Clock.Advance(g.wish.Start.Sub(s.Clock.Now()))
	changed := func(name string, change func() error) {
		t.Helper()
		before := g.key
		if err := change(); err != nil {
			t.Fatal(name, err)
		}
		if n := s.count(t, `select count(*) from access_key where kind = 'owner' and revoked_at is null and reservation_id <> $1`, g.id); n != 0 {
			t.Fatalf("%s: the extension has a key of its own", name)
		}
		if status := g.opens(t, s); status == 200 {
			t.Errorf("%s: the earlier key opens", name)
		}
		if g.key = s.key(t, g.id); g.key == before {
			t.Fatalf("%s: the stay has the same key", name)
		}
		if status := g.opens(t, s); status != 200 {
			t.Errorf("%s: the new key of the stay does not open: %d", name, status)
		}
	}
	changed("rotation", func() error {
		_, err := replica.RotateKey(s.ctx, id, "분실", hq)
		return err
	})
	mobile := "010-5555-0001"
	changed("correction", func() error {
		return replica.CorrectContact(s.ctx, reserve.ContactCorrection{ID: id, Mobile: &mobile, Reason: "오타", By: hq})
	})
	if n := s.count(t, `select count(*) from reservation where (id = $1 or extends = $1) and mobile = '010-5555-0001'`, g.id); n != 2 {
		t.Errorf("%d reservations of the stay have the new number, want both", n)
	}
	if err := replica.ResendKey(s.ctx, id, hq); err != nil {
		t.Errorf("the key is not sent again: %v", err)
	}
}
