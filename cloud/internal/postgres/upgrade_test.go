package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// earliest is the schema of the first release from which an upgrade is supported.
const earliest = 6

// released is the last migration of the latest release. Programs of that release run on the next release's schema during a
// rolling upgrade and after a roll-back.
const released = 13

// TestUpgrade migrates rows of every earlier schema. One database goes through all of them and gets rows at each: migrating a database
// of its own for each schema would take a hundred times as long.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	db := empty(t, 1)[0]
	files, err := filepath.Glob("migration/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Truncate(10 * time.Minute).Add(time.Hour)
	keys := map[string]uuid.UUID{} // by order
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if version < earliest {
			continue
		}
		if err := postgres.MigrateTo(t.Context(), db.Pool, version); err != nil {
			t.Fatal(err)
		}
		of := func(what string) string { return what + "-" + number }
		key := uuid.New()
		keys[of("order")] = key
		exec(t, db.Pool, `insert into branch (code, front_doors) values ($1, '{front_1}')`, of("branch"))
		exec(t, db.Pool, `insert into room (branch_id, no, min10) select id, 1, 5000 from branch where code = $1`, of("branch"))
		exec(t, db.Pool, `insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, order_id, amount, method, doorlock_key)
			select b.id, r.id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), '홍길동', '01011112222', '01011112222', $5, 30000, '카드', $3
			from branch b join room r on r.branch_id = b.id where b.code = $4`, start, start.Add(time.Hour), key, of("branch"), of("order"))
		exec(t, db.Pool, `insert into payment (reservation_id, key_set, payment_key, confirm_key, total_amount) select id, 'widget', $2, $3, 30000 from reservation where order_id = $1`,
			of("order"), of("pk"), of("ck"))
		exec(t, db.Pool, `insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key) select id, 'FAILED', 'x', 30000, 'customer', $2 from reservation where order_id = $1`,
			of("order"), of("ik"))
		exec(t, db.Pool, `insert into ledger (reservation_id, order_id, kind, amount) select id, order_id, 'confirm.done', 30000 from reservation where order_id = $1`, of("order"))
		exec(t, db.Pool, `insert into audit (actor, action, target) values ('admin:hq', 'reservation.move', '1001')`)
		exec(t, db.Pool, `insert into administrator (login_id, password_hash, role) values ($1, 'x', 'hq')`, of("hq"))
	}
	if err := postgres.Migrate(t.Context(), db.Pool, db.Logger); err != nil { // and what the service does after the last one
		t.Fatal(err)
	}
	for order, key := range keys {
		r, err := postgres.ReservationByOrder(t.Context(), db.Pool, order)
		if err != nil || r.RoomNo != 1 || !r.Start.Equal(start) {
			t.Errorf("%s: reservation %+v, %v", order, r, err)
		}
		if found, _, err := postgres.ReservationByKey(t.Context(), db.Pool, key); err != nil || found.ID != r.ID {
			t.Errorf("%s: by its key: %+v, %v", order, found, err)
		}
	}
	n := len(keys)
	work, err := postgres.DiagnoseWork(t.Context(), db.Pool, time.Now())
	if err != nil || work.RefundsFailed != n || work.Administrators != n {
		t.Errorf("%d schemas: work %+v, %v", n, work, err)
	}
	vitals, err := postgres.ReadVitals(t.Context(), db.Pool, time.Now(), time.Minute)
	if err != nil || vitals.Reservations["DONE"] != n || vitals.Payments["DONE"] != n || vitals.Branches != n {
		t.Errorf("%d schemas: vitals %+v, %v", n, vitals, err)
	}
}

// breaking are statements on which a program of the last release would fail. One release must stop using the column or table
// (expand); a later one may remove it (contract), with a comment that names the release.
var breaking = regexp.MustCompile(`(?i)\b(drop\s+(table|column)|rename|set\s+not\s+null|alter\s+column\s+\w+\s+type|add\s+column\s+\w+\s+[^;,]*not\s+null(?:[^;,]*default)?)`)

