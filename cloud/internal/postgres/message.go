package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

const selectMessage = `
	select id, created_at, reservation_id, branch_id, template, language, to_mobile, to_email, medium, variables,
	       state, channel, attempt, doubtful, sent_at, error
	from message `

func scanMessage(row pgx.CollectableRow) (booking.Message, error) {
	var (
		m           booking.Message
		reservation *booking.ReservationID
		branch      *booking.BranchID
		channel, ex *string
		sent        *time.Time
	)
	err := row.Scan(&m.ID, &m.CreatedAt, &reservation, &branch, &m.Template, &m.Language, &m.Mobile, &m.Email, &m.Medium, &m.Variables,
		&m.State, &channel, &m.Attempt, &m.Doubtful, &sent, &ex)
	m.Reservation, m.Branch = value(reservation), value(branch)
	m.Channel, m.Error, m.SentAt = value(channel), value(ex), value(sent)
	return m, err
}

// InsertMessage queues a message in the transaction that requires it.
func InsertMessage(ctx context.Context, q Querier, m booking.Message) (int64, error) {
	var id int64
	err := q.QueryRow(ctx, `
		insert into message (reservation_id, branch_id, template, language, to_mobile, to_email, medium, variables)
		values ($1, $2, $3, $4, $5, $6, $7, $8) returning id`,
		null(m.Reservation), null(m.Branch), m.Template, m.Language, m.Mobile, m.Email, m.Medium, m.Variables).Scan(&id)
	return id, err
}

// ClaimMessage claims a due message for one attempt, or returns booking.ErrNoMessage. A sender that crashed leaves
// the state SENDING; after the lease the message can be claimed again. Until its outcome is known, the first attempt counts
// as one that may have reached the recipient; later ones count from [DoubtMessage] on. Doubtful of the returned message is
// the number of earlier attempts that may have. A message whose row is locked by another transaction is not claimed; the sweep
// finds it. Neither is one while an earlier message about its reservation is due or being sent: the last message that a
// guest receives is the latest one, and its key opens the doors.
//
// Concurrent claims are one statement. BenchmarkMessages: 64 senders change the database 0.1 times for each message instead of twice.
func (db *DB) ClaimMessage(ctx context.Context, id int64, now time.Time, lease time.Duration) (booking.Message, error) {
	m, err := db.claims.Do(ctx, messageClaim{id, now, now.Add(lease)}, db.claimMessages)
	if err == nil && m.ID == 0 {
		err = booking.ErrNoMessage
	}
	return m, err
}

type messageClaim struct {
	id         int64
	now, until time.Time
}

// claimMessages claims messages. The first of several claims of a message gets it; the answer to the others is empty.
func (db *DB) claimMessages(ctx context.Context, claims []messageClaim) ([]booking.Message, error) {
	answers, position := make([]booking.Message, len(claims)), map[int64]int{}
	var first []messageClaim
	for i, c := range claims {
		if _, again := position[c.id]; !again {
			position[c.id] = i
			first = append(first, c)
		}
	}
	rows, err := db.Pool.Query(ctx, `
		with due as (
			select m.id, m.doubtful, c.until
			from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) as c (id, now, until) join message m on m.id = c.id
			where m.state in ('QUEUED', 'SENDING') and m.next_at <= c.now and not exists (
				select from message e where e.reservation_id = m.reservation_id and e.id < m.id
				   and (e.state = 'SENDING' or e.state = 'QUEUED' and e.next_at <= c.now))
			for update of m skip locked)
		update message m set state = 'SENDING', attempt = attempt + 1, doubtful = greatest(m.doubtful, 1), next_at = due.until
		from due where m.id = due.id
		returning m.id, created_at, reservation_id, branch_id, template, language, to_mobile, to_email, medium, variables,
		          state, channel, attempt, due.doubtful, sent_at, error`,
		array(first, func(c messageClaim) int64 { return c.id }),
		array(first, func(c messageClaim) time.Time { return c.now }),
		array(first, func(c messageClaim) time.Time { return c.until }))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, scanMessage)
	for _, m := range found {
		answers[position[m.ID]] = m
	}
	return answers, err
}

// MarkMessageSent records that a provider accepted the message. Concurrent calls are one statement.
func (db *DB) MarkMessageSent(ctx context.Context, id int64, channel, providerID string, now time.Time) error {
	_, err := db.sent.Do(ctx, sentMessage{id, channel, providerID, now}, db.markMessagesSent)
	return err
}

