package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkHoldAgainstPgbench creates holds of distinct slots through this package and through pgbench with the same
// statement on the same server, alternately, and reports the median ratio of the two rates. The server is durable: every
// hold is on disk before it counts.
func BenchmarkHoldAgainstPgbench(b *testing.B) {
	pgbench := findPgbench(b)
	const clients, round, rounds = 16, 5 * time.Second, 3
	db, url := durable(b)
	rooms := benchRooms(b, db)

	var ours, theirs, ratios []float64
	for range rounds {
		h := holdsPerSecond(b, db, rooms, clients, round)
		p := pgbenchPerSecond(b, pgbench, url, clients, round)
		ours, theirs, ratios = append(ours, h), append(theirs, p), append(ratios, h/p)
	}
	b.ReportMetric(median(ours), "holds/s")
	b.ReportMetric(median(theirs), "pgbench/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func findPgbench(b *testing.B) string {
	b.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if path, err := osexec.LookPath("pgbench"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		b.Skip("pgbench is not installed")
	}
	return found[len(found)-1]
}

// durable starts a server with the service's durability: on disk, with synchronous commits.
func durable(b *testing.B) (*postgres.DB, string) {
	b.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "yeolda-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	server, err := pgserver.Start(b.Context(), pgserver.Options{DataDir: dir, Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	db, err := postgres.Open(b.Context(), server.URL(), log)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	if err := postgres.Migrate(b.Context(), db.Pool, log); err != nil {
		b.Fatal(err)
	}
	return db, server.URL()
}

// roomCount distributes the holds over as many rooms as a chain of branches has.
const roomCount = 1000

func benchRooms(b *testing.B, db *postgres.DB) []booking.RoomID {
	b.Helper()
	_, err := db.Pool.Exec(b.Context(), `
		with made as (
			insert into branch (code) select 'bench-' || g from generate_series(1, 100) g returning id)
		insert into room (branch_id, no, min60) select made.id, n, 10000 from made, generate_series(1, 10) n`)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := db.Pool.Query(b.Context(), `select id from room order by id`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var rooms []booking.RoomID
	for rows.Next() {
		var id booking.RoomID
		if err := rows.Scan(&id); err != nil {
			b.Fatal(err)
		}
		rooms = append(rooms, id)
	}
	if len(rooms) != roomCount {
		b.Fatalf("%d rooms", len(rooms))
	}
	return rooms
}

// taken counts the slots used in all rounds, so that no two holds conflict.
var taken atomic.Int64

// epoch is the start of our first hold; those of pgbench start a century later.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func holdsPerSecond(b *testing.B, db *postgres.DB, rooms []booking.RoomID, clients int, round time.Duration) float64 {
	b.Helper()
	warm(b, db.Pool, clients)
	var done atomic.Int64
	ctx, cancel := context.WithTimeout(b.Context(), round)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := taken.Add(1)
				start := epoch.Add(time.Duration(n/roomCount) * 2 * time.Hour)
				token := make([]byte, 32)
				rand.Read(token)
				id, err := postgres.InsertHold(b.Context(), db.Pool, postgres.NewHold{
					Room: rooms[n%roomCount], Interval: booking.Interval{Start: start, End: start.Add(time.Hour)},
					Source: booking.Customer, Token: token, ExpiresAt: time.Now().Add(10 * time.Minute),
				}, time.Now())
				if err != nil || id == 0 {
					b.Errorf("hold: %d, %v", id, err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

func warm(b *testing.B, pool *pgxpool.Pool, clients int) {
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() { _ = pool.Ping(b.Context()) })
	}
	wg.Wait()
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// pgbenchPerSecond runs the exact statement of InsertHold with pgbench's variables as parameters.
func pgbenchPerSecond(b *testing.B, pgbench, url string, clients int, round time.Duration) float64 {
	b.Helper()
	script := filepath.Join(b.TempDir(), "hold.sql")
	statement := postgres.HoldStatement
	for parameter, value := range map[string]string{
		"$1": ":room::int", "$2": "to_timestamp(:at::float8)", "$3": "to_timestamp(:at::float8 + 3600)", "$4": "now()",
		"$5": "'CUSTOMER'", "$6": "sha256(:token::text::bytea)", "$7": "now() + interval '10 minutes'", "$8": "null",
		"$9": "null", "$10": "null", "$11": "null", "$12": "null",
	} {
		statement = regexp.MustCompile(regexp.QuoteMeta(parameter)+`\b`).ReplaceAllLiteralString(statement, value)
	}
	content := fmt.Sprintf(`\set n random(1, 2000000000)
\set room 1 + :n %% %d
\set at 7258118400 + (:n / %d) * 7200
\set token random(1, 9000000000000000000)
%s`, roomCount, roomCount, statement)
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	command := osexec.CommandContext(b.Context(), pgbench, "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(round.Seconds())), "-f", script, url)
	out, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	found := tps.FindSubmatch(out)
	if found == nil {
		b.Fatalf("pgbench printed no rate:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}