// blocking are statements that block reads or writes of an existing table while it is scanned.
var blocking = []struct {
	pattern *regexp.Regexp
	remedy  string
}{
	{regexp.MustCompile(`(?is)\bcreate\s+(?:unique\s+)?index\s+(?:if\s+not\s+exists\s+)?(\w+)\s+on\s+(\w+)`), "build the index CONCURRENTLY, with NO TRANSACTION"},
	{regexp.MustCompile(`(?is)\bdrop\s+index\s+(?:if\s+exists\s+)?(\w+)()`), "drop the index CONCURRENTLY, with NO TRANSACTION"},
	{regexp.MustCompile(`(?is)\balter\s+table\s+(?:only\s+)?()(\w+)\s+(?:[^;]*,\s*)?add\s+column\s+\w+\s+\w+\s+unique\b`), "build a unique index CONCURRENTLY in another migration"},
	{regexp.MustCompile(`(?is)\balter\s+table\s+(?:only\s+)?()(\w+)\s+(?:[^;]*,\s*)?add\s+(?:constraint\s+\w+\s+)?(?:check|foreign\s+key)\b`), "add the constraint NOT VALID and validate it in another migration"},
}

// smallTables have a few rows per branch, so a scan takes no noticeable time.
var smallTables = []string{"agent_credential", "agent_inventory", "administrator", "branch", "channel_listing", "door_pin", "room"}

// TestMigrationsKeepTheLastReleaseRunning rejects migrations that would break or block programs of the last release.
func TestMigrationsKeepTheLastReleaseRunning(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migration/*.sql")
	if err != nil || len(files) < released {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		if n, _ := strconv.Atoi(number); n <= released {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range lintMigration(string(raw)) {
			t.Errorf("%s:%s", file, problem)
		}
	}
}

func lintMigration(text string) (problems []string) {
	var statements strings.Builder
	for i, line := range strings.Split(text, "\n") {
		statement, comment, _ := strings.Cut(line, "--")
		statements.WriteString(statement + "\n")
		found := breaking.FindString(statement)
		if found != "" && !strings.Contains(strings.ToLower(found), "default") && !strings.Contains(comment, "contract:") {
			problems = append(problems, fmt.Sprintf("%d: %q breaks programs of the last release", i+1, found))
		}
	}
	for statement := range strings.SplitSeq(statements.String(), ";") {
		for _, rule := range blocking {
			found := rule.pattern.FindStringSubmatch(statement)
			if found == nil || strings.EqualFold(found[1], "concurrently") || strings.Contains(strings.ToLower(statement), "not valid") {
				continue
			}
			if slices.Contains(smallTables, found[2]) {
				continue
			}
			if table := found[2]; table != "" && regexp.MustCompile(`(?i)create\s+table\s+(?:if\s+not\s+exists\s+)?`+table+`\b`).MatchString(statements.String()) {
				continue // a new table, which no earlier program uses
			}
			problems = append(problems, fmt.Sprintf(" %q blocks: %s", strings.Join(strings.Fields(found[0]), " "), rule.remedy))
		}
	}
	return problems
}

func TestLintMigrationFindsBlockingStatements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"create index a on reservation (id);":                1,
		"CREATE UNIQUE INDEX a ON reservation (id);":         1,
		"create index concurrently a on reservation (id);":   0,
		"create table a (id int); create index b on a (id);": 0,
		"drop index a;":                          1,
		"drop index concurrently if exists a;":   0,
		"alter table payment add check (a > 0);": 1,
		"alter table payment add column b int, add constraint c check (b > 0);": 1,
		"alter table payment add constraint c check (b > 0) not valid;":         0,
		"alter table payment add foreign key (a) references b;":                 1,
		"alter table payment add column a uuid unique;":                         1,
		"create unique index a on branch (code);":                               0,
		"alter table payment drop column a;":                                    1,
		"alter table payment drop column a; -- contract: unused since 0.2":      0,
		"alter table payment add column a int not null;":                        1,
		"alter table payment add column a int not null default 0;":              0,
		"alter table payment rename column a to b;":                             1,
		"alter table payment alter column a set not null;":                      1,
		"create table a (id int primary key, b int not null check (b > 0));":    0,
	} {
		if got := lintMigration(text); len(got) != want {
			t.Errorf("%s: got %q, want %d problems", text, got, want)
		}
	}
}
