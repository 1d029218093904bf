package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Handover is a note from one shift to the next.
type Handover struct {
	ID     int64
	Text   string
	By     string
	At     time.Time
	DoneBy *string
	DoneAt *time.Time
}

// HandoversOf returns the open notes of a branch and those done after a moment: open ones first, then the latest first.
func HandoversOf(ctx context.Context, q Querier, branch booking.BranchID, after time.Time, limit int) ([]Handover, error) {
	rows, err := q.Query(ctx, `
		select id, text, created_by, created_at, done_by, done_at from handover
		where branch_id = $1 and (done_at is null or done_at > $2)
		order by done_at is not null, created_at desc, id desc limit $3`, branch, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Handover])
}

// AddHandover stores an open note of a branch and returns its id.
func AddHandover(ctx context.Context, q Querier, branch booking.BranchID, text, by string, at time.Time) (id int64, err error) {
	err = q.QueryRow(ctx, `insert into handover (branch_id, text, created_by, created_at) values ($1, $2, $3, $4) returning id`,
		branch, text, by, at).Scan(&id)
	return id, err
}

// SetHandoverDone records who has done a note of a branch and when; an empty by opens it again. It reports whether the note
// exists. The first administrator who has done a note stays.
func SetHandoverDone(ctx context.Context, q Querier, branch booking.BranchID, id int64, by string, at time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		update handover set done_by = case when $3 <> '' then coalesce(done_by, $3) end,
		                    done_at = case when $3 <> '' then coalesce(done_at, $4::timestamptz) end
		where id = $2 and branch_id = $1`, branch, id, by, at)
	return tag.RowsAffected() > 0, err
}
