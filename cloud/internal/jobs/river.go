package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// River rescues the job of a killed worker after an hour by default, which is too late for payments.
const (
	jobTimeout  = 30 * time.Second
	rescueAfter = 90 * time.Second
)

// messageWorkers bounds the messages that are sent at the same time. River fetches at most ten times a second, so it is also a
// tenth of the messages of a second.
const messageWorkers = 64

// startDelay is the time before River is started again after it could not reach the database.
const startDelay = time.Second

// work runs River until ctx is done and returns when its jobs have finished. If the database is away when River starts, the
// sweep does the due work meanwhile.
func (s *Service) work(ctx context.Context) error {
	for {
		client, err := s.river()
		if err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
		if err = client.Start(context.WithoutCancel(ctx)); err == nil {
			<-ctx.Done()
			return stop(ctx, client)
		}
		s.Log.WarnContext(ctx, "the queue cannot be read yet", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(startDelay):
		}
	}
}

type client = river.Client[pgx.Tx]

func (s *Service) river() (*client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[queue.SendMessage]) error {
		return s.send(ctx, job.Args.MessageID)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[queue.Settle]) error {
		return s.settle(ctx, booking.ReservationID(job.Args.ReservationID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[queue.CashReceipt]) error {
		return s.Reserve.SettleReceipt(ctx, booking.ReservationID(job.Args.ReservationID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[queue.SyncChannel]) error {
		return s.Partner.SyncBlock(ctx, job.Args.BlockID)
	}))
	return river.NewClient(riverpgxv5.New(s.DB.Pool), &river.Config{
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: 16},
			queue.Messages:     {MaxWorkers: messageWorkers}, // messages do not wait for a payment provider that hangs
		},
		Workers:              workers,
		Logger:               s.Log,
		JobTimeout:           jobTimeout,
		RescueStuckJobsAfter: rescueAfter,
	})
}

// stop waits for running jobs, and cancels those that do not finish in time.
func stop(ctx context.Context, c *client) error {
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobTimeout)
	defer cancel()
	if c.Stop(stopping) == nil {
		return ctx.Err()
	}
	return errors.Join(ctx.Err(), c.StopAndCancel(context.WithoutCancel(ctx)))
}
