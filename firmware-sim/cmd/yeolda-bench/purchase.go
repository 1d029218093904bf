package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

const (
	purchaseBranches = 50
	purchaseClients  = 4
	barPurchases     = 400 // per second
	barCommits       = 10
	barLog           = 20 // kB of write-ahead log
	barLag           = 2 * time.Second
	// afterwards is the time in which the background work of the last purchase ends: the watchdog of an attempt looks 15 seconds
	// after it, and the sweep every 5.
	afterwards = 25 * time.Second
)

// purchases measures what a purchase costs, with everything that follows it in the background, and how late its message is. The
// sandbox keeps a state file, as `make run` starts it.
func purchases(ctx context.Context, root, dir string, round time.Duration, log io.Writer, p *part.Part) (err error) {
	addresses, err := world.FreeAddresses(ctx, 1)
	if err != nil {
		return err
	}
	database, server, err := world.StartPostgres(ctx, dir, addresses[0], log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	files, err := branchFiles(root, dir, []int{purchaseBranches})
	if err != nil {
		return err
	}
	s, err := world.StartStack(ctx, world.StackOptions{
		Root: root, Bin: dir, Dir: dir, Log: log, Branches: files, NoSimulator: true,
		Env: map[string]string{
			"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn", "YEOLDA_DATABASE_URL": database,
			"YEOLDA_SANDBOX_STATE_FILE": filepath.Join(dir, "sandbox.json"),
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	db, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()

	buy := buyer(s, purchaseBranches)
	if _, err := measure(ctx, purchaseClients, round/5, nil, buy); err != nil { // connections, plans and the first checkpoint
		return err
	}
	if err := pause(ctx, afterwards); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	meter := purchaseMeter{stack: s, postgres: server.PID(), db: db}
	idle, err := meter.over(ctx, func() error { return pause(ctx, afterwards) })
	if err != nil {
		return err
	}
	var bought sample
	began := time.Now()
	all, err := meter.over(ctx, func() (err error) {
		if bought, err = measure(ctx, purchaseClients, round, nil, buy); err != nil {
			return err
		}
		return pause(ctx, afterwards)
	})
	if err != nil {
		return err
	}
	n := float64(bought.done)
	quiet := all.took.Seconds() / idle.took.Seconds() // of the work that is done without purchases
	each := func(used, idle float64) float64 { return (used - idle*quiet) / n }
	var p50, p99 float64
	err = db.QueryRow(ctx, `
		select coalesce(percentile_cont(0.5) within group (order by lag), 0), coalesce(percentile_cont(0.99) within group (order by lag), 0)
		from (select extract(epoch from coalesce(sent_at, now()) - created_at)::float8 as lag from message where created_at >= $1) m`, began).Scan(&p50, &p99)
	if err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("purchases, %d clients, %s", purchaseClients, what) }
	withUnit := func(f part.Figure, unit string) part.Figure {
		f.Unit = unit
		return f
	}
	p.Figures = append(p.Figures,
		withUnit(atLeast(name("rate"), bought.rate, barPurchases), "per s"),
		part.Figure{Name: name("p50"), Value: ms(bought.p50), Unit: "ms"},
		part.Figure{Name: name("p99"), Value: ms(bought.p99), Unit: "ms"},
		withUnit(atMost(name("commits with write-ahead log for each"), each(all.commits, idle.commits), barCommits), ""),
		withUnit(atMost(name("write-ahead log for each"), each(all.bytes, idle.bytes)/1000, barLog), "kB"),
		part.Figure{Name: name("processor time of the service for each"), Value: 1000 * each(all.service, idle.service), Unit: "ms"},
		part.Figure{Name: name("processor time of PostgreSQL for each"), Value: 1000 * each(all.database, idle.database), Unit: "ms"},
		part.Figure{Name: name("processor time of the sandbox for each"), Value: 1000 * each(all.sandbox, idle.sandbox), Unit: "ms"},
		part.Figure{Name: name("key message behind, p50"), Value: p50, Unit: "s"},
		withUnit(atMost(name("key message behind, p99"), p99, barLag.Seconds()), "s"))
	floor, err := commitFloor(ctx, database, round)
	if err != nil {
		p.Notes = append(p.Notes, "The floor was not measured: "+err.Error())
		return nil
	}
	p.Figures = append(p.Figures, part.Figure{Name: fmt.Sprintf("floor: pgbench, %d clients, rate of %d commits each", purchaseClients, barCommits), Value: floor / barCommits, Unit: "per s"})
	return nil
}

// commitFloor returns the rate of durable transactions of one small insert, by pgbench in the same database.
func commitFloor(ctx context.Context, database string, round time.Duration) (float64, error) {
	programs, err := world.PostgresPrograms()
	if err != nil {
		return 0, err
	}
	db, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	if _, err := db.Exec(ctx, "create table bench_floor (id bigint generated always as identity primary key, content text not null)"); err != nil {
		return 0, err
	}
	script := filepath.Join(os.TempDir(), "yeolda-bench-floor.sql")
	if err := os.WriteFile(script, []byte("insert into bench_floor (content) values (repeat('x', 400));\n"), 0o600); err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(script) }()
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "pgbench"), "-n", "-f", script, "-c", strconv.Itoa(purchaseClients), "-j", "2",
		"-T", strconv.Itoa(int(round.Seconds())), database).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return pgbenchRate(string(out))
}

