package httpapi_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestNoRoomWithoutALockIsOnSale sends the changes of administrators and agents to a branch in random order. After each, a room
// that is on sale has a door that an agent has reported, with a PIN, or was declared to have no lock. An answer of 500 would
// mean that only the database has prevented it.
func TestNoRoomWithoutALockIsOnSale(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	hq.Post("/v2/admin/branches", map[string]any{"branch": "sinchon", "nameKo": "신촌점", "nameEn": "Sinchon"}).OK(t)
	random := rand.New(rand.NewPCG(7, 1))
	sold := 0
	for step := range 300 {
		room := 1 + random.IntN(4)
		path := fmt.Sprintf("/v2/admin/branches/sinchon/rooms/%d", room)
		var answer servicetest.Answer
		switch random.IntN(6) {
		case 0:
			answer = hq.Put(path, map[string]any{"min60": 10_000, "noLock": random.IntN(3) == 0})
		case 1:
			answer = hq.Delete(path, nil)
		case 2:
			answer = hq.Put(fmt.Sprintf("/v2/admin/branches/sinchon/doors/room_%d/pin", room), map[string]any{"pin": "471100"})
		case 3: // what the agent reports replaces its earlier report
			if _, err := s.DB.Pool.Exec(t.Context(), `
				insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
				select id, '', now(), now(), true, jsonb_build_object('doors', jsonb_build_array(jsonb_build_object('device', $1::text))) from branch where code = 'sinchon'
				on conflict (branch_id) do update set inventory = excluded.inventory`, fmt.Sprintf("room_%d", room)); err != nil {
				t.Fatal(err)
			}
			continue
		case 4, 5:
			enabled := random.IntN(4) > 0
			answer = hq.Patch(fmt.Sprintf("/admin/machines/sinchon/%d", room), map[string]any{"enabled": enabled})
			if enabled && answer.HTTP == 200 {
				sold++
			}
		}
		if answer.HTTP >= 500 {
			t.Fatalf("step %d: %d %s", step, answer.HTTP, answer.Raw)
		}
		if wrong := only(t, s, `
			select count(*)::text from room r join branch b on b.id = r.branch_id
			where b.code = 'sinchon' and enabled and (lock = 'unproven' or lock = 'fitted'
			      and not exists (select from door_pin p where p.branch_id = b.id and p.device = 'room_' || r.no))`); wrong != "0" {
			t.Fatalf("step %d: %s rooms are on sale without a door that opens", step, wrong)
		}
	}
	if sold < 5 {
		t.Errorf("rooms were put on sale %d times, want at least 5", sold)
	}
}
