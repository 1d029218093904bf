package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A policy is checked and stored, its options are offered to the guest, and the intents of the stay are listed.
func TestClimatePolicy(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	for id, unit := range map[string]string{"cool24": "로비", "cool22": "로비", "off": "로비", "other": "창고"} {
		if _, err := c.s.DB.Pool.Exec(t.Context(), `
			insert into airconditioner_option (id, branch_id, unit, path) select $1, id, $2, array['냉방', $1] from branch where code = 'gangnam'`, id, unit); err != nil {
			t.Fatal(err)
		}
	}
	path := "/v2/admin/branches/gangnam/climate-policy"
	policy := func(change map[string]any) map[string]any {
		p := map[string]any{"room": "1", "unit": "로비", "arriveOption": "cool24", "leaveOption": "off", "leadMinutes": 15, "lagMinutes": 5, "low": 22, "high": 26.5,
			"guestOptions": []string{"cool24", "cool22"}}
		for name, value := range change {
			p[name] = value
		}
		return map[string]any{"rooms": []any{p}}
	}
	for field, bad := range map[string]any{"leadMinutes": 61, "lagMinutes": -1, "low": 27, "high": 41, "unit": "", "room": "2147483648", "arriveOption": "other",
		"guestOptions": []string{"cool24", "cool22", "off", "cool24"}} {
		c.Manager.Put(path, policy(map[string]any{field: bad})).Fails(t, 400, "IllegalArguemntError", "")
	}
	c.Manager.Put(path, policy(map[string]any{"room": "x"})).Fails(t, 400, "IllegalArguemntError", "룸 번호(room) 값의 형식이 올바르지 않습니다.")
	for field, bad := range map[string]any{"leaveOption": "none", "room": 99} {
		c.Manager.Put(path, policy(map[string]any{field: bad})).Fails(t, 404, "ResourceNotFoundException", "")
	}
	twice := policy(nil)["rooms"].([]any)
	c.Manager.Put(path, map[string]any{"rooms": append(twice, twice[0])}).Fails(t, 400, "IllegalArguemntError", "한 룸(room)에는 정책을 하나만 정할 수 있습니다.")
	var stored struct {
		Rooms []struct {
			Room, Unit   string
			LeadMinutes  int
			High         float64
			GuestOptions []string
		}
	}
	c.Manager.Put(path, policy(map[string]any{"room": 1})).OK(t)
	c.Viewer.Get(path).OK(t).Into(t, &stored)
	if len(stored.Rooms) != 1 || stored.Rooms[0].Room != "1" || stored.Rooms[0].High != 26.5 || len(stored.Rooms[0].GuestOptions) != 2 {
		t.Fatalf("stored %+v", stored)
	}

	// The customer of the cast has paid for room 1.
	id := reservationAt(t, c.s, 1, c.start)
	key := "/v2/keys/" + ownerKey(t, c.s, id)
	var facts struct {
		Climate *struct {
			Options []struct{ ID, Label string }
			Current *string
		}
	}
	c.Nobody.Get(key).OK(t).Into(t, &facts)
	if facts.Climate == nil || len(facts.Climate.Options) != 2 || facts.Climate.Options[0].Label != "냉방 cool24" || *facts.Climate.Current != "cool24" {
		t.Fatalf("facts %+v", facts)
	}
	c.Nobody.Post(key+"/climate", map[string]any{"option": "off"}).Fails(t, 404, "ResourceNotFoundException", "")
	c.Nobody.Post(key+"/climate", map[string]any{}).Fails(t, 400, "IllegalArguemntError", "")
	c.Nobody.Post(key+"/climate", map[string]any{"option": "cool22"}).OK(t)
	c.Nobody.Get(key).OK(t).Into(t, &facts)
	if *facts.Climate.Current != "cool22" {
		t.Errorf("current %s", *facts.Climate.Current)
	}

	// The running service plans the stay.
	var overview struct {
		Intents []struct{ Room, Reservation, Edge, State, At string }
	}
	for limit := time.Now().Add(time.Minute); len(overview.Intents) < 2 && time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		c.Manager.Get("/v2/admin/branches/gangnam/climate").OK(t).Into(t, &overview)
	}
	if len(overview.Intents) != 2 || overview.Intents[0].Reservation != id || overview.Intents[0].Edge != "arrive" || overview.Intents[1].Edge != "leave" ||
		overview.Intents[0].State != "planned" || overview.Intents[0].Room != "1" {
		t.Errorf("intents %+v", overview)
	}
	c.Manager.Put(path, map[string]any{"rooms": []any{}}).OK(t)
	c.Manager.Get("/v2/admin/branches/gangnam/climate").OK(t).Into(t, &overview)
	for _, i := range overview.Intents {
		if i.State != "canceled" {
			t.Errorf("after the policy was removed: %+v", i)
		}
	}
}
