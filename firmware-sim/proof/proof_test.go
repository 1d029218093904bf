package proof_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/proof"
	"github.com/yeolda/yeolda/firmware-sim/proof/contend"
	"github.com/yeolda/yeolda/firmware-sim/proof/soak"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unhurried are rules that a short run may not exercise, because their events are rare.
var unhurried = map[string]bool{"M5": true, "M6": true, "M10": true, "D5": true, "D10": true, "D12": true, "B2": true, "B10": true, "B11": true, "B13": true, "B14": true}

// TestShortSoak is `make proof` in small: the race for a few slots, and a soak of some seconds with all its parts.
func TestShortSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // without a cache, the programs alone take minutes
	defer cancel()
	const seed = 20261121
	w, err := world.Start(ctx, world.Options{Root: "../..", Branches: 4, Clocks: world.Clocks(seed)})
	if errors.Is(err, world.ErrMissing) && os.Getenv("E2E_REQUIRED") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	race, err := contend.Run(ctx, w, 5)
	if err != nil {
		t.Error(err)
	}
	for _, miss := range race.Misses() {
		t.Errorf("race: %s", miss)
	}
	soaked, _, err := proof.Soak(ctx, w, soak.Options{Seed: seed, For: 20 * time.Second, Customers: 8, Admins: 2, Say: t.Logf})
	if err != nil {
		t.Error(err)
	}
	observed := 0
	for _, c := range soaked.Checks {
		t.Logf("%-4s %6d held against, %d violations, %d set aside", c.ID, c.Observations, c.Violations, c.Excused)
		observed += c.Observations
		// Response times are measured by make proof, on a quiet machine.
		if c.Violations > 0 && c.ID != "D8" && c.ID != "M12" {
			t.Errorf("%s: %d violations: %s: %q", c.ID, c.Violations, c.Rule, c.Examples)
		}
		if c.Observations == 0 && !unhurried[c.ID] {
			t.Errorf("%s was not exercised", c.ID)
		}
	}
	findsChanges(ctx, t, w)
	if t.Failed() || observed == 0 {
		log, err := os.ReadFile(w.LogFile)
		t.Logf("log of the programs (%v):\n%s", err, log[max(0, len(log)-20_000):])
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.LogFile); !errors.Is(err, os.ErrNotExist) {
		t.Error("the world left files on the disk")
	}
}

// linked is 1 once rows of money and of doors are linked into the audit log.
const linked = `select count(*) from (select from audit_link where source in ('ledger', 'door') having count(*) = 2) sources
	where not exists (select from audit where place is null)`

// findsChanges changes the oldest rows as a superuser of the database could, and demands that `yeolda audit verify` finds each.
func findsChanges(ctx context.Context, t *testing.T, w *world.World) {
	t.Helper()
	query := func(sql string) string {
		rows, err := w.Query(ctx, sql)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(rows, "")
	}
	for query(linked) != "1" { // rows are linked every minute
		time.Sleep(time.Second)
	}
	for source, change := range map[string]string{
		"ledger": "update ledger set at = at %s interval '1 microsecond' where id = (select id from ledger order by at limit 1)",
		"door":   "update door_request set created_at = created_at %s interval '1 microsecond' where id = (select id from door_request order by created_at limit 1)",
	} {
		query("set session_replication_role = replica; " + fmt.Sprintf(change, "-"))
		if out, err := w.Command(ctx, "audit", "verify"); err == nil || !strings.Contains(err.Error(), "rows of "+source) {
			t.Errorf("a changed row of %s: %s%v", source, out, err)
		}
		query("set session_replication_role = replica; " + fmt.Sprintf(change, "+"))
	}
	if _, err := w.Command(ctx, "audit", "verify"); err != nil {
		t.Errorf("after the rows were changed back: %v", err)
	}
}
