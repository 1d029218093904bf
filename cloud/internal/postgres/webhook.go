package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoWebhook is returned for a webhook that does not exist.
var ErrNoWebhook = errors.New("postgres: no such webhook")

// The deliveries of a webhook that wait are bounded; the rest of the stream waits as events. Those of subjects of which the receiver refuses
// an event count only in maxWaiting, so that some refused events block no other subject.
const (
	maxBacklog = 1000
	maxWaiting = 10 * maxBacklog
)

// Webhook is a receiver of events.
type Webhook struct {
	ID           int64
	URL          string
	Types        []string // empty: all
	Branches     []string // codes; empty: all
	Secret       []byte   // sealed
	CreatedBy    string
	CreatedAt    time.Time
	Enabled      bool
	DisabledAt   *time.Time
	FailingSince *time.Time
	Pending      int
	DeliveredAt  *time.Time // of the last delivery
}

const webhookColumns = `w.id, w.url, w.types, w.branches, w.secret, w.created_by, w.created_at, w.enabled, w.disabled_at, w.failing_since,
	(select count(*) from webhook_delivery d where d.webhook_id = w.id and d.delivered_at is null),
	(select max(delivered_at) from webhook_delivery d where d.webhook_id = w.id)`

// InsertWebhook adds a webhook that receives the events from now on, and returns its id, or ErrNoBranch.
func InsertWebhook(ctx context.Context, q Querier, w Webhook) (id int64, err error) {
	err = q.QueryRow(ctx, `
		insert into webhook (url, types, branches, secret, created_by, created_at, place)
		select $1, $2, $3, $4, $5, $6, place from event_head
		where (select count(*) from branch where code = any($3)) = cardinality($3::text[])
		returning id`, w.URL, w.Types, w.Branches, w.Secret, w.CreatedBy, w.CreatedAt).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoBranch
	}
	return id, err
}

// CountWebhooks returns the number of webhooks, of which none is added before the end of the transaction.
func CountWebhooks(ctx context.Context, tx pgx.Tx) (n int, err error) {
	if _, err := tx.Exec(ctx, `lock table webhook in share row exclusive mode`); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select count(*) from webhook`).Scan(&n)
	return n, err
}

// WebhookCreator returns the principal that added a webhook, or ErrNoWebhook.
func WebhookCreator(ctx context.Context, q Querier, id int64) (by string, err error) {
	err = q.QueryRow(ctx, `select created_by from webhook where id = $1`, id).Scan(&by)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoWebhook
	}
	return by, err
}

// Webhooks returns all webhooks, the newest first.
func Webhooks(ctx context.Context, q Querier) ([]Webhook, error) {
	rows, err := q.Query(ctx, `select `+webhookColumns+` from webhook w order by w.id desc`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Webhook])
}

// DeleteWebhook deletes a webhook with its deliveries, or returns ErrNoWebhook.
func DeleteWebhook(ctx context.Context, q Querier, id int64) error {
	tag, err := q.Exec(ctx, `delete from webhook where id = $1`, id)
	if err != nil || tag.RowsAffected() == 1 {
		return errors.Join(err, endWebhookAlert(ctx, q, id))
	}
	return ErrNoWebhook
}

// EnableWebhook switches a webhook. Waiting events are delivered at once, and their retries last another day. It returns ErrNoWebhook.
func EnableWebhook(ctx context.Context, q Querier, id int64, enabled bool, now time.Time) error {
	tag, err := q.Exec(ctx, `update webhook set enabled = $2, disabled_at = null, retry_at = null, failing_since = null where id = $1`, id, enabled)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return ErrNoWebhook
	}
	if !enabled {
		return nil
	}
	_, err = q.Exec(ctx, `update webhook_delivery set attempts = 0, first_at = null, next_at = $2 where webhook_id = $1 and delivered_at is null`, id, now)
	return errors.Join(err, endWebhookAlert(ctx, q, id))
}

// ReplayWebhook makes a webhook deliver all events after a place once more, and those before it that wait. It returns ErrNoWebhook or ErrEventGone.
func ReplayWebhook(ctx context.Context, tx pgx.Tx, id, after int64) error {
	if _, _, err := Events(ctx, tx, EventFilter{After: after, Limit: 1}); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `update webhook set place = least(place, $2), retry_at = null where id = $1`, id, after)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return ErrNoWebhook
	}
	_, err = tx.Exec(ctx, `delete from webhook_delivery where webhook_id = $1 and place > $2`, id, after)
	return err
}

// DueWebhooks returns the ids of webhooks with something to deliver or to look at, which no process serves.
func DueWebhooks(ctx context.Context, q Querier, now time.Time) ([]int64, error) {
	rows, err := q.Query(ctx, `
		select w.id from webhook w, event_head h
		where w.enabled and coalesce(w.leased_until, '-infinity') < $1 and coalesce(w.retry_at, '-infinity') <= $1
		  and (w.place < h.place or exists (select from webhook_delivery d where d.webhook_id = w.id and d.delivered_at is null and d.next_at <= $1))`, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// LeaseWebhook makes this process the only one that delivers to a webhook until a time. It returns ErrNoWebhook if another
// process does, or if there is nothing to do now.
func LeaseWebhook(ctx context.Context, q Querier, id int64, now, until time.Time) (Webhook, error) {
	rows, err := q.Query(ctx, `
		update webhook w set leased_until = $3
		where w.id = $1 and w.enabled and coalesce(w.leased_until, '-infinity') < $2 and coalesce(w.retry_at, '-infinity') <= $2
		returning `+webhookColumns, id, now, until)
	if err != nil {
		return Webhook{}, err
	}
	w, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Webhook])
	if errors.Is(err, pgx.ErrNoRows) {
		return Webhook{}, ErrNoWebhook
	}
	return w, err
}

// ServesWebhook reports whether a webhook exists, is enabled, and is leased until that time.
func ServesWebhook(ctx context.Context, q Querier, id int64, until time.Time) (serves bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from webhook where id = $1 and enabled and leased_until = $2)`, id, until).Scan(&serves)
	return serves, err
}

