package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// BenchmarkDoor carries out the three statements of an unlock one after another, alone, and reports the median of each
// and of all three: what an unlock costs of the database before anything else is done for it. The server is durable; only
// the grant waits for the disk.
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
			{ID: id, Branch: "gangnam", Device: "room_1", Outcome: postgres.DoorOutcome{Outcome: "opened"}}})
		if err != nil || reported[0].Decided != postgres.DoorSuccess {
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
