package reserve_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestEndOfAShortStay: a stay of ten minutes is announced to end at its start, with the offer to extend it. One that was bought after that
// is not, because the text would be wrong and the confirmation has the end.
func TestEndOfAShortStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		paid time.Duration // after the start
		want int
	}{
		"bought before": {-time.Hour, 1}, "bought within": {2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, _, id := s.paid(t, sandbox.MethodCard)
			s.exec(t, `
				update reservation set end_at = start_at + interval '10 minutes', occupied = tstzrange(start_at, start_at + interval '20 minutes'),
				       paid_at = start_at + $2::interval where id = $1`, id, c.paid)
			s.Clock.Advance(s.start(t, id).Add(3 * time.Minute).Sub(s.Clock.Now()))
			if err := s.Replica(t).SweepStays(s.ctx); err != nil {
				t.Fatal(err)
			}
			if n := s.count(t, `select count(*) from stay_message where template = 'stay-ending' and reservation_id = $1`, id); n != c.want {
				t.Errorf("%d messages, want %d", n, c.want)
			}
		})
	}
}
