package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	blockLease   = 30 * time.Second
	firstRetry   = 5 * time.Second
	lateCreation = time.Minute // after the end of its attempt, the partner carries out no request
)

// blockAttempt is a request about the block of a reservation, and the process that sent it.
type blockAttempt struct {
	postgres.Block
	claimed, ended time.Time
	carriedOut     bool
}

// blockWorld has processes and a partner act on one block, in any order.
type blockWorld struct {
	t        *testing.T
	db       *postgres.DB
	rng      *rand.Rand
	now      time.Time
	id       int64
	attempts []*blockAttempt
	placed   bool // at the partner
	trace    []string
}

// A canceled reservation leaves no block at the partner, in whatever order attempts begin, are carried out by the partner, end and are killed.
func TestBlockAttemptsInAnyOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	oneRoom(t, db, now)
	exec(t, db.Pool, `insert into channel_listing (channel, partner, external_id, room_id) select 'gateway', 'p', 'gangnam-1', id from room`)
	play := func(name string, seed uint64, acts func(*blockWorld)) {
		t.Helper()
		exec(t, db.Pool, `delete from channel_block`)
		w := &blockWorld{t: t, db: db, rng: rand.New(rand.NewPCG(seed, 0)), now: now}
		w.must(db.Pool.QueryRow(t.Context(), `
			insert into channel_block (reservation_id, listing_id, state, start_at, end_at, next_at)
			select r.id, l.id, 'WANTED', r.start_at, r.end_at, $1 from reservation r, channel_listing l returning id`, now).Scan(&w.id))
		acts(w)
		w.rest()
		if w.placed {
			t.Errorf("%s: the block is at the partner after its removal:\n%s", name, strings.Join(w.trace, "\n"))
		}
	}
	play("a creation is carried out after a repeated one and its removal", 0, func(w *blockWorld) {
		w.end(w.claim(), false)
		w.advance(firstRetry)
		w.succeed(w.claim())
		w.cancel()
		w.succeed(w.claim())
	})
	play("a creation ends after a removal was carried out and before that is recorded", 0, func(w *blockWorld) {
		creation := w.claim()
		w.cancel()
		w.advance(blockLease)
		w.succeed(w.claim())
		w.advance(lateCreation)
		removal := w.claim()
		w.carryOut(removal)
		w.succeed(creation)
		w.end(removal, true)
	})
	play("a creation ends after the removal", 0, func(w *blockWorld) {
		creation := w.claim()
		w.cancel()
		w.advance(blockLease)
		w.succeed(w.claim())
		w.advance(lateCreation)
		w.succeed(w.claim())
		w.succeed(creation)
	})
	for seed := range uint64(150) {
		play(fmt.Sprint("seed ", seed), seed, func(w *blockWorld) {
			for range 20 {
				w.act()
			}
		})
	}
}

func (w *blockWorld) act() {
	switch w.rng.IntN(7) {
	case 0, 1:
		w.claim()
	case 2:
		w.pick(func(a *blockAttempt) bool { return !a.carriedOut }, w.carryOut)
	case 3, 4:
		w.pick(living, w.endAsItMay)
	case 5:
		w.pick(func(a *blockAttempt) bool { return living(a) && w.now.Before(a.claimed.Add(blockLease)) }, w.kill)
	case 6:
		if w.rng.IntN(3) > 0 {
			w.advance(blockLease + time.Second)
		} else {
			w.cancel()
		}
	}
}

// rest cancels the reservation, ends what is open and repeats the attempts that are due.
func (w *blockWorld) rest() {
	w.cancel()
	for _, a := range w.attempts {
		if living(a) {
			w.endAsItMay(a)
		}
	}
	for idle := 0; idle < 3; {
		w.advance(blockLease + time.Second)
		idle++
		for a := w.claim(); a != nil; a = w.claim() {
			idle = 0
			w.succeed(a)
		}
	}
}

func living(a *blockAttempt) bool { return a.ended.IsZero() }

func (w *blockWorld) note(what string, a *blockAttempt) {
	text := fmt.Sprint(w.now.Format("04:05 "), what)
	if a != nil {
		text += fmt.Sprintf(" %s %p", a.State, a)
	}
	w.trace = append(w.trace, text)
}

func (w *blockWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pick applies do to one of the attempts of which may is true.
func (w *blockWorld) pick(may func(*blockAttempt) bool, do func(*blockAttempt)) {
	for _, i := range w.rng.Perm(len(w.attempts)) {
		if may(w.attempts[i]) {
			do(w.attempts[i])
			return
		}
	}
}

func (w *blockWorld) claim() *blockAttempt {
	b, err := postgres.ClaimBlock(w.t.Context(), w.db.Pool, w.id, w.now, blockLease)
	if errors.Is(err, postgres.ErrNoBlock) {
		return nil
	}
	w.must(err)
	a := &blockAttempt{Block: b, claimed: w.now}
	w.attempts = append(w.attempts, a)
	w.note("claimed", a)
	return a
}

func (w *blockWorld) carryOut(a *blockAttempt) {
	a.carriedOut = true
	w.placed = a.State == postgres.BlockWanted
	w.note("carried out", a)
}

func (w *blockWorld) succeed(a *blockAttempt) {
	w.carryOut(a)
	w.end(a, true)
}

func (w *blockWorld) endAsItMay(a *blockAttempt) { w.end(a, a.carriedOut && w.rng.IntN(4) > 0) }

// end records the outcome of an attempt: the answer of the partner, or that there was none.
func (w *blockWorld) end(a *blockAttempt, answered bool) {
	a.ended = w.now
	if answered {
		w.note("answered", a)
		w.must(postgres.FinishBlock(w.t.Context(), w.db.Pool, a.Block, w.now.Add(lateCreation)))
		return
	}
	w.note("unanswered", a)
	w.must(postgres.RetryBlock(w.t.Context(), w.db.Pool, a.Block, "no answer", w.now.Add(firstRetry)))
}

func (w *blockWorld) kill(a *blockAttempt) {
	a.ended = w.now
	w.note("killed", a)
}

func (w *blockWorld) cancel() {
	w.note("canceled", nil)
	w.must(w.db.InTx(w.t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		var reservation int64
		if err := tx.QueryRow(ctx, `select reservation_id from channel_block where id = $1`, w.id).Scan(&reservation); err != nil {
			return err
		}
		_, err := postgres.UnwantBlocks(ctx, tx, booking.ReservationID(reservation), w.now)
		return err
	}))
}

// advance lets time pass. The partner carries out what it received late before.
func (w *blockWorld) advance(d time.Duration) {
	w.now = w.now.Add(d)
	for _, a := range w.attempts {
		if !a.carriedOut && !living(a) && !w.now.Before(a.ended.Add(lateCreation)) {
			w.carryOut(a)
		}
	}
	w.note("time", nil)
}
