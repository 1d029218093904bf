package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func chained(t *testing.T, n int) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	for i := range n {
		err := postgres.AppendAudit(t.Context(), db.Pool, audit.Entry{
			Actor: "admin:hq", Action: "room.switch", Target: fmt.Sprint(i), Detail: map[string]any{"enabled": i%2 == 0, "note": "가"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if linked, err := db.ChainAudit(t.Context()); err != nil || linked != n {
		t.Fatalf("linked %d: %v", linked, err)
	}
	return db
}

func TestAuditChainHolds(t *testing.T) {
	t.Parallel()
	db := chained(t, 5)
	head, unlinked, err := postgres.VerifyAudit(t.Context(), db.Pool, postgres.AuditHead{})
	if err != nil || head.Place != 5 || unlinked != 0 {
		t.Fatalf("%+v, %d unlinked: %v", head, unlinked, err)
	}
	if err := postgres.AppendAudit(t.Context(), db.Pool, audit.Entry{Actor: "system", Action: "door.unlock"}); err != nil {
		t.Fatal(err)
	}
	if _, unlinked, err = postgres.VerifyAudit(t.Context(), db.Pool, head); err != nil || unlinked != 1 {
		t.Fatalf("%d unlinked: %v", unlinked, err)
	}
}

// A database superuser disables the triggers and rewrites entries to hide a change.
func TestAuditChainTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, deed := range map[string]string{
		"changed":      `update audit set actor = 'admin:somebody' where place = 3`,
		"detail":       `update audit set detail = '{"enabled": false}' where place = 1`,
		"removed":      `delete from audit where place = 3`,
		"cut off":      `delete from audit where place >= 4`,
		"exchanged":    `update audit set place = case place when 2 then 102 else 103 end where place in (2, 3); update audit set place = case place when 102 then 3 else 2 end where place > 100`,
		"moved to now": `update audit set at = at + interval '1 second' where place = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := chained(t, 5)
			head, _, err := postgres.VerifyAudit(t.Context(), db.Pool, postgres.AuditHead{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, db.Pool, `alter table audit disable trigger all`)
			exec(t, db.Pool, deed)
			var broken *postgres.AuditBroken
			if _, _, err := postgres.VerifyAudit(t.Context(), db.Pool, head); !errors.As(err, &broken) {
				t.Fatalf("not noticed: %v", err)
			}
		})
	}
}

func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	db := chained(t, 2)
	for _, deed := range []string{
		`update audit set actor = 'x' where place = $1`,
		`update audit set place = null, hash = null where place = $1`,
		`delete from audit where place = $1`,
	} {
		if _, err := db.Pool.Exec(t.Context(), deed, 1); err == nil {
			t.Errorf("allowed: %s", deed)
		}
	}
}

func TestReplicasChainOneAfterTheOther(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 25 {
				err := postgres.AppendAudit(t.Context(), db.Pool, audit.Entry{Actor: fmt.Sprint(worker), Action: "a.b", Target: fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
				}
				if _, err := db.ChainAudit(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if _, err := db.ChainAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	head, unlinked, err := postgres.VerifyAudit(t.Context(), db.Pool, postgres.AuditHead{})
	if err != nil || head.Place != 100 || unlinked != 0 {
		t.Fatalf("%+v, %d unlinked: %v", head, unlinked, err)
	}
}
