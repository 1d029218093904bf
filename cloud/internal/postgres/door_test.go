package postgres_test

import (
	"context"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// The unlock window is implemented twice: as a rule in booking and as a condition in two statements. Both must agree at
// every edge.
func TestDoorWindowIsTheRuleOfBooking(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	r := booking.Reservation{State: booking.Done, Interval: booking.Interval{Start: start, End: start.Add(time.Hour)}}
	key, hash := oneRoom(t, db, start)
	from, to := r.UnlockWindow()
	for _, edge := range []time.Time{from, to, r.Start, r.End} {
		for _, offset := range []time.Duration{-time.Second, -time.Microsecond, 0, time.Microsecond, time.Second} {
			now := edge.Add(offset)
			allowed := r.CanUnlock(now) == nil
			found := ask(t, db, uuid.New(), key, hash, now)
			if found.Made != allowed {
				t.Errorf("request at %v: written %t, rule %t", now, found.Made, allowed)
			}
			if !found.Holder.Start.Equal(r.Start) || !found.Holder.End.Equal(r.End) || found.Device != "room_1" {
				t.Errorf("found %+v", found)
			}
			pending := uuid.New()
			ask(t, db, pending, key, hash, r.Start)
			if granted := claim(t, db, pending, now) != nil; granted != allowed {
				t.Errorf("grant at %v: %t, rule %t", now, granted, allowed)
			}
		}
	}
}

// A request for cleaning is granted only between stays, decided at the claim.
func TestCleaningIsGrantedBetweenStays(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	oneRoom(t, db, start)
	var (
		r    door.Request
		room booking.RoomID
	)
	if err := db.Pool.QueryRow(t.Context(), `select branch_id, id from room where no = 1`).Scan(&r.BranchID, &room); err != nil {
		t.Fatal(err)
	}
	r.RequestedBy, r.Kind, r.Device, r.Devices = "admin:cleaner", "room", "room_1", []string{"room_1"}
	for offset, want := range map[time.Duration]bool{
		-2*time.Minute - time.Second: true, -2 * time.Minute: false, 0: false, time.Hour - time.Second: false, time.Hour: true,
	} {
		r.ID = uuid.New()
		if _, _, err := postgres.InsertDoorRequest(t.Context(), db.Pool, r, room, []string{agent("gangnam").Username}, start); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Pool.Exec(t.Context(), `update door_request set state = 'PENDING', finished_at = null where id = $1`, r.ID); err != nil {
			t.Fatal(err)
		}
		if granted := claim(t, db, r.ID, start.Add(offset)) != nil; granted != want {
			t.Errorf("grant %v from the start: got %t, want %t", offset, granted, want)
		}
	}
}

func TestSecondRequestWithoutReportFails(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	press := func(report bool) door.State {
		t.Helper()
		id := uuid.New()
		ask(t, db, id, key, hash, start)
		claim(t, db, id, start)
		if !report {
			state, err := postgres.AbandonDoor(t.Context(), db.Pool, id, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		// A duplicate report in one batch is ignored: the first one decides.
		opened := postgres.DoorReport{ID: id, Agent: agent("gangnam"), Nonce: "nonce", Device: "room_1", Outcome: door.Outcome{Outcome: "opened"}}
		reported, err := postgres.ReportDoors(t.Context(), db.Doors, []postgres.DoorReport{opened, opened})
		if err != nil {
			t.Fatal(err)
		}
		if reported[1].Known {
			t.Error("a repeated report is taken for a new one")
		}
		return reported[0].Decided
	}
	var got []door.State
	for _, report := range []bool{false, false, false, true, false, true} {
		got = append(got, press(report))
	}
	want := []door.State{"UNKNOWN", "FAILED", "FAILED", "SUCCESS", "UNKNOWN", "SUCCESS"}
	if !slices.Equal(got, want) {
		t.Errorf("ended as %v, want %v", got, want)
	}
}

// Agents repeat messages, and a batch may contain duplicates. Each gets the answer it would get alone.
func TestBatchAnswersRepeatedMessagesInOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	if _, err := db.Pool.Exec(t.Context(), `update branch set front_doors = $1`, []string{"front_1", "front_2"}); err != nil {
		t.Fatal(err)
	}
	a, b := uuid.New(), uuid.New()
	asks := []postgres.KeyedAsk{
		{ID: a, Branch: "gangnam", Kind: "front", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start},
		{ID: uuid.New(), Branch: "nowhere", Kind: "front", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start},
		{ID: b, Branch: "gangnam", Kind: "room", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start},
		{ID: uuid.New(), Branch: "gangnam", Kind: "room", Key: uuid.New(), KeyHash: []byte("of an unknown key"), Online: []string{"agent-gangnam"}, Now: start},
	}
	made, err := postgres.RequestDoorsByKey(t.Context(), db.Doors, asks, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true, false} {
		if got := made[i]; got.Made != want || got.ID != asks[i].ID || (got.BranchID == 0) != (i == 1) {
			t.Errorf("ask %d: %+v", i, got)
		}
	}
	granted, err := postgres.GrantDoors(t.Context(), db.Doors, []postgres.DoorClaim{
		{ID: a, Agent: agent("gangnam"), Nonce: "first", Now: start}, {ID: a, Agent: agent("gangnam"), Nonce: "first", Now: start},
		{ID: b, Agent: agent("jamsil"), Nonce: "foreign", Now: start}, {ID: a, Agent: agent("gangnam"), Nonce: "second", Now: start},
		{ID: b, Agent: agent("gangnam"), Nonce: "third", Now: start},
	}, time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	both, room := postgres.GrantedDoors{Doors: []string{"front_1", "front_2"}}, postgres.GrantedDoors{Doors: []string{"room_1"}}
	if want := []postgres.GrantedDoors{both, both, {}, {}, room}; !cmp.Equal(granted, want) {
		t.Errorf("granted %v, want %v", granted, want)
	}
	nonce := map[uuid.UUID]string{a: "first", b: "third"}
	opened := func(id uuid.UUID, device string) postgres.DoorReport {
		return postgres.DoorReport{ID: id, Agent: agent("gangnam"), Nonce: nonce[id], Device: device, Outcome: door.Outcome{Outcome: "opened"}}
	}
	reported, err := postgres.ReportDoors(t.Context(), db.Doors, []postgres.DoorReport{
		opened(a, "front_1"), opened(b, "room_1"), opened(a, "front_1"), opened(a, "front_2"), opened(a, "front_3"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []postgres.DoorReported{{Known: true}, {Known: true, Decided: door.Success}, {}, {Known: true, Decided: door.Success}, {}}
	if !slices.Equal(reported, want) {
		t.Errorf("reported %+v, want %+v", reported, want)
	}
}

// PostgreSQL plans the statements while the tables are small and a sequential scan would be cheap. The plans remain after
// the tables have grown.
func TestDoorPlansFindRowsByTheirKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	id := uuid.New()
	ask(t, db, id, key, hash, start)
	claim(t, db, id, start)
	report := postgres.DoorReport{ID: id, Agent: agent("gangnam"), Nonce: "nonce", Device: "room_1", Outcome: door.Outcome{Outcome: "opened"}}
	if _, err := postgres.ReportDoors(t.Context(), db.Doors, []postgres.DoorReport{report}); err != nil {
		t.Fatal(err)
	}
	keys := []string{"door_request_pkey", "reservation_pkey", "access_key_hash_key", "room_pkey", "branch_pkey", "branch_code_key",
		"agent_credential_active", "agent_credential_by_branch", "agent_credential_pkey", "door_request_by_reservation"}
	plans := 0
	for _, conn := range db.Doors.AcquireAllIdle(t.Context()) {
		defer conn.Release()
		rows, err := conn.Query(t.Context(), `
			select format('explain (format json) execute %I (%s)', name, array_to_string(array_fill('null'::text, array[cardinality(parameter_types)]), ', '))
			from pg_prepared_statements where statement like $1`, "%unnest%")
		if err != nil {
			t.Fatal(err)
		}
		explains, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, explain := range explains {
			var plan string
			if err := conn.QueryRow(t.Context(), explain, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
				t.Fatal(err)
			}
			plans++
			if strings.Contains(plan, `"Seq Scan"`) {
				t.Errorf("plan with a sequential scan: %s", plan)
			}
			for _, index := range regexp.MustCompile(`"Index Name": "(\w+)"`).FindAllStringSubmatch(plan, -1) {
				if !slices.Contains(keys, index[1]) {
					t.Errorf("found by %s: %s", index[1], plan)
				}
			}
		}
	}
	if plans != 3 {
		t.Errorf("%d plans, want those of a press, a claim and a report", plans)
	}
}

func agent(branch string) protocol.Agent {
	return protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}
}

func ask(t testing.TB, db *postgres.DB, id, key uuid.UUID, hash []byte, now time.Time) postgres.KeyedDoor {
	t.Helper()
	found, err := postgres.RequestDoorsByKey(t.Context(), db.Doors, []postgres.KeyedAsk{
		{ID: id, Branch: "gangnam", Kind: "room", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: now},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func claim(t testing.TB, db *postgres.DB, id uuid.UUID, now time.Time) []string {
	t.Helper()
	doors, err := postgres.GrantDoors(t.Context(), db.Doors,
		[]postgres.DoorClaim{{ID: id, Agent: agent("gangnam"), Nonce: "nonce", Now: now}}, time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return doors[0].Doors
}

// oneRoom adds a branch with a room that is reserved for an hour.
func oneRoom(t testing.TB, db *postgres.DB, start time.Time) (key uuid.UUID, hash []byte) {
	t.Helper()
	key = uuid.New()
	sum := sha256.Sum256([]byte(key.String()))
	for _, sql := range []string{
		`insert into branch (code) values ($1)`,
		`insert into room (branch_id, no) select id, 1 from branch where code = $1`,
		`insert into agent_credential (username, branch_id, secret_hash, active) select 'agent-' || code, id, '', true from branch where code = $1`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql, "gangnam"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, doorlock_key)
		select branch_id, id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2::timestamptz + interval '10 minutes'), $3 from room`,
		start, start.Add(time.Hour), key)
	if err != nil {
		t.Fatal(err)
	}
	return key, sum[:]
}

// A relaxed statement returns before its commit is on disk; the next statement waits for the disk again.
func TestRelaxedCommitIsForOneStatement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `select set_config('synchronous_commit', $1, false)`, "on"); err != nil { // test servers are not durable
		t.Fatal(err)
	}
	if err := postgres.NotifyDoors(t.Context(), conn, []uuid.UUID{uuid.New()}); err != nil {
		t.Fatal(err)
	}
	var after string
	if err := conn.QueryRow(t.Context(), `select current_setting($1)`, "synchronous_commit").Scan(&after); err != nil {
		t.Fatal(err)
	}
	if after != "on" {
		t.Errorf("synchronous_commit is %s after a relaxed statement", after)
	}
}

func TestListenDoors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var ids []uuid.UUID
	for range 450 { // more than one notification can hold
		ids = append(ids, uuid.New())
	}
	heard := make(chan uuid.UUID, len(ids))
	ready, done := make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- postgres.ListenDoors(ctx, db, func() { close(ready) }, func(id uuid.UUID) { heard <- id })
	}()
	<-ready
	if err := postgres.NotifyDoors(t.Context(), db.Pool, ids); err != nil {
		t.Fatal(err)
	}
	for _, want := range ids {
		select {
		case got := <-heard:
			if got != want {
				t.Fatalf("heard %v, want %v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing heard")
		}
	}
	stop()
	if err := <-done; err == nil {
		t.Error("ListenDoors ended without an error")
	}
}

// TestPressReadsRecentRequestsOnly presses after a thousand presses of an hour ago, and counts the requests that the statement reads.
func TestPressReadsRecentRequestsOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	exec(t, db.Pool, `
		insert into door_request (id, branch_id, reservation_id, key_hash, requested_by, kind, device, devices, state, created_at, finished_at)
		select gen_random_uuid(), r.branch_id, r.id, $1, 'customer', 'front', 'front', '{front_1}', 'SUCCESS', t, t
		from reservation r, generate_series(clock_timestamp() - interval '2 hours', clock_timestamp() - interval '1 hour', interval '3.6 seconds') t`, hash)
	exec(t, db.Pool, `analyze door_request`)
	err := db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		const read = `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'door_request'`
		var before, after int
		if err := tx.QueryRow(ctx, read).Scan(&before); err != nil {
			return err
		}
		made, err := postgres.RequestDoorsByKey(ctx, tx, []postgres.KeyedAsk{
			{ID: uuid.New(), Branch: "gangnam", Kind: "front", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start},
		}, time.Minute)
		if err != nil {
			return err
		}
		if !made[0].Made {
			t.Errorf("got %+v, want a new request", made[0])
		}
		if err := tx.QueryRow(ctx, read).Scan(&after); err != nil {
			return err
		}
		if n := after - before; n > 10 {
			t.Errorf("read %d requests, want at most 10", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A press that a stalled connection delivers late is not written.
func TestPressIsWrittenUntilItsLimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	var now time.Time // of the database
	if err := db.Pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	for until, want := range map[time.Time]bool{now: false, now.Add(time.Hour): true} {
		found, err := postgres.RequestDoorsByKey(t.Context(), db.Doors, []postgres.KeyedAsk{
			{ID: uuid.New(), Branch: "gangnam", Kind: "room", Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start, Until: until},
		}, 0)
		if err != nil || found[0].Made != want || found[0].Holder.ID == 0 {
			t.Errorf("until %s at %s: got %+v, %v, want written: %t", until, now, found[0], err, want)
		}
	}
}

// A batch with two presses of a key runs two statements in one transaction. If one of them grants a press, the transaction waits for the
// disk, whichever comes last: the lock is driven, and a crash must not lose the grant.
func TestBatchWithAGrantWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	key, hash := oneRoom(t, db, start)
	press := func(kind, nonce string) postgres.KeyedAsk {
		return postgres.KeyedAsk{ID: uuid.New(), Branch: "gangnam", Kind: kind, Key: key, KeyHash: hash, Online: []string{"agent-gangnam"}, Now: start,
			Nonce: nonce, Claimant: "agent-gangnam"}
	}
	for name, asks := range map[string][]postgres.KeyedAsk{
		"grant first": {press("room", "nonce"), press("front", "")},
		"grant last":  {press("front", ""), press("room", "nonce")},
	} {
		tx, err := db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `select set_config('synchronous_commit', $1, true)`, "on"); err != nil { // test servers are not durable
			t.Fatal(err)
		}
		made, err := postgres.RequestDoorsByKey(t.Context(), tx, asks, 0)
		if err != nil {
			t.Fatal(err)
		}
		if granted := func(k postgres.KeyedDoor) bool { return k.State == door.Granted }; !slices.ContainsFunc(made, granted) {
			t.Errorf("%s: got %+v, want a grant", name, made)
		}
		var commit string
		if err := tx.QueryRow(t.Context(), `select current_setting($1)`, "synchronous_commit").Scan(&commit); err != nil {
			t.Fatal(err)
		}
		if commit != "on" {
			t.Errorf("%s: synchronous_commit is %s at the commit, want on", name, commit)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
