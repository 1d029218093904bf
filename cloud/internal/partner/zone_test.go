package partner_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
)

// In a zone whose offset from UTC is not a multiple of ten minutes, a partner's booking keeps its times, one that does not
// begin on a mark is widened to marks of the branch, and the closed times of the published calendar lie on them.
func TestCalendarsFollowTheMarksOfTheBranch(t *testing.T) {
	t.Parallel()
	s := open(t)
	listing := s.calendar(t, 1, "the-token")
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch set time_zone = 'Asia/Kathmandu', schedule = (select schedule from branch where code = 'hongdae') where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	s.admin(t) // the service is up
	service, from := s.importing(t)
	y, m, d := s.opened.In(kathmandu).AddDate(0, 0, 2).Date()
	at := func(hour, minute int) time.Time { return time.Date(y, m, d, hour, minute, 0, 0, kathmandu) }
	from.pulled = channel.Pulled{Bookings: []channel.Booking{
		{ExternalID: "on marks", Start: at(15, 0), End: at(16, 0)},
		{ExternalID: "off marks", Start: at(17, 5), End: at(17, 55)},
		{ExternalID: "adjacent", Start: at(16, 10), End: at(16, 50)},
	}}
	if err := service.Import(s.ctx, listing); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][2]time.Time{"on marks": {at(15, 0), at(16, 0)}, "off marks": {at(17, 0), at(18, 0)}, "adjacent": {at(16, 10), at(16, 50)}} {
		var start, end time.Time
		var state string
		if err := s.DB.Pool.QueryRow(s.ctx, `select r.start_at, r.end_at, r.state from partner_booking b join reservation r on r.id = b.reservation_id
			where b.external_id = $1`, id).Scan(&start, &end, &state); err != nil {
			t.Fatal(err)
		}
		if !start.Equal(want[0]) || !end.Equal(want[1]) || state != "DONE" {
			t.Errorf("%s: %s from %v to %v, want DONE from %v to %v", id, state, start.In(kathmandu), end.In(kathmandu), want[0], want[1])
		}
	}
	_, body, _ := s.get(t, "/ical/gangnam/1.ics?token=the-token", "")
	times := regexp.MustCompile(`DT(?:START|END):(\d{8}T\d{6}Z)`).FindAllStringSubmatch(body, -1)
	if len(times) == 0 {
		t.Fatalf("no times in\n%s", body)
	}
	for _, one := range times {
		when, err := time.Parse("20060102T150405Z", one[1])
		if err != nil || when.In(kathmandu).Minute()%10 != 0 {
			t.Fatalf("%s is %v, want a ten-minute mark (%v)", one[0], when.In(kathmandu), err)
		}
	}
}
