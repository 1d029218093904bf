package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	gatherMost   = 64 // calls in a group
	gatherWithin = 3 * time.Second
)

// Gather carries out calls of one kind in groups: those that come while others are on their way wait, and go together
// next, in one round trip and with one commit. A call that comes alone goes alone and at once. There is one group on its
// way at a time, so what a call does must not wait for others: see brief. The zero value is ready.
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

// inBatch runs one statement for each question, in one round trip and one transaction, and reads the row that each
// returns. scan gets pgx.ErrNoRows from the row when there is none.
func inBatch[Q, A any](ctx context.Context, q Querier, questions []Q, sql string, args func(Q) []any, scan func(pgx.Row, Q) (A, error)) ([]A, error) {
	batch := new(pgx.Batch)
	for _, question := range questions {
		batch.Queue(sql, args(question)...)
	}
	results := q.SendBatch(ctx, batch)
	answers := make([]A, len(questions))
	for i, question := range questions {
		answer, err := scan(results.QueryRow(), question)
		if err != nil {
			_ = results.Close() // it has the same error
			return nil, err
		}
		answers[i] = answer
	}
	return answers, results.Close()
}
