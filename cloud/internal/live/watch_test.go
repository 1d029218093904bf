package live_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/live"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestWatchBeginsWithAState: a watch does not begin before the state with which later ones are compared. Each later change is
// reported, so a console that fetches its data then shows all of it.
func TestWatchBeginsWithAState(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Pool.Exec(t.Context(), `insert into branch (code) values ('gangnam')`); err != nil {
		t.Fatal(err)
	}
	hub := start(t, db)

	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `lock table branch in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	type watch struct {
		events <-chan []live.Event
		stop   func()
		err    error
	}
	begun := make(chan watch, 1)
	today := time.Now().Truncate(24 * time.Hour)
	day := booking.Interval{Start: today, End: today.Add(24 * time.Hour)}
	go func() {
		var w watch
		w.events, w.stop, w.err = hub.Watch(t.Context(), "gangnam", day)
		begun <- w
	}()
	for waiting := 0; waiting == 0; time.Sleep(10 * time.Millisecond) { // rows of another process: there is no event to wait for
		err := db.Pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = $1 and query like $2`,
			"Lock", "select revision from branch%").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-begun:
		t.Fatal("the watch has begun before the state of the branch was read")
	default:
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := <-begun
	if w.err != nil {
		t.Fatal(w.err)
	}
	defer w.stop()
	if _, err := db.Pool.Exec(t.Context(), `update branch set revision = revision + 1 where code = 'gangnam'`); err != nil {
		t.Fatal(err)
	}
	select {
	case events := <-w.events:
		if !slices.Contains(events, live.Event{Kind: "slot"}) {
			t.Errorf("got %+v, want a change of the branch", events)
		}
	case <-time.After(time.Minute):
		t.Error("a change at the beginning of a watch was not reported")
	}
}

// TestWatchThatCannotBegin: a watch whose state is not read ends with its context.
func TestWatchThatCannotBegin(t *testing.T) {
	t.Parallel()
	hub := start(t, pgtest.New(t))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := hub.Watch(ctx, "nowhere", booking.Interval{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the time is over", err)
	}
}

// start runs a hub until the test ends.
func start(t *testing.T, db *postgres.DB) *live.Hub {
	t.Helper()
	hub := &live.Hub{DB: db, Log: slog.New(slog.DiscardHandler)}
	running, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- hub.Run(running) }()
	t.Cleanup(func() { end(); <-ran })
	for { // a hub that does not run yet closes the channel at once
		events, stop, err := hub.Watch(t.Context(), "", booking.Interval{})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
		default:
			stop()
			return hub
		}
	}
}
