package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ArrivalSteps returns the steps of a branch in their order.
func ArrivalSteps(ctx context.Context, q Querier, branch booking.BranchID) ([]booking.ArrivalStep, error) {
	rows, err := q.Query(ctx, `
		select s.id, s.text_ko, s.text_en,
		       (select coalesce(json_agg(json_build_object('Name', f.name, 'Width', f.width, 'Height', f.height) order by f.width), '[]')
		        from arrival_photo_file f where f.step_id = s.id)
		from arrival_step s where s.branch_id = $1 order by s.position`, branch)
	if err != nil {
		return nil, fmt.Errorf("arrival steps: %w", err)
	}
	steps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s booking.ArrivalStep, err error) {
		err = row.Scan(&s.ID, &s.Text.Ko, &s.Text.En, &s.Files)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("arrival steps: %w", err)
	}
	return steps, nil
}

// LockArrival locks the steps of a branch against other changes and returns their ids in order.
func LockArrival(ctx context.Context, tx pgx.Tx, branch booking.BranchID) ([]int64, error) {
	if _, err := tx.Exec(ctx, `select from branch where id = $1 for no key update`, branch); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select id from arrival_step where branch_id = $1 order by position`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// AddArrivalStep adds a step without a photo at a position.
func AddArrivalStep(ctx context.Context, q Querier, branch booking.BranchID, position int, text booking.Bilingual) (id int64, err error) {
	err = q.QueryRow(ctx, `insert into arrival_step (branch_id, position, text_ko, text_en) values ($1, $2, $3, $4) returning id`,
		branch, position, text.Ko, text.En).Scan(&id)
	return id, err
}

// AddArrivalFile stores a file of a step's photo.
func AddArrivalFile(ctx context.Context, q Querier, step int64, f StoredPhoto) error {
	_, err := q.Exec(ctx, `insert into arrival_photo_file (step_id, name, width, height, data, webp, avif) values ($1, $2, $3, $4, $5, $6, $7)`,
		step, f.Name, f.Width, f.Height, f.Data, f.WebP, f.AVIF)
	return err
}

// PutArrivalText replaces the text of a step.
func PutArrivalText(ctx context.Context, q Querier, step int64, text booking.Bilingual) error {
	_, err := q.Exec(ctx, `update arrival_step set text_ko = $2, text_en = $3 where id = $1`, step, text.Ko, text.En)
	return err
}

// PutArrivalOrder numbers the steps of a branch and deletes those that are not in the list.
func PutArrivalOrder(ctx context.Context, q Querier, branch booking.BranchID, steps []int64) error {
	if _, err := q.Exec(ctx, `delete from arrival_step where branch_id = $1 and id <> all($2)`, branch, steps); err != nil {
		return err
	}
	_, err := q.Exec(ctx, `
		update arrival_step s set position = o.position from unnest($2::bigint[]) with ordinality o (id, position)
		where s.id = o.id and s.branch_id = $1`, branch, steps)
	return err
}
