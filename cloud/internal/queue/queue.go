// Package queue inserts background jobs into PostgreSQL in the transaction that requires them: the job exists if and only if
// the change was committed.
//
// It is the inserting half of River. Package jobs, which depends on this one, executes the jobs. A job is a hint, not a
// state: the rows define what has to be done, and a periodic sweep finds work whose job is missing.
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

// SendMessage sends the message with the given id.
type SendMessage struct {
	MessageID int64 `json:"messageId"`
}

// Kind implements river.JobArgs.
func (SendMessage) Kind() string { return "send-message" }

// Messages is the queue of messages. It has workers of its own, so that messages do not wait for a slow payment provider.
const Messages = "messages"

// InsertOpts implements river.JobArgsWithInsertOpts.
func (SendMessage) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Messages} }

// Settle queries the provider about a reservation whose payment is not settled, and acts on the answer.
type Settle struct {
	ReservationID int64 `json:"reservationId"`
}

// Kind implements river.JobArgs.
func (Settle) Kind() string { return "settle" }

// CashReceipt takes the next step of a reservation's cash receipt.
type CashReceipt struct {
	ReservationID int64 `json:"reservationId"`
}

// Kind implements river.JobArgs.
func (CashReceipt) Kind() string { return "cash-receipt" }

// SyncChannel updates a block at a partner channel to its wanted state.
type SyncChannel struct {
	BlockID int64 `json:"blockId"`
}

// Kind implements river.JobArgs.
func (SyncChannel) Kind() string { return "sync-channel" }

// messagePurpose is the seal purpose of message variables.
const messagePurpose = "message"

// Queue inserts jobs.
type Queue struct {
	client *river.Client[pgx.Tx]
	keys   *seal.Keyring
}

// New returns a queue for the database of the pool.
func New(pool *pgxpool.Pool, keys *seal.Keyring) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Queue{client: client, keys: keys}, nil
}

// Message is a message to store and to send after the commit. It goes to the mobile number or, without one, to the e-mail
// address. Without either, one about a reservation is stored, so that its failure is shown, and any other is dropped.
type Message struct {
	Reservation booking.ReservationID // 0: none
	Branch      booking.BranchID      // 0: none
	Template    string
	Language    string // ko or en; empty is ko
	Mobile      string
	Email       string
	Medium      string // a notify.Channel that is required; empty: any. The address of a webhook is the variable Address.
	Variables   map[string]string
}

// Address is the variable of a message that holds the address of its webhook.
const Address = "address"

// Message stores and enqueues a message. Its variables are sealed, because they may hold keys and codes.
func (q *Queue) Message(ctx context.Context, tx pgx.Tx, m Message) error {
	if m.Reservation == 0 && m.Mobile == "" && m.Email == "" && m.Variables[Address] == "" {
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
		Mobile: m.Mobile, Email: m.Email, Medium: m.Medium, Variables: q.keys.Seal(messagePurpose, variables),
	})
	if err != nil {
		return fmt.Errorf("queue: message %s: %w", m.Template, err)
	}
	return q.insert(ctx, tx, SendMessage{MessageID: id}, time.Time{})
}

// Variables decrypts the variables of a stored message.
func (q *Queue) Variables(m booking.Message) (map[string]string, error) {
	plain, err := q.keys.Open(messagePurpose, m.Variables)
	if err != nil {
		return nil, err
	}
	var variables map[string]string
	return variables, json.Unmarshal(plain, &variables)
}

// NoVariables returns the sealed value of a message without variables, which replaces the variables of an erased message.
func (q *Queue) NoVariables() []byte { return q.keys.Seal(messagePurpose, []byte("{}")) }

// Settle enqueues a check of a reservation's payment, not before at.
func (q *Queue) Settle(ctx context.Context, tx pgx.Tx, id booking.ReservationID, at time.Time) error {
	return q.insert(ctx, tx, Settle{ReservationID: int64(id)}, at)
}

// CashReceipt enqueues the next step of a reservation's cash receipt, not before at.
func (q *Queue) CashReceipt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, at time.Time) error {
	return q.insert(ctx, tx, CashReceipt{ReservationID: int64(id)}, at)
}

// SyncChannel enqueues the update of a block.
func (q *Queue) SyncChannel(ctx context.Context, tx pgx.Tx, block int64) error {
	return q.insert(ctx, tx, SyncChannel{BlockID: block}, time.Time{})
}

func (q *Queue) insert(ctx context.Context, tx pgx.Tx, args river.JobArgs, at time.Time) error {
	if _, err := q.client.InsertTx(ctx, tx, args, &river.InsertOpts{ScheduledAt: at}); err != nil {
		return fmt.Errorf("queue: %s: %w", args.Kind(), err)
	}
	return nil
}
