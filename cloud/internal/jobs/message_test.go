package jobs

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestHowLongAMessageIsTried repeats a message at a provider that is away.
func TestHowLongAMessageIsTried(t *testing.T) {
	t.Parallel()
	const minutes, day = 10 * time.Minute, 24*time.Hour + maxRetryDelay
	for template, c := range map[notify.Template]struct {
		reservation int64
		least, most time.Duration
	}{
		notify.LoginCode:            {0, time.Minute, minutes},
		notify.VirtualAccountIssued: {1, time.Minute, minutes},
		notify.ReservationConfirmed: {1, maxAge, day},
		notify.AlertBegan:           {0, maxAge, day},
		notify.AlertEnded:           {0, maxAge, day},
		notify.DailyProof:           {0, maxAge, day},
		notify.FranchiseInquiry:     {0, maxAge, day},
	} {
		began := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
		now := began
		s := &Service{DB: &postgres.DB{Now: func() time.Time { return now }}}
		m := booking.Message{Template: string(template), Reservation: booking.ReservationID(c.reservation), CreatedAt: began, Attempt: 1}
		for next := s.retryAt(m, notify.Retryable); !next.IsZero(); next = s.retryAt(m, notify.Retryable) {
			now = next
			m.Attempt++
		}
		if tried := now.Sub(began); tried < c.least || tried > c.most {
			t.Errorf("%s: tried for %v, want %v to %v", template, tried, c.least, c.most)
		}
	}
}