type sentMessage struct {
	id                  int64
	channel, providerID string
	at                  time.Time
}

func (db *DB) markMessagesSent(ctx context.Context, sent []sentMessage) ([]struct{}, error) {
	_, err := db.Pool.Exec(ctx, `
		update message m set state = 'SENT', channel = s.channel, provider_id = nullif(s.provider, ''), sent_at = s.at, error = null
		from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[]) as s (id, channel, provider, at) where m.id = s.id`,
		array(sent, func(s sentMessage) int64 { return s.id }),
		array(sent, func(s sentMessage) string { return s.channel }),
		array(sent, func(s sentMessage) string { return s.providerID }),
		array(sent, func(s sentMessage) time.Time { return s.at }))
	return make([]struct{}, len(sent)), err
}

// DoubtMessage records how many attempts may have reached the recipient, the current one included.
func DoubtMessage(ctx context.Context, q Querier, id int64, doubtful int) error {
	_, err := q.Exec(ctx, `update message set doubtful = $2 where id = $1 and state = 'SENDING'`, id, doubtful)
	return err
}

// MarkMessageFailed records why an attempt failed, and how many attempts may have reached the recipient; a zero retryAt gives up.
func MarkMessageFailed(ctx context.Context, q Querier, id int64, why string, doubtful int, retryAt time.Time) error {
	_, err := q.Exec(ctx, `
		update message set error = $2, next_at = coalesce($3, next_at), doubtful = $4,
		       state = case when $3::timestamptz is null then 'FAILED' else 'QUEUED' end
		where id = $1`, id, why, null(retryAt), doubtful)
	return err
}

// NextMessage returns the message about a reservation that waited for another one, or 0 if none did.
func NextMessage(ctx context.Context, q Querier, sent booking.Message, now time.Time) (id int64, err error) {
	err = q.QueryRow(ctx, `
		select coalesce(min(id), 0) from message where reservation_id = $1 and id > $2 and state = 'QUEUED' and next_at <= $3`,
		null(sent.Reservation), sent.ID, now).Scan(&id)
	return id, err
}

// CountMessages returns the number of messages about a reservation.
func CountMessages(ctx context.Context, q Querier, id booking.ReservationID) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from message where reservation_id = $1`, id).Scan(&n)
	return n, err
}

// LatestMessageState returns the state of the latest message of some templates about a reservation, empty if there is none, and the
// channel by which it was sent.
func LatestMessageState(ctx context.Context, q Querier, id booking.ReservationID, templates []string) (state booking.MessageState, channel string, err error) {
	err = q.QueryRow(ctx, `
		select state, coalesce(channel, '') from message where reservation_id = $1 and template = any($2) order by id desc limit 1`,
		id, templates).Scan(&state, &channel)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", nil
	}
	return state, channel, err
}

// DueMessages returns due messages that no sender has claimed, for the sweep.
func DueMessages(ctx context.Context, q Querier, now time.Time, limit int) ([]int64, error) {
	rows, err := q.Query(ctx, `
		select id from message where state in ('QUEUED', 'SENDING') and next_at <= $1 order by next_at limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// DropMessages ends the messages of a reservation, and of its extensions and exchanges with the same contact, that wait to be sent, because
// their recipient is not the guest. It returns those with some templates, oldest first. One that a sender has claimed may still be sent, but
// is not tried again (see [StillDue]); it is returned, too, if it goes to another number or address.
func DropMessages(ctx context.Context, q Querier, id booking.ReservationID, templates []string) ([]booking.Message, error) {
	rows, err := q.Query(ctx, `
		with waiting as (
			select m.id, (m.to_mobile, m.to_email) is distinct from (coalesce(r.mobile, ''), coalesce(r.email, '')) as moved
			from reservation r join reservation e on e.id = r.id or e.extends = r.id or e.replaces = r.id join message m on m.reservation_id = e.id
			where r.id = $1 and (e.mobile_key, e.email_key) is not distinct from (r.mobile_key, r.email_key) and m.state in ('QUEUED', 'SENDING')),
		dropped as (
			update message set state = 'FAILED', error = 'the contact was corrected'
			where id in (select id from waiting) and state = 'QUEUED' returning id)`+
		selectMessage+`where id in (select id from dropped union all select id from waiting where moved) and template = any($2) order by id`, id, templates)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanMessage)
}
