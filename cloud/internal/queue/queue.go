// Package queue puts background work into PostgreSQL, in the transaction that makes it necessary: the work exists
// if and only if the change was committed.
//
// It is the inserting half of River. The working half is package jobs, which stands above the verbs it calls; this
// one stands below them. A job is a hint, not a state: what is to be done is in the rows, and a sweep that does not
// trust the queue looks at them too.
package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// SendMessage sends one message of the table of the same name.
type SendMessage struct {
	MessageID int64 `json:"messageId"`
}

// Kind implements river.JobArgs.
func (SendMessage) Kind() string { return "send-message" }

// Messages is the queue of messages. They have workers of their own, so that they do not wait for a payment provider that
// hangs.
const Messages = "messages"

// InsertOpts implements river.JobArgsWithInsertOpts.
func (SendMessage) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Messages} }

// Settle asks the provider about a reservation whose money is not settled and acts on the answer.
type Settle struct {
	ReservationID int64 `json:"reservationId"`
}

// Kind implements river.JobArgs.
func (Settle) Kind() string { return "settle" }

// SyncChannel brings a block at a partner channel in line with what we want there.
type SyncChannel struct {
	BlockID int64 `json:"blockId"`
}

// Kind implements river.JobArgs.
func (SyncChannel) Kind() string { return "sync-channel" }

// messagePurpose is what message variables are sealed for.
const messagePurpose = "message"

// Queue inserts jobs.
type Queue struct {
	client *river.Client[pgx.Tx]
	keys   *seal.Keyring
}

// New makes a queue that inserts through transactions of the pool's database.
func New(pool *pgxpool.Pool, keys *seal.Keyring) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Queue{client: client, keys: keys}, nil
}

// Message is a message to be written down and sent after the commit. It goes to the mobile number or, without one,
// to the e-mail address; without both nobody is told.
type Message struct {
	Reservation booking.ReservationID // 0: none
	Branch      booking.BranchID      // 0: none
	Template    string
	Language    string // ko or en; empty is ko
	Mobile      string
	Email       string
	Variables   map[string]string
}

// Message enqueues a message. Its variables, which may hold keys and codes, are sealed.
func (q *Queue) Message(ctx context.Context, tx pgx.Tx, m Message) error {
	if m.Mobile == "" && m.Email == "" {
		return nil
	}
	variables, err := json.Marshal(m.Variables)
	if err != nil {
		return err
	}
	language := m.Language
	if language == "" {
		language = "ko"
	}
	id, err := postgres.InsertMessage(ctx, tx, booking.Message{
		Reservation: m.Reservation, Branch: m.Branch, Template: m.Template, Language: language,
		Mobile: m.Mobile, Email: m.Email, Variables: q.keys.Seal(messagePurpose, variables),
	})
	if err != nil {
		return fmt.Errorf("queue: message %s: %w", m.Template, err)
	}
	return q.insert(ctx, tx, SendMessage{MessageID: id}, time.Time{})
}

// Variables opens the variables of a stored message.
func (q *Queue) Variables(m booking.Message) (map[string]string, error) {
	plain, err := q.keys.Open(messagePurpose, m.Variables)
	if err != nil {
		return nil, err
	}
	var variables map[string]string
	return variables, json.Unmarshal(plain, &variables)
}

// NoVariables are the variables of a message whose text is forgotten.
func (q *Queue) NoVariables() []byte { return q.keys.Seal(messagePurpose, []byte("{}")) }

// Settle has a reservation looked at, not before at.
func (q *Queue) Settle(ctx context.Context, tx pgx.Tx, id booking.ReservationID, at time.Time) error {
	return q.insert(ctx, tx, Settle{ReservationID: int64(id)}, at)
}

// SyncChannel has a block brought in line.
func (q *Queue) SyncChannel(ctx context.Context, tx pgx.Tx, block int64) error {
	return q.insert(ctx, tx, SyncChannel{BlockID: block}, time.Time{})
}

func (q *Queue) insert(ctx context.Context, tx pgx.Tx, args river.JobArgs, at time.Time) error {
	if _, err := q.client.InsertTx(ctx, tx, args, &river.InsertOpts{ScheduledAt: at}); err != nil {
		return fmt.Errorf("queue: %s: %w", args.Kind(), err)
	}
	return nil
}
