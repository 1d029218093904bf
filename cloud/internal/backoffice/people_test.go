package backoffice_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// office is a back office over a restored database, in which 01011112222 has a stay that is over and one tomorrow.
type office struct {
	*testing.T
	*backoffice.Service
	older, newer string // keys
}

const person = "01011112222"

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{T: t, Service: &backoffice.Service{DB: pgtest.New(t)}, older: seal.NewKey(), newer: seal.NewKey()}
	o.useKeys(o.older)
	o.exec(`insert into branch (code) values ('gangnam')`)
	o.exec(`insert into room (branch_id, no) select id, 1 from branch`)
	for _, start := range []string{"now() - interval '10 days'", "now() + interval '1 day'"} {
		o.exec(`
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key)
			select branch_id, id, 'DONE', 'CUSTOMER', s, s + interval '1 hour', tstzrange(s, s + interval '1 hour'), '박지울', '010-1111-2222', '` + person + `'
			from room, (select ` + start + ` as s) s`)
	}
	return o
}

func (o *office) useKeys(setting string) {
	o.Helper()
	keys, err := seal.ParseKeys(setting)
	if err != nil {
		o.Fatal(err)
	}
	o.Keys = keys
	if o.Queue, err = queue.New(o.DB.Pool, keys); err != nil {
		o.Fatal(err)
	}
}

func (o *office) exec(statement string) {
	o.Helper()
	if _, err := o.DB.Pool.Exec(o.Context(), statement); err != nil {
		o.Fatal(err)
	}
}

func (o *office) count(query string) (n int) {
	o.Helper()
	if err := o.DB.Pool.QueryRow(o.Context(), query).Scan(&n); err != nil {
		o.Fatal(err)
	}
	return n
}

// listPerson erases the person, undoes it as the restore of an older backup does, and makes the pseudonym pending.
func (o *office) listPerson() {
	o.Helper()
	if _, _, err := o.Erase(o.Context(), person, "admin:hq"); err != nil {
		o.Fatal(err)
	}
	listed, err := postgres.Erasures(o.Context(), o.DB.Pool)
	if err != nil {
		o.Fatal(err)
	}
	o.exec(`update reservation set name = '박지울', mobile = '010-1111-2222', mobile_key = '` + person + `', anonymised_at = null`)
	if err := postgres.PutPendingErasures(o.Context(), o.DB.Pool, listed); err != nil {
		o.Fatal(err)
	}
}

// eraseAgain runs a pass, after which a number of reservations name the person and a number of persons are pending.
func (o *office) eraseAgain(step string, named, pending int) {
	o.Helper()
	if err := o.EraseAgain(o.Context()); err != nil {
		o.Fatal(err)
	}
	gotNamed, gotPending := o.count(`select count(*) from reservation where name is not null`), o.count(`select count(*) from erasure_pending where true`)
	if gotNamed != named || gotPending != pending {
		o.Fatalf("%s: %d reservations name the person and %d persons are pending, want %d and %d", step, gotNamed, gotPending, named, pending)
	}
}

func TestErasureWaitsForRebuildAndStay(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listPerson()
	if err := o.DB.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	o.eraseAgain("rebuild open", 2, 1)
	if err := postgres.EndRebuild(t.Context(), o.DB.Pool, o.DB.Now()); err != nil {
		t.Fatal(err)
	}
	o.eraseAgain("stay tomorrow", 1, 1)

	o.exec(`insert into guest_block (mobile_key, reason, created_by, created_at) values ('` + person + `', 'x', 'hq', now())`)
	entries := o.count(`select count(*) from audit where true`)
	o.eraseAgain("nothing new is over", 1, 1)
	if o.count(`select count(*) from guest_block where true`) != 1 || o.count(`select count(*) from audit where true`) != entries {
		t.Fatal("a pass without a new end erased again")
	}
	o.exec(`update reservation set state = 'CANCELED', canceled_at = now() where start_at > now()`)
	o.eraseAgain("stay canceled", 0, 0)
}

func TestErasureOutlastsAChangeOfKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listPerson()
	o.useKeys(o.newer + "," + o.older)
	o.eraseAgain("both keys", 1, 1)
	o.useKeys(o.newer) // the old key is removed while the stay is to come
	o.exec(`update reservation set state = 'CANCELED', canceled_at = now() where start_at > now()`)
	o.eraseAgain("new key", 0, 0)
}
