package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkDoor executes the three statements of an unlock one after another, without concurrency, and reports the median of
// each and of their sum: the database's share of an unlock. The server is durable; only the grant waits for the disk.
func BenchmarkDoor(b *testing.B) {
	const unlocks = 3000
	db, _ := durable(b)
	now := time.Now().Truncate(time.Hour)
	key, hash := oneRoom(b, db, now)
	var press, grant, result, all []float64
	for range unlocks {
		id, began := uuid.New(), time.Now()
		lap := func(from time.Time) (time.Time, float64) {
			now := time.Now()
			return now, float64(now.Sub(from)) / float64(time.Microsecond)
		}
		if !ask(b, db, id, key, hash, now).Made {
			b.Fatal("not written")
		}
		pressed, took := lap(began)
		press = append(press, took)
		if claim(b, db, id, now) == nil {
			b.Fatal("not granted")
		}
		granted, took := lap(pressed)
		grant = append(grant, took)
		reported, err := postgres.ReportDoors(b.Context(), db.Doors, []postgres.DoorReport{
			{ID: id, Agent: agent("gangnam"), Nonce: "nonce", Device: "room_1", Outcome: door.Outcome{Outcome: "opened"}}})
		if err != nil || reported[0].Decided != door.Success {
			b.Fatalf("%+v: %v", reported, err)
		}
		_, took = lap(granted)
		result = append(result, took)
		_, took = lap(began)
		all = append(all, took)
	}
	b.ReportMetric(median(press), "press-p50-us")
	b.ReportMetric(median(grant), "grant-p50-us")
	b.ReportMetric(median(result), "result-p50-us")
	b.ReportMetric(median(all), "p50-us")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBatcher grants the claims of 64 concurrent clients on a durable server, first with a Batcher and then with a
// statement and a commit for each claim.
func BenchmarkBatcher(b *testing.B) {
	const clients, claimsPerClient = 64, 30
	db, _ := durable(b)
	now := time.Now().Truncate(time.Hour)
	key, hash := oneRoom(b, db, now)
	grant := func(ctx context.Context, claims []postgres.DoorClaim) ([]postgres.GrantedDoors, error) {
		return postgres.GrantDoors(ctx, db.Doors, claims, time.Minute, time.Minute)
	}
	var batcher postgres.Batcher[postgres.DoorClaim, postgres.GrantedDoors]
	measure := func(do func(postgres.DoorClaim) (postgres.GrantedDoors, error)) (perSecond float64) {
		ids := make([]uuid.UUID, clients*claimsPerClient)
		for i := range ids {
			ids[i] = uuid.New()
			ask(b, db, ids[i], key, hash, now)
		}
		began := time.Now()
		var group sync.WaitGroup
		for client := range clients {
			group.Go(func() {
				for _, id := range ids[client*claimsPerClient:][:claimsPerClient] {
					doors, err := do(postgres.DoorClaim{ID: id, Agent: agent("gangnam"), Nonce: "nonce", Now: now})
					if err != nil || doors.Doors == nil {
						b.Errorf("claim %s: %v, %v", id, doors, err)
						return
					}
				}
			})
		}
		group.Wait()
		return float64(len(ids)) / time.Since(began).Seconds()
	}
	var alone, batched []float64
	for range 3 {
		alone = append(alone, measure(func(c postgres.DoorClaim) (postgres.GrantedDoors, error) {
			granted, err := grant(b.Context(), []postgres.DoorClaim{c})
			if err != nil {
				return postgres.GrantedDoors{}, err
			}
			return granted[0], nil
		}))
		batched = append(batched, measure(func(c postgres.DoorClaim) (postgres.GrantedDoors, error) { return batcher.Do(b.Context(), c, grant) }))
	}
	b.ReportMetric(median(alone), "alone/s")
	b.ReportMetric(median(batched), "batched/s")
	b.ReportMetric(0, "ns/op")
}
