package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	gatherMost   = 64 // calls in a group
	gatherWithin = 3 * time.Second
)

// Gather carries out calls of one kind in groups: those that come while others are on their way wait, and go together
// next, in one round trip and with one commit. A call that comes alone goes alone and at once. There is one group on its
// way at a time, so what a call does must not wait for others: see forDoors. The zero value is ready.
type Gather[Q, A any] struct {
	mu      sync.Mutex
	waiting []*gathered[Q, A]
	busy    bool // a group is on its way
}

type gathered[Q, A any] struct {
	question Q
	answer   A
	err      error
	done     chan struct{}
}

// Do returns run's answer to a question; run gets several at a time and answers each, in their order, or fails as a
// whole and then has changed nothing. When ctx ends first the question may be answered nevertheless.
func (g *Gather[Q, A]) Do(ctx context.Context, question Q, run func(context.Context, []Q) ([]A, error)) (A, error) {
	c := &gathered[Q, A]{question: question, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	free := !g.busy
	g.busy = true
	g.mu.Unlock()
	if free { // without a goroutine of its own: a call that comes alone is faster so
		if g.once(ctx, run) {
			go func() {
				for g.once(ctx, run) {
				}
			}()
		}
	}
	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// once carries out one group. It reports whether more wait, for the caller to go on.
func (g *Gather[Q, A]) once(ctx context.Context, run func(context.Context, []Q) ([]A, error)) (more bool) {
	g.mu.Lock()
	n := min(len(g.waiting), gatherMost)
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.mu.Unlock()
	if n > 0 {
		// The group is not only the caller's: who hangs up must not take the others along.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherWithin)
		carryOut(ctx, group, run)
		cancel()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = len(g.waiting) > 0
	return g.busy
}

// carryOut runs a group, and one by one when the database refused it: one of them is at fault, and the others must not
// pay for it. After any other failure nobody knows what was committed.
func carryOut[Q, A any](ctx context.Context, group []*gathered[Q, A], run func(context.Context, []Q) ([]A, error)) {
	questions := make([]Q, len(group))
	for i, c := range group {
		questions[i] = c.question
	}
	answers, err := run(ctx, questions)
	if refused := (*pgconn.PgError)(nil); len(group) > 1 && errors.As(err, &refused) {
		for _, c := range group {
			carryOut(ctx, []*gathered[Q, A]{c}, run)
		}
		return
	}
	for i, c := range group {
		if c.err = err; err == nil {
			c.answer = answers[i]
		}
		close(c.done)
	}
}

// together answers questions with one statement, which returns for each answer the question's place, from 1 on, and what
// scan reads. Questions about the same row follow one another, in statements of one transaction: one statement changes a
// row once only. A question without an answer gets the zero value.
func together[Q, A any](ctx context.Context, q Querier, questions []Q, row func(Q) uuid.UUID, sql string, args func([]Q) []any, scan func(rows pgx.Rows, place *int) (A, error)) ([]A, error) {
	answers := make([]A, len(questions))
	read := func(rows pgx.Rows, places []int) error {
		defer rows.Close()
		for rows.Next() {
			var place int
			answer, err := scan(rows, &place)
			if err != nil {
				return err
			}
			answers[places[place-1]] = answer
		}
		return rows.Err()
	}
	turns := turns(questions, row)
	if len(turns) == 1 { // nearly always, and without a batch it is faster
		rows, err := q.Query(ctx, sql, args(questions)...)
		if err != nil {
			return nil, err
		}
		return answers, read(rows, turns[0])
	}
	batch := new(pgx.Batch)
	for _, places := range turns {
		turn := make([]Q, len(places))
		for i, at := range places {
			turn[i] = questions[at]
		}
		batch.Queue(sql, args(turn)...).Query(func(rows pgx.Rows) error { return read(rows, places) })
	}
	return answers, q.SendBatch(ctx, batch).Close()
}

// turns deals questions out so that no two in a turn are about the same row. It returns their places.
func turns[Q any](questions []Q, row func(Q) uuid.UUID) (turns [][]int) {
	before := make(map[uuid.UUID]int, len(questions))
	for i, question := range questions {
		n := before[row(question)]
		before[row(question)]++
		if n == len(turns) {
			turns = append(turns, make([]int, 0, len(questions)))
		}
		turns[n] = append(turns[n], i)
	}
	return turns
}

// column is one member of each question, as an argument for unnest.
func column[Q, T any](questions []Q, member func(Q) T) pgtype.FlatArray[T] {
	list := make(pgtype.FlatArray[T], len(questions))
	for i, question := range questions {
		list[i] = member(question)
	}
	return list
}

// native is an id as pgx writes it without a detour over its text.
func native(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
