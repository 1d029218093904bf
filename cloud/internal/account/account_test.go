package account_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// desk is an account service over a database of its own, with a clock that tests set.
type desk struct {
	*testing.T
	*account.Service
	queue *queue.Queue
	clock atomic.Int64 // nanoseconds
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db := pgtest.New(t)
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := queue.New(db.Pool, keys)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, queue: messages}
	d.clock.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano())
	db.Now = func() time.Time { return time.Unix(0, d.clock.Load()).UTC() }
	d.Service = &account.Service{
		DB: db, Limits: &limit.Limiter{DB: db}, Queue: messages, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Keys: keys, CodeKey: []byte("a key of tests"), CodeTTL: 3 * time.Minute,
	}
	return d
}

func (d *desk) pass(by time.Duration) { d.clock.Add(int64(by)) }

// branch creates a branch with one room and returns the room's id.
func (d *desk) branch(code string) booking.RoomID {
	d.Helper()
	var batch postgres.BranchBatch
	if err := batch.PutBranch(booking.Branch{Code: code, Zone: time.UTC, Horizon: booking.DefaultHorizon, FrontDoors: []string{"front_1"}}, false); err != nil {
		d.Fatal(err)
	}
	batch.PutRoom(code, booking.Room{No: 1, Enabled: true})
	err := d.DB.InTx(d.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return batch.Run(ctx, tx) })
	if err != nil {
		d.Fatal(err)
	}
	b, err := d.DB.Branch(d.Context(), code)
	if err != nil {
		d.Fatal(err)
	}
	return b.Rooms[0].ID
}

// guest inserts a paid reservation for a contact.
func (d *desk) guest(mobile, email string) {
	d.Helper()
	room := d.branch("b" + booking.NormalizePhone(mobile))
	_, err := d.DB.Pool.Exec(d.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, mobile, email, mobile_key, email_key, method)
		select branch_id, id, 'DONE', 'CUSTOMER', $2, $3, tstzrange($2, $4), $5, $6, $7, $8, '카드' from room where id = $1`,
		room, d.DB.Now(), d.DB.Now().Add(time.Hour), d.DB.Now().Add(70*time.Minute),
		mobile, email, booking.NormalizePhone(mobile), booking.NormalizeEmail(email))
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) send(c account.Customer) {
	d.Helper()
	if err := d.SendCode(d.Context(), c, account.Browser{Client: "203.0.113.7"}, "ko"); err != nil {
		d.Fatal(err)
	}
}

// sent returns all enqueued messages, oldest first, with their variables.
func (d *desk) sent() (messages []booking.Message, variables []map[string]string) {
	d.Helper()
	rows, err := d.DB.Pool.Query(d.Context(), `select to_mobile, to_email, template, language, variables from message order by id`)
	if err != nil {
		d.Fatal(err)
	}
	messages, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m booking.Message, err error) {
		err = row.Scan(&m.Mobile, &m.Email, &m.Template, &m.Language, &m.Variables)
		return m, err
	})
	if err != nil {
		d.Fatal(err)
	}
	for _, m := range messages {
		v, err := d.queue.Variables(m)
		if err != nil {
			d.Fatal(err)
		}
		variables = append(variables, v)
	}
	return messages, variables
}

// code returns the code in the latest message.
func (d *desk) code() string {
	d.Helper()
	_, variables := d.sent()
	if len(variables) == 0 {
		d.Fatal("no code was sent")
	}
	return variables[len(variables)-1]["code"]
}

// other returns a code that differs from code.
func other(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}
