package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Recurring work whose last success is stored.
const (
	WorkWrite          = "write" // the canary write
	WorkSweep          = "sweep"
	WorkReconciliation = "reconciliation"
	WorkBackup         = "backup"
	WorkArchive        = "archive" // segments of the write-ahead log were stored
	WorkBase           = "base"    // backup of the archive
	WorkRestoreTest    = "restore-test"
	WorkHead           = "head"   // the head of the audit log was sent
	WorkDoctor         = "doctor" // the installation was examined, whatever the findings
)

// NoteSuccess stores that work has succeeded.
func NoteSuccess(ctx context.Context, q Querier, work string, now time.Time) error {
	_, err := q.Exec(ctx, `insert into work_success (work, at) values ($1, $2)
		on conflict (work) do update set at = greatest(work_success.at, excluded.at)`, work, now)
	if err != nil {
		return fmt.Errorf("note the success of %s: %w", work, err)
	}
	return nil
}

// LastSuccesses returns the time of the last success of each work that has ever succeeded.
func LastSuccesses(ctx context.Context, q Querier) (map[string]time.Time, error) {
	rows, err := q.Query(ctx, `select work, at from work_success`)
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	var work string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&work, &at}, func() error {
		all[work] = at
		return nil
	})
	return all, err
}

// ForgetWork removes the time of work that is not done any more, so that no alert waits for it.
func ForgetWork(ctx context.Context, q Querier, works ...string) error {
	_, err := q.Exec(ctx, `delete from work_success where work = any($1)`, works)
	return err
}
