package postgres_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestVitalsCountPressesOfEachDoor(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Pool.Exec(t.Context(), `insert into branch (code) values ($1)`, "gangnam"); err != nil {
		t.Fatal(err)
	}
	press := func(device, state, detail string, ago time.Duration, n int) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), `
			insert into door_request (id, branch_id, kind, device, devices, requested_by, state, detail, created_at, finished_at)
			select gen_random_uuid(), (select id from branch), 'room', $1, array[$1], 'admin:hq', $2, nullif($3, ''), now() - $4::interval, now()
			from generate_series(1, $5)`, device, state, detail, ago, n); err != nil {
			t.Fatal(err)
		}
	}
	press("room_1", "SUCCESS", "", time.Hour, 3)
	press("room_1", "FAILED", postgres.Offline, time.Hour, 5)
	press("room_1", "FAILED", "", 7*time.Hour, 5)
	press("room_2", "FAILED", "not confirmed", time.Hour, 2)
	press("room_2", "UNKNOWN", "", time.Hour, 1)
	v, err := postgres.ReadVitals(t.Context(), db.Pool, time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := []postgres.DoorPresses{{Branch: "gangnam", Device: "room_2", Failed: 3}, {Branch: "gangnam", Device: "room_1", Opened: 3}}
	if len(v.Doors) != 2 || v.Doors[0] != want[0] || v.Doors[1] != want[1] {
		t.Errorf("got %+v, want %+v", v.Doors, want)
	}

	// However many doors there are, their time series are bounded, and the ones that fail are among them.
	for n := range postgres.MaxDoorFigures {
		press("room_"+string(rune('a'+n%26))+time.Duration(n).String(), "SUCCESS", "", time.Hour, 4)
	}
	if v, err = postgres.ReadVitals(t.Context(), db.Pool, time.Now(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(v.Doors) != postgres.MaxDoorFigures || v.Doors[0] != want[0] {
		t.Errorf("got %d doors, first %+v, want %d, first %+v", len(v.Doors), v.Doors[0], postgres.MaxDoorFigures, want[0])
	}
}