// ReleaseWebhook ends a lease. retryAt is the earliest time of the next delivery; zero: at once.
func ReleaseWebhook(ctx context.Context, q Querier, id int64, until, retryAt time.Time) error {
	_, err := q.Exec(ctx, `update webhook set leased_until = null, retry_at = $3 where id = $1 and leased_until = $2`, id, until, null(retryAt))
	return err
}

// FillWebhook turns the next events of the stream into deliveries, unless maxBacklog or maxWaiting of them wait already. body encodes an event.
func (db *DB) FillWebhook(ctx context.Context, w Webhook, body func(Event) (string, error)) error {
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		var place int64
		var backlog, waiting int
		err := tx.QueryRow(ctx, `
			select w.place, d.backlog, d.waiting from webhook w, lateral (
				select count(*) filter (where not refused) as backlog, count(*) as waiting from (
					select bool_or(attempts > 0 and w.failing_since is null) over (partition by subject) as refused
					from webhook_delivery where webhook_id = w.id and delivered_at is null) each) d
			where w.id = $1 for update of w`, w.ID).Scan(&place, &backlog, &waiting)
		if errors.Is(err, pgx.ErrNoRows) { // it was removed meanwhile
			return nil
		}
		free := min(maxBacklog-backlog, maxWaiting-waiting)
		if err != nil || free <= 0 {
			return err
		}
		filter := EventFilter{After: place, Limit: free, Types: w.Types}
		if len(w.Branches) > 0 {
			filter.Branches = w.Branches
		}
		found, next, err := Events(ctx, tx, filter)
		if errors.Is(err, ErrEventGone) { // it was disabled for longer than events are kept
			filter.After = 0
			found, next, err = Events(ctx, tx, filter)
		}
		if err != nil || next == place {
			return err
		}
		batch := new(pgx.Batch)
		for _, e := range found {
			text, err := body(e)
			if err != nil {
				return err
			}
			batch.Queue(`insert into webhook_delivery (webhook_id, place, type, subject, body, next_at) values ($1, $2, $3, $4, $5, $6)
				on conflict do nothing`, w.ID, e.Place, e.Type, e.Subject, text, now)
		}
		batch.Queue(`update webhook set place = $2 where id = $1`, w.ID, next)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Delivery is an event on its way to a receiver.
type Delivery struct {
	Webhook     int64
	Place       int64
	Type        string
	Subject     string
	Body        string
	Attempts    int
	NextAt      time.Time
	FirstAt     *time.Time
	LastAt      *time.Time
	Status      *int
	Error       *string
	DeliveredAt *time.Time
}

const deliveryColumns = `webhook_id, place, type, subject, body, attempts, next_at, first_at, last_at, status, error, delivered_at`

// NextDeliveries returns due deliveries in the order of the stream: of each subject only the first one that waits.
func NextDeliveries(ctx context.Context, q Querier, webhook int64, now time.Time, limit int) ([]Delivery, error) {
	rows, err := q.Query(ctx, `
		select `+deliveryColumns+` from (
			select distinct on (subject) * from webhook_delivery where webhook_id = $1 and delivered_at is null order by subject, place) d
		where next_at <= $2 order by place limit $3`, webhook, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
}

// Deliveries returns the deliveries of a webhook before a place (0: the newest), the newest first, or ErrNoWebhook.
func Deliveries(ctx context.Context, q Querier, webhook, before int64, limit int) ([]Delivery, error) {
	var exists bool
	if err := q.QueryRow(ctx, `select exists (select from webhook where id = $1)`, webhook).Scan(&exists); err != nil {
		return nil, err
	}
	if !exists {
		return nil, ErrNoWebhook
	}
	rows, err := q.Query(ctx, `select `+deliveryColumns+` from webhook_delivery where webhook_id = $1 and ($2::bigint = 0 or place < $2) order by place desc limit $3`, webhook, before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
}

// NoteDelivered records a delivery. If the receiver was away, everything that waits is due at once.
func NoteDelivered(ctx context.Context, q Querier, d Delivery, status int, now time.Time) error {
	_, err := q.Exec(ctx, `
		with delivered as (
			update webhook_delivery set delivered_at = $3, attempts = attempts + 1, first_at = coalesce(first_at, $3), last_at = $3, status = $4, error = null
			where webhook_id = $1 and place = $2),
		recovered as (update webhook set failing_since = null where id = $1 and failing_since is not null returning id)
		update webhook_delivery set next_at = $3 where webhook_id = (select id from recovered) and delivered_at is null and place <> $2 and next_at > $3`,
		d.Webhook, d.Place, now, status)
	return err
}

// NoteUndelivered records a failed attempt and the time of the next one. status is 0 without an answer.
func NoteUndelivered(ctx context.Context, q Querier, d Delivery, status int, problem string, now, next time.Time) error {
	_, err := q.Exec(ctx, `
		update webhook_delivery set attempts = attempts + 1, first_at = coalesce(first_at, $3), last_at = $3, next_at = $4, status = nullif($5, 0), error = $6
		where webhook_id = $1 and place = $2`, d.Webhook, d.Place, now, next, status, problem)
	return err
}

// NoteReceiverAway records since when a receiver does not answer.
func NoteReceiverAway(ctx context.Context, q Querier, webhook int64, now time.Time) error {
	_, err := q.Exec(ctx, `update webhook set failing_since = coalesce(failing_since, $2) where id = $1`, webhook, now)
	return err
}

// DisableWebhook disables a webhook whose deliveries failed for too long, and raises an alert.
func DisableWebhook(ctx context.Context, q Querier, id int64, now time.Time) error {
	_, err := q.Exec(ctx, `
		with disabled as (update webhook set enabled = false, disabled_at = $2 where id = $1 and enabled returning id)
		select alert_open('webhook-disabled', '', $3, $2) from disabled`, id, now, webhookSubject(id))
	return err
}

func endWebhookAlert(ctx context.Context, q Querier, id int64) error {
	_, err := q.Exec(ctx, `select alert_end('webhook-disabled', '', $1, clock_timestamp())`, webhookSubject(id))
	return err
}

func webhookSubject(id int64) string { return "webhook:" + strconv.FormatInt(id, 10) }

// PurgeDeliveries deletes deliveries that were made before a time.
func PurgeDeliveries(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from webhook_delivery where delivered_at < $1`, before)
	return err
}
