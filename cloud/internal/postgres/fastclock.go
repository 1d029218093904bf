package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// clockJitter is more than the clocks of two replicas differ: each follows that of the database.
	clockJitter = time.Minute
	// longestRetry is more than the delay of any attempt to send a message or to learn the outcome of a payment.
	longestRetry = time.Hour
	// longestHold is more than the life of any hold of a guest or an administrator (config), and correctedHold what is left of one that lasts
	// longer: a guest who is paying keeps it.
	longestHold, correctedHold = time.Hour + clockJitter, 10 * time.Minute
)

// ForgetFuture corrects what was recorded while the clock of the database was ahead, for instance by the nine hours of a machine that keeps
// local time. Work that recurs or is tried again would wait until that time has come: partners would sell times of calendars that are not
// read, the provider's books would not be compared, and no alert would report that a backup is missing. A hold without a payment would block
// its slot. Every correction only makes work begin and holds end earlier, so none does harm if it is the present clock that is wrong.
func ForgetFuture(ctx context.Context, q Querier, now time.Time) error {
	future, late := now.Add(clockJitter), now.Add(longestRetry)
	batch := new(pgx.Batch)
	batch.Queue(`update work_success set at = $1 where at > $2`, now, future)
	batch.Queue(`delete from reconciliation_run where kind in ('light', 'full') and began_at > $1::timestamptz - interval '1 day' and greatest(began_at, completed_at) > $1`, future)
	batch.Queue(`update channel_listing set fetched_at = null where fetched_at > $1`, future)
	batch.Queue(`update message set next_at = $1 where state in ('QUEUED', 'SENDING') and next_at > $2`, now, late)
	batch.Queue(`
		update payment p set check_at = $1 from reservation r
		where r.id = p.reservation_id and r.state = 'CONFIRMING' and p.check_at > $2`, now, late)
	batch.Queue(`update reservation set expires_at = $1 where state = 'HOLD' and source <> 'PARTNER' and quarantine_of is null and expires_at > $2`,
		now.Add(correctedHold), now.Add(longestHold))
	return q.SendBatch(ctx, batch).Close()
}