// pgbenchRate reads the rate in a line such as "tps = 1234.5 (without initial connection time)".
func pgbenchRate(out string) (float64, error) {
	_, rest, found := strings.Cut(out, "tps = ")
	if !found {
		return 0, fmt.Errorf("pgbench printed no rate:\n%s", out)
	}
	number, _, _ := strings.Cut(rest, " ")
	return strconv.ParseFloat(number, 64)
}

// purchaseMeter reads what the programs and the database have used.
type purchaseMeter struct {
	stack    *world.Stack
	postgres int // process id
	db       *pgx.Conn
}

// usage is what was used over a time: durable commits, bytes of write-ahead log, and seconds of processor time.
type usage struct {
	commits, bytes, service, database, sandbox float64
	took                                       time.Duration
}

// over returns what is used while do runs. Commits are records in the write-ahead log, so reading transactions do not count.
func (m purchaseMeter) over(ctx context.Context, do func() error) (usage, error) {
	before, from, err := m.read(ctx)
	if err != nil {
		return usage{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return usage{}, err
	}
	u := usage{took: time.Since(began)}
	after, to, err := m.read(ctx)
	if err != nil {
		return usage{}, err
	}
	u.service, u.database, u.sandbox = after[0]-before[0], after[1]-before[1], after[2]-before[2]
	if _, err := m.db.Exec(ctx, "create extension if not exists pg_walinspect"); err != nil {
		return usage{}, err
	}
	err = m.db.QueryRow(ctx, `
		select $2::pg_lsn - $1::pg_lsn, coalesce(sum(count) filter (where "resource_manager/record_type" in ('Transaction/COMMIT', 'Transaction/COMMIT_PREPARED')), 0)::float8
		from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)`, from, to).Scan(&u.bytes, &u.commits)
	return u, err
}

func (m purchaseMeter) read(ctx context.Context) (seconds [3]float64, position string, err error) {
	for i, read := range []func() (time.Duration, error){
		func() (time.Duration, error) { return computedBy(m.stack.PID(world.Service)) },
		func() (time.Duration, error) { return computedBelow(m.postgres) },
		func() (time.Duration, error) { return computedBy(m.stack.PID(world.Sandbox)) },
	} {
		took, err := read()
		if err != nil {
			return seconds, "", err
		}
		seconds[i] = took.Seconds()
	}
	err = m.db.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&position)
	return seconds, position, err
}
