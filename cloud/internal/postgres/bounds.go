package postgres

import (
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Limits of booking as SQL.
var (
	maxLength  = interval(booking.MaxLength)
	unlockLead = interval(booking.UnlockLead)
)

// interval returns whole seconds as SQL.
func interval(d time.Duration) string { return fmt.Sprintf("interval '%d seconds'", d/time.Second) }

// overlaps is the condition that a reservation overlaps the time between two expressions. A reservation is at most maxLength long, so its start
// alone bounds the scan of the index reservation_by_time.
func overlaps(reservation, from, until string) string {
	return fmt.Sprintf("%[1]s.start_at < %[3]s and %[1]s.end_at > %[2]s and %[1]s.start_at > %[2]s::timestamptz - %[4]s",
		reservation, from, until, maxLength)
}
