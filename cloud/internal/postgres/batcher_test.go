package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestBatcherGroupsWaitingCalls(t *testing.T) {
	t.Parallel()
	var (
		batcher postgres.Batcher[int, int]
		batches atomic.Int64
		blocked = make(chan struct{})
		release = make(chan struct{})
	)
	double := func(_ context.Context, questions []int) ([]int, error) {
		batches.Add(1)
		if questions[0] < 0 { // the first batch, while the other calls queue
			blocked <- struct{}{}
			<-release
		}
		answers := make([]int, len(questions))
		for i, q := range questions {
			answers[i] = 2 * q
		}
		return answers, nil
	}
	var calls sync.WaitGroup
	call := func(question int) {
		calls.Go(func() {
			if answer, err := batcher.Do(t.Context(), question, double); err != nil || answer != 2*question {
				t.Errorf("answer to %d: got %d, %v, want %d", question, answer, err, 2*question)
			}
		})
	}
	call(-1)
	<-blocked
	// These calls queue. A cancelled one does not affect the others.
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := batcher.Do(canceled, 0, double); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled call: got %v, want context.Canceled", err)
	}
	for question := range 40 {
		call(question)
	}
	for batcher.Waiting() < 41 {
		time.Sleep(time.Millisecond) // no event reports that a goroutine is waiting
	}
	close(release)
	calls.Wait()
	if n := batches.Load(); n != 2 {
		t.Errorf("batches of 42 questions: got %d, want 2", n)
	}
}

func TestBatcherRunsRejectedBatchOneByOne(t *testing.T) {
	t.Parallel()
	var batcher postgres.Batcher[int, int]
	rejected, blocked, release := &pgconn.PgError{Code: "22012"}, make(chan struct{}), make(chan struct{})
	answer := func(_ context.Context, questions []int) ([]int, error) {
		if questions[0] < 0 {
			blocked <- struct{}{}
			<-release
			return questions, nil
		}
		for _, q := range questions {
			if q == 3 {
				return nil, rejected
			}
		}
		return questions, nil
	}
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = batcher.Do(t.Context(), -1, answer) })
	<-blocked
	for question := range 6 {
		calls.Go(func() {
			_, err := batcher.Do(t.Context(), question, answer)
			if want := question == 3; want != errors.Is(err, rejected) {
				t.Errorf("question %d: got error %v, want rejected: %v", question, err, want)
			}
		})
	}
	for batcher.Waiting() < 6 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	calls.Wait()
}

func TestBatcherRepeatsACallThatLostALock(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"40P01": 2, "40001": 2, "55P03": 2, "22012": 1} {
		var batcher postgres.Batcher[int, int]
		runs := 0
		answer, err := batcher.Do(t.Context(), 7, func(_ context.Context, questions []int) ([]int, error) {
			if runs++; runs == 1 {
				return nil, &pgconn.PgError{Code: code}
			}
			return questions, nil
		})
		if runs != want || (err == nil) != (want == 2) || err == nil && answer != 7 {
			t.Errorf("rejected with %s: got %d, %v after %d runs, want %d", code, answer, err, runs, want)
		}
	}
}
