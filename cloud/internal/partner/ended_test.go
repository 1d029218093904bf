package partner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// Partners keep stays in their calendars after their end. Reading them again changes nothing: neither a stay that has taken
// place, nor a conflict that is over, nor one that the calendar shows for the first time.
func TestEndedBookingsOfACalendarStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "t")
	service, from := s.importing(t)
	at := s.start(3)
	booking := func(id string, hours int) channel.Booking {
		start := at.Add(time.Duration(hours) * time.Hour)
		return channel.Booking{ExternalID: id, Start: start, End: start.Add(50 * time.Minute)}
	}
	if _, err := s.buyer().Buy(s.ctx, moneytest.Wish{Room: 1, Start: at, Method: sandbox.MethodCard, Mobile: "01012345678"}); err != nil {
		t.Fatal(err)
	}
	read := func(bookings ...channel.Booking) []string {
		t.Helper()
		from.pulled = channel.Pulled{Bookings: bookings}
		if err := service.Import(s.ctx, listing); err != nil {
			t.Fatal(err)
		}
		rows, err := s.DB.Pool.Query(s.ctx, `
			select b.external_id, b.status, r.id, r.state, r.version from reservation r left join partner_booking b on b.reservation_id = r.id
			where r.source = 'PARTNER' order by r.id`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			values, err := row.Values()
			return fmt.Sprint(values...), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := read(booking("stay", 2), booking("over ours", 0))
	if len(before) != 2 {
		t.Fatalf("imported %v, want two bookings", before)
	}
	s.Clock.Advance(7 * time.Hour)
	for range 2 {
		if after := read(booking("stay", 2), booking("over ours", 0), booking("first seen after its end", 3)); !slices.Equal(after, before) {
			t.Errorf("after their end:\n%v, want\n%v", after, before)
		}
	}
}
