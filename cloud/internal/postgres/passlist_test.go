package postgres_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// keypadAgent is an agent that has lists of passes, in a database.
type keypadAgent struct {
	*testing.T
	db      *postgres.DB
	keys    *seal.Keyring
	sealKey []byte
	stay    time.Time
}

func newKeypadAgent(t *testing.T) *keypadAgent {
	db, keys := passFixture(t)
	exec(t, db.Pool, `update branch set keypads = '{"room_1": "agent"}'`)
	exec(t, db.Pool, `insert into agent_credential (username, branch_id, secret_hash, active) values ('agent-gangnam', 1, '', true)`)
	return &keypadAgent{t, db, keys, []byte("the first key of this machine..."), time.Now().Truncate(10 * time.Minute)}
}

// list has the database prepare the list that the agent must hold.
func (a *keypadAgent) list() (l postgres.List) {
	a.Helper()
	err := pgx.BeginFunc(a.Context(), a.db.Pool, func(tx pgx.Tx) (err error) {
		l, err = postgres.PrepareList(a.Context(), tx, a.keys, "agent-gangnam", a.sealKey, time.Now())
		return err
	})
	if err != nil {
		a.Fatal(err)
	}
	return l
}

func (a *keypadAgent) acknowledge(epoch, version uint64) {
	a.Helper()
	err := pgx.BeginFunc(a.Context(), a.db.Pool, func(tx pgx.Tx) error {
		_, _, err := postgres.AcknowledgeList(a.Context(), tx, "agent-gangnam", epoch, version, time.Now())
		return err
	})
	if err != nil {
		a.Fatal(err)
	}
}

// change adds a stay, and so changes the list.
func (a *keypadAgent) change() {
	a.Helper()
	a.stay = a.stay.Add(time.Hour)
	partnerStay(a.T, a.db, 1, a.stay, a.stay.Add(50*time.Minute))
}

func (a *keypadAgent) codesReady() bool {
	a.Helper()
	agents, err := postgres.PassAgents(a.Context(), a.db.Pool, 1)
	if err != nil || len(agents) != 1 {
		a.Fatal(agents, err)
	}
	return agents[0].Codes
}

// TestCodesAfterARestoration gives an agent another key for the codes with its third list, as a machine whose disk has lost the first key
// gets it. Then the agent reports a list that the database does not know, because it was restored: with the next list that the agent
// acknowledges, it has the key.
func TestCodesAfterARestoration(t *testing.T) {
	t.Parallel()
	a := newKeypadAgent(t)
	for range 2 {
		a.change()
		l := a.list()
		a.acknowledge(l.Epoch, l.Version)
	}
	a.sealKey = []byte("another key of this machine.....")
	l := a.list()
	if a.codesReady() {
		t.Error("the agent counts as one with the key before it has acknowledged it")
	}
	if a.acknowledge(l.Epoch, l.Version); !a.codesReady() {
		t.Fatal("the agent has acknowledged the key, and gives no codes")
	}
	a.acknowledge(l.Epoch, l.Version+5)
	if a.codesReady() {
		t.Error("the agent has a list that the database does not know, and counts as one with the key")
	}
	next := a.list()
	if next.Epoch <= l.Epoch {
		t.Errorf("got epoch %d after %d, want a later one", next.Epoch, l.Epoch)
	}
	if a.acknowledge(next.Epoch, next.Version); !a.codesReady() {
		t.Error("the agent has acknowledged a list of the later epoch, which contains the key, and gives no codes")
	}
}

// TestListsAfterARestoration restores the database from a backup. The next list replaces the agent's at once, and the acknowledgement of a list of
// the lost time, whatever its number, does not count for it.
func TestListsAfterARestoration(t *testing.T) {
	t.Parallel()
	a := newKeypadAgent(t)
	a.change()
	before := a.list()
	a.acknowledge(before.Epoch, before.Version)
	err := pgx.BeginFunc(t.Context(), a.db.Pool, func(tx pgx.Tx) error {
		return errors.Join(postgres.BeginRebuild(t.Context(), tx), postgres.EndRebuild(t.Context(), tx, time.Now()))
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // versions that the agent has from the lost time
		a.change()
		if l := a.list(); l.Epoch <= before.Epoch {
			t.Fatalf("got epoch %d after %d, want a later one", l.Epoch, before.Epoch)
		}
	}
	for version := range uint64(5) {
		if a.acknowledge(before.Epoch, version); a.list().Applied {
			t.Fatalf("version %d of the lost time counts as the list of the database", version)
		}
	}
	l := a.list()
	if a.acknowledge(l.Epoch, l.Version); !a.list().Applied {
		t.Error("the list of the database does not count as acknowledged")
	}
}

// A stolen machine reports a list of an epoch that no service reaches: its lists keep their epoch, and a restoration can still raise it.
func TestEpochOfAStolenMachine(t *testing.T) {
	t.Parallel()
	a := newKeypadAgent(t)
	a.change()
	before := a.list()
	for _, epoch := range []uint64{math.MaxInt64 - 1, math.MaxUint64} {
		a.acknowledge(epoch, 1)
	}
	if l := a.list(); l.Epoch != before.Epoch || l.Applied {
		t.Errorf("got epoch %d, acknowledged %t, want %d, false", l.Epoch, l.Applied, before.Epoch)
	}
	if err := pgx.BeginFunc(t.Context(), a.db.Pool, func(tx pgx.Tx) error { return postgres.BeginRebuild(t.Context(), tx) }); err != nil {
		t.Error(err)
	}
}

// TestUnknownListEndsNoQuarantine has an agent report twice, as a repeated message does, that it uses a list which the database does not know,
// because it was restored. The time of a canceled stay stays in quarantine until the agent uses a list of the database: the unknown one may
// still have the pass of the stay.
func TestUnknownListEndsNoQuarantine(t *testing.T) {
	t.Parallel()
	a := newKeypadAgent(t)
	a.change()
	l := a.list()
	a.acknowledge(l.Epoch, l.Version)
	exec(t, a.db.Pool, `update reservation set state = 'CANCELED' where state = 'DONE'`)
	quarantines := func(want int, when string) {
		t.Helper()
		var n int
		if err := a.db.Pool.QueryRow(t.Context(), `select count(*) from reservation where quarantine_of is not null and state = 'HOLD'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%s: got %d quarantines, want %d", when, n, want)
		}
	}
	quarantines(1, "after the cancellation")
	for range 2 {
		a.acknowledge(l.Epoch, l.Version+5)
		quarantines(1, "with an unknown list")
	}
	l = a.list()
	a.acknowledge(l.Epoch, l.Version)
	quarantines(0, "with the next list of the database")
}
