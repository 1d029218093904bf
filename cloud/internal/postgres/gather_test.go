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

func TestGatherTakesThoseThatWaitTogether(t *testing.T) {
	t.Parallel()
	var (
		gather  postgres.Gather[int, int]
		groups  atomic.Int64
		blocked = make(chan struct{})
		release = make(chan struct{})
	)
	double := func(_ context.Context, questions []int) ([]int, error) {
		groups.Add(1)
		if questions[0] < 0 { // the one that keeps the others waiting
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
			if answer, err := gather.Do(t.Context(), question, double); err != nil || answer != 2*question {
				t.Errorf("%d was answered %d, %v", question, answer, err)
			}
		})
	}
	call(-1)
	<-blocked
	// These must wait. One gives up, and the others do not notice.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gather.Do(gone, 0, double); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	for question := range 40 {
		call(question)
	}
	for gather.Waiting() < 41 {
		time.Sleep(time.Millisecond) // nothing else tells that a goroutine waits
	}
	close(release)
	calls.Wait()
	if n := groups.Load(); n != 2 {
		t.Errorf("42 questions went in %d groups", n)
	}
}

func TestGatherTriesARefusedGroupOneByOne(t *testing.T) {
	t.Parallel()
	var gather postgres.Gather[int, int]
	refused, blocked, release := &pgconn.PgError{Code: "22012"}, make(chan struct{}), make(chan struct{})
	answer := func(_ context.Context, questions []int) ([]int, error) {
		if questions[0] < 0 {
			blocked <- struct{}{}
			<-release
			return questions, nil
		}
		for _, q := range questions {
			if q == 3 {
				return nil, refused
			}
		}
		return questions, nil
	}
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = gather.Do(t.Context(), -1, answer) })
	<-blocked
	for question := range 6 {
		calls.Go(func() {
			_, err := gather.Do(t.Context(), question, answer)
			if want := question == 3; want != errors.Is(err, refused) {
				t.Errorf("%d: %v", question, err)
			}
		})
	}
	for gather.Waiting() < 6 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	calls.Wait()
}
