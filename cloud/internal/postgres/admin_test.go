package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Every request of an administrator reads the branches of the account. Neither a manager of a few among thousands nor the
// headquarters may cost a look at each of them.
func TestAdministratorByLoginReadsOwnBranches(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, sql := range []string{
		`insert into branch (code) select 'branch-' || n from generate_series(1, 5000) n`,
		`insert into administrator (login_id, password_hash, role) values ('manager', 'x', 'manager'), ('hq', 'x', 'hq')`,
		`insert into administrator_branch (administrator_id, branch_id)
			select a.id, b.id from administrator a, branch b where a.login_id = 'manager' and b.code in ('branch-4000', 'branch-17')`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		read := func() (rows int64) {
			if err := tx.QueryRow(ctx, `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'branch'`).Scan(&rows); err != nil {
				t.Fatal(err)
			}
			return rows
		}
		before := read()
		manager, err := postgres.AdministratorByLogin(ctx, tx, "manager")
		if err != nil {
			return err
		}
		if want := []string{"branch-17", "branch-4000"}; !slices.Equal(manager.Branches, want) {
			t.Errorf("branches %q, want %q", manager.Branches, want)
		}
		if rows := read() - before; rows > 2 {
			t.Errorf("%d branches were read for a manager of two", rows)
		}
		before = read()
		hq, err := postgres.AdministratorByLogin(ctx, tx, "hq")
		if len(hq.Branches) > 0 {
			t.Errorf("the headquarters have %d branches of their own, want none", len(hq.Branches))
		}
		if rows := read() - before; rows > 0 {
			t.Errorf("%d branches were read for the headquarters", rows)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
