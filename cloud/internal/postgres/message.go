package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

const selectMessage = `
	select id, created_at, reservation_id, branch_id, template, language, to_mobile, to_email, variables,
	       state, channel, provider_id, attempt, doubtful, sent_at, error
	from message `

func scanMessage(row pgx.CollectableRow) (booking.Message, error) {
	var (
		m                     booking.Message
		reservation           *booking.ReservationID
		branch                *booking.BranchID
		channel, provider, ex *string
		sent                  *time.Time
	)
	err := row.Scan(&m.ID, &m.CreatedAt, &reservation, &branch, &m.Template, &m.Language, &m.Mobile, &m.Email, &m.Variables,
		&m.State, &channel, &provider, &m.Attempt, &m.Doubtful, &sent, &ex)
	m.Reservation, m.Branch = value(reservation), value(branch)
	m.Channel, m.ProviderID, m.Error, m.SentAt = value(channel), value(provider), value(ex), value(sent)
	return m, err
}

// InsertMessage writes a message down in the transaction that makes it necessary.
func InsertMessage(ctx context.Context, q Querier, m booking.Message) (int64, error) {
	var id int64
	err := q.QueryRow(ctx, `
		insert into message (reservation_id, branch_id, template, language, to_mobile, to_email, variables)
		values ($1, $2, $3, $4, $5, $6, $7) returning id`,
		null(m.Reservation), null(m.Branch), m.Template, m.Language, m.Mobile, m.Email, m.Variables).Scan(&id)
	return id, err
}

// MaxMessageAttempts bounds how often one message is tried.
const MaxMessageAttempts = 8

// maxDoubtful is how many attempts may leave nobody knowing whether the person was told: at least once, at most twice.
const maxDoubtful = 2

// ClaimMessage takes a message that is due for one attempt, or returns booking.ErrNoMessage. A sender that died in the
// middle leaves SENDING behind; after lease the message is taken again. Until its outcome is known the attempt counts
// as one that may have reached the person.
func ClaimMessage(ctx context.Context, q Querier, id int64, now time.Time, lease time.Duration) (booking.Message, error) {
	rows, err := q.Query(ctx, `
		update message set state = 'SENDING', attempt = attempt + 1, doubtful = doubtful + 1, next_at = $3
		where id = $1 and state in ('QUEUED', 'SENDING') and next_at <= $2 and doubtful < $4
		returning id, created_at, reservation_id, branch_id, template, language, to_mobile, to_email, variables,
		          state, channel, provider_id, attempt, doubtful, sent_at, error`, id, now, now.Add(lease), maxDoubtful)
	if err != nil {
		return booking.Message{}, err
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanMessage)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, booking.ErrNoMessage
	}
	return m, err
}

// MarkMessageSent notes that a provider took the message.
func MarkMessageSent(ctx context.Context, q Querier, id int64, channel, providerID string, now time.Time) error {
	_, err := q.Exec(ctx, `
		update message set state = 'SENT', channel = $2, provider_id = $3, sent_at = $4, error = null where id = $1`,
		id, channel, null(providerID), now)
	return err
}

// ClearMessageDoubt notes that no earlier attempt has reached the person: only the one under way may still.
func ClearMessageDoubt(ctx context.Context, q Querier, id int64) error {
	_, err := q.Exec(ctx, `update message set doubtful = 1 where id = $1 and state = 'SENDING'`, id)
	return err
}

// MarkMessageFailed notes why an attempt failed; a zero retryAt gives up. doubtful: it may have reached the person
// all the same.
func MarkMessageFailed(ctx context.Context, q Querier, id int64, why string, doubtful bool, retryAt time.Time) error {
	_, err := q.Exec(ctx, `
		update message set error = $2, next_at = coalesce($3, next_at), doubtful = case when $4 then doubtful else doubtful - 1 end,
		       state = case when $3::timestamptz is null or $4 and doubtful >= $5 then 'FAILED' else 'QUEUED' end
		where id = $1`, id, why, null(retryAt), doubtful, maxDoubtful)
	return err
}

// GiveUpMessages closes messages whose senders died twice: one more attempt could be a third message.
func GiveUpMessages(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		update message set state = 'FAILED', error = 'sent twice with unknown outcome'
		where state = 'SENDING' and next_at <= $1 and doubtful >= $2`, now, maxDoubtful)
	return err
}

// CountMessages returns how many messages there are about a reservation.
func CountMessages(ctx context.Context, q Querier, id booking.ReservationID) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from message where reservation_id = $1`, id).Scan(&n)
	return n, err
}

// DueMessages returns messages that nobody is sending though they are due: what the sweep finds when the queue forgot.
func DueMessages(ctx context.Context, q Querier, now time.Time, limit int) ([]int64, error) {
	rows, err := q.Query(ctx, `
		select id from message where state in ('QUEUED', 'SENDING') and next_at <= $1 order by next_at limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
