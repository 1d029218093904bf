package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// earliest is the schema of the first release that may be upgraded.
const earliest = 6

// released is the last migration of the latest release: programs of it run beside the next one while replicas are
// replaced one after the other, and after a roll-back.
const released = 11

// TestUpgrade brings the rows of every earlier schema up to date.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	_, latest, err := postgres.SchemaVersions(t.Context(), empty(t, 1)[0].Pool)
	if err != nil {
		t.Fatal(err)
	}
	for version := int64(earliest); version < latest; version++ {
		t.Run(fmt.Sprintf("from %d", version), func(t *testing.T) {
			t.Parallel()
			db := empty(t, 1)[0]
			if err := postgres.MigrateTo(t.Context(), db.Pool, version); err != nil {
				t.Fatal(err)
			}
			key := uuid.New()
			start := time.Now().Truncate(10 * time.Minute).Add(time.Hour)
			exec(t, db.Pool, `insert into branch (code, front_doors) values ('gangnam', '{front_1}')`)
			exec(t, db.Pool, `insert into room (branch_id, no, min10) select id, 1, 5000 from branch`)
			exec(t, db.Pool, `insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, order_id, amount, method, doorlock_key)
				select b.id, r.id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), '홍길동', '01011112222', '01011112222', 'order', 30000, '카드', $3
				from branch b join room r on r.branch_id = b.id`, start, start.Add(time.Hour), key)
			exec(t, db.Pool, `insert into payment (reservation_id, key_set, payment_key, confirm_key, total_amount) select id, 'widget', 'pk', 'ck', 30000 from reservation`)
			exec(t, db.Pool, `insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key) select id, 'FAILED', 'x', 30000, 'customer', 'ik' from reservation`)
			exec(t, db.Pool, `insert into ledger (reservation_id, order_id, kind, amount) select id, 'order', 'confirm.done', 30000 from reservation`)
			exec(t, db.Pool, `insert into audit (actor, action, target) values ('admin:hq', 'reservation.move', '1001')`)
			exec(t, db.Pool, `insert into administrator (login_id, password_hash, role) values ('hq', 'x', 'hq')`)
			if err := postgres.Migrate(t.Context(), db.Pool, db.Logger); err != nil {
				t.Fatal(err)
			}
			r, err := postgres.ReservationByOrder(t.Context(), db.Pool, "order")
			if err != nil || r.RoomNo != 1 || !r.Start.Equal(start) {
				t.Errorf("reservation %+v, %v", r, err)
			}
			if found, err := postgres.ReservationByKey(t.Context(), db.Pool, key); err != nil || found.ID != r.ID {
				t.Errorf("by its key: %+v, %v", found, err)
			}
			work, err := postgres.DiagnoseWork(t.Context(), db.Pool, time.Now())
			if err != nil || work.RefundsFailed != 1 || work.Administrators != 1 {
				t.Errorf("work %+v, %v", work, err)
			}
			vitals, err := postgres.ReadVitals(t.Context(), db.Pool, time.Now())
			if err != nil || vitals.Reservations["DONE"] != 1 || vitals.Payments["DONE"] != 1 || vitals.Branches != 1 {
				t.Errorf("vitals %+v, %v", vitals, err)
			}
		})
	}
}

// TestMigrationsLeaveTheLastReleaseRunning refuses what would break a program of the last release: first a release
// that can do without (expand), in a later one the rest (contract), with a comment that says since when.
func TestMigrationsLeaveTheLastReleaseRunning(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migration/*.sql")
	if err != nil || len(files) < released {
		t.Fatalf("%v, %v", files, err)
	}
	breaks := regexp.MustCompile(`(?i)\b(drop\s+(table|column)|rename|set\s+not\s+null|alter\s+column\s+\w+\s+type|add\s+column\s+\w+\s+[^;,]*not\s+null(?:[^;,]*default)?)`)
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		if n, _ := strconv.Atoi(number); n <= released {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(raw), "\n") {
			statement, comment, _ := strings.Cut(line, "--")
			found := breaks.FindString(statement)
			if found == "" || strings.Contains(strings.ToLower(found), "default") || strings.Contains(comment, "contract:") {
				continue
			}
			t.Errorf("%s:%d: %q: programs of the last release cannot live with it", file, i+1, found)
		}
	}
}
