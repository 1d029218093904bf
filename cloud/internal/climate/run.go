package climate

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// followInterval is the interval at which rooms are compared with their stays.
	followInterval = 5 * time.Second
	// sendWorkers bounds the commands in progress: an agent that does not answer takes seconds.
	sendWorkers = 16
)

// Run makes the air follow the stays until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		if err := s.Follow(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "climate: rooms were not compared with their stays; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Follow compares all rooms that have a policy with their stays and sends the commands that are due. One replica compares at a
// time, and each attempt to send is claimed, so several replicas send each command once.
func (s *Service) Follow(ctx context.Context) error {
	var refused []error
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		refused = nil
		world, ok, err := postgres.ReadClimate(ctx, tx, now)
		if err != nil || !ok {
			return err
		}
		store := func(rooms ...postgres.ClimateChanges) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return postgres.ChangeClimate(ctx, tx, now, rooms...) })
		}
		rooms := decide(world, now)
		if err := store(rooms...); err == nil || ctx.Err() != nil || postgres.IsUnavailable(err) {
			return err
		}
		for _, room := range rooms { // each alone, so that one that cannot be stored does not stop the others
			if err := store(room); err != nil {
				refused = append(refused, err)
			}
		}
		return nil
	})
	return errors.Join(err, errors.Join(refused...), s.sendDue(ctx))
}

// decide compares every room with its stays.
func decide(w postgres.ClimateWorld, now time.Time) (all []postgres.ClimateChanges) {
	stays, open := map[int32][]postgres.ClimateStay{}, map[int32][]postgres.ClimateIntent{}
	for _, stay := range w.Stays {
		stays[stay.Room] = append(stays[stay.Room], stay)
	}
	for _, i := range w.Open {
		open[i.Room] = append(open[i.Room], i)
	}
	inUse := map[int32]map[string]bool{}
	rooms := make([]*following, len(w.Rooms))
	for n, room := range w.Rooms {
		if inUse[room.Branch] == nil {
			inUse[room.Branch] = map[string]bool{}
		}
		f := &following{room: room, stays: stays[room.Room], open: open[room.Room], now: now, inUse: inUse[room.Branch]}
		rooms[n] = f
		if f.owner() != nil {
			f.inUse[room.Unit] = true
		}
		delete(open, room.Room)
	}
	for _, f := range rooms {
		all = append(all, f.follow())
	}
	for _, intents := range open { // of rooms without a policy
		for _, i := range intents {
			if i.State == "planned" && i.Edge == "leave" && inUse[i.Branch][i.Unit] {
				all = append(all, postgres.ClimateChanges{Cancel: []int64{i.ID}})
			}
		}
	}
	return all
}

// sendDue sends the intents that are due, except those of branches whose active agent is not connected: they stay planned.
func (s *Service) sendDue(ctx context.Context) error {
	due, err := postgres.DueIntents(ctx, s.DB.Pool, s.DB.Now())
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(sendWorkers)
	connected := map[string]bool{}
	for id, branch := range due {
		online, known := connected[branch]
		if !known {
			if _, online, err = postgres.ConnectedAgent(ctx, s.DB.Pool, branch, s.Link.Online(branch)); err != nil {
				return errors.Join(err, group.Wait())
			}
			connected[branch] = online
		}
		if online {
			group.Go(func() error { return s.send(ctx, id) })
		}
	}
	return group.Wait()
}

// send makes one attempt. An attempt that fails counts like one without effect.
func (s *Service) send(ctx context.Context, id int64) error {
	now := s.DB.Now().UTC().Truncate(time.Microsecond)
	i, ok, err := postgres.ClaimIntent(ctx, s.DB.Pool, id, now, now.Add(leaveRetry), maxReadingAge)
	if err != nil || !ok {
		return err
	}
	err = s.Command(ctx, postgres.ClimateActor, i.Option)
	now = s.DB.Now().UTC().Truncate(time.Microsecond)
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil:
		return postgres.NoteIntentSent(ctx, s.DB.Pool, id, now)
	case errors.Is(err, ErrUnknownOption), i.Attempts >= maxAttempts:
		return postgres.NoteIntentFailed(ctx, s.DB.Pool, id, now)
	case errors.Is(err, ErrDeviceUnavailable):
		return nil // claimed until the next attempt
	}
	return err
}
