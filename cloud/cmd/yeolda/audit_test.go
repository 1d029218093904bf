package main

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestAuditVerifyCommand covers a log that holds, one that has grown, and one that was changed.
func TestAuditVerifyCommand(t *testing.T) {
	s := newShell(t)
	s = s.withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	s.ok("admin", "disable", "gangnam-manager")
	s.ok("admin", "enable", "gangnam-manager")
	db, err := postgres.Open(t.Context(), os.Getenv("YEOLDA_DATABASE_URL"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tamper := func(sql string) {
		t.Helper()
		for _, statement := range []string{`alter table audit disable trigger all`, sql, `alter table audit enable trigger all`} {
			if _, err := db.Pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	verify := func(args ...string) (string, int) {
		out, errOut, code := s.run("", append([]string{"audit", "verify"}, args...)...)
		return out + errOut, code
	}

	out, code := verify()
	if code != 0 || !strings.Contains(out, "not linked yet") {
		t.Fatalf("before anything is chained: %d\n%s", code, out)
	}
	if _, err := db.ChainAudit(t.Context()); err != nil { // as the service does, all the time
		t.Fatal(err)
	}
	out, code = verify()
	head := regexp.MustCompile(`3 entries, the chain holds; head (3:[0-9a-f]{64})`).FindStringSubmatch(out)
	if code != 0 || head == nil || strings.Contains(out, "not linked") {
		t.Fatalf("whole: %d\n%s", code, out)
	}
	if out, code := verify("--head", head[1]); code != 0 {
		t.Fatalf("its own head: %d\n%s", code, out)
	}
	if out, code := verify("--head", "3:nonsense"); code == 0 {
		t.Fatalf("no head at all: %s", out)
	}

	tamper(`update audit set actor = 'cli:somebody-else' where place = 2`)
	if out, code := verify(); code != 1 || !strings.Contains(out, "place 2") {
		t.Fatalf("an entry was rewritten: %d\n%s", code, out)
	}
	tamper(`update audit set actor = 'cli:tester' where place = 2`)
	if out, code := verify(); code != 0 {
		t.Fatalf("and written back: %d\n%s", code, out)
	}
	for _, sql := range []string{
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
			select branch_id, id, 'EXPIRED', 'CUSTOMER', now(), now() + interval '1 hour', tstzrange(now(), now() + interval '70 minutes') from room limit 1`,
		`insert into ledger (reservation_id, kind, amount, at) select id, 'confirm.sent', 20000, now() - interval '1 hour' from reservation`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if linked, err := db.LinkRows(t.Context()); err != nil || linked != 1 {
		t.Fatalf("linked %d rows: %v", linked, err)
	}
	if _, err := db.ChainAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, code := verify(); code != 0 || !strings.Contains(out, "1 rows of money, doors and passes") {
		t.Fatalf("linked: %d\n%s", code, out)
	}
	tamper(`alter table ledger disable trigger all`)
	tamper(`update ledger set amount = 2000`)
	if out, code := verify(); code != 1 || !strings.Contains(out, "rows of ledger") {
		t.Fatalf("an amount was changed: %d\n%s", code, out)
	}
	tamper(`update ledger set amount = 20000`)
	tamper(`delete from audit where place >= 3`)
	if out, code := verify(); code != 0 {
		t.Fatalf("a shorter chain is whole in itself: %d\n%s", code, out)
	}
	if out, code := verify("--head", head[1]); code != 1 {
		t.Fatalf("its end was cut off: %d\n%s", code, out)
	}
}
