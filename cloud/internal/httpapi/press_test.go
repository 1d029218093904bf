package httpapi_test

import (
	"math"
	"net/http"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

func TestPressesAreLimited(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest, hq := s.Client(t), s.Admin(t, "hq", "hq-demo")
	key := keyFor(t, s, 1)
	byGuest := func() servicetest.Answer {
		return guest.Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "front", "key": key})
	}
	byStaff := func() servicetest.Answer { return hq.Post("/admin/door/v2/unlock/gangnam/front", nil) }
	const perMinute = 1200
	for range perMinute/10 + 1 { // afterwards the replica counts presses in the database
		byStaff().OK(t)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update rate_limit set count = $1, window_start = clock_timestamp() where key like 'unlock:%'`, perMinute); err != nil {
		t.Fatal(err)
	}
	toRoom := func() servicetest.Answer { return hq.Post("/admin/door/v2/unlock/gangnam/room/1", nil) }
	for name, press := range map[string]func() servicetest.Answer{"guest": byGuest, "staff": byStaff, "staff, a room": toRoom} {
		answer := press()
		for n := 0; answer.HTTP == http.StatusOK && n < perMinute; n++ {
			answer = press()
		}
		answer.Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.")
		if answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", name)
		}
	}
	s.Client(t).Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "front", "key": keyFor(t, s, 2)}).OK(t)
}

func TestUnlockForAnotherRoom(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	key := keyFor(t, s, 1)
	for _, room := range []any{1, "1", nil} {
		s.Client(t).Post("/door/v2/unlock", map[string]any{"branch": "gangnam", "doorlockType": "room", "key": key, "room": room}).OK(t)
	}
	for _, room := range []any{2, "2", math.MaxInt32 + 1, math.MaxInt64} {
		s.Client(t).Post("/door/v2/unlock", map[string]any{"branch": "gangnam", "doorlockType": "room", "key": key, "room": room}).
			Fails(t, http.StatusConflict, "ResourceConflictException", "예약 정보가 변경되었습니다. 다시 확인해 주세요.")
	}
	s.Client(t).Post("/door/v2/unlock", map[string]any{"branch": "gangnam", "doorlockType": "room", "key": key, "room": "x"}).
		Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
}

// TestAnnouncedPress announces presses: the answer is the same with and without a right, and the press that follows opens.
func TestAnnouncedPress(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	key := keyFor(t, s, 1)
	guest := s.Client(t)
	announce := func(key string, body any) servicetest.Answer {
		return guest.Post("/v2/keys/"+key+"/announcements", body)
	}
	room := map[string]string{"branch": "gangnam", "door": "room"}
	answer := announce(key, room).OK(t)
	for name, other := range map[string]servicetest.Answer{
		"unknown key": announce("6b1e64c5-1a5e-4a8e-9b52-0d4a3c1f7a90", room), "not a key": announce("nonsense", room),
		"another branch": announce(key, map[string]string{"branch": "hongdae", "door": "room"}),
		"unknown branch": announce(key, map[string]string{"branch": "nowhere", "door": "room"}),
	} {
		if other.HTTP != answer.HTTP || string(other.Raw) != string(answer.Raw) {
			t.Errorf("%s: answer %d %s, want %s", name, other.HTTP, other.Raw, answer.Raw)
		}
	}
	for _, body := range []any{map[string]string{"branch": "gangnam", "door": "side"}, map[string]string{"door": "room"}, map[string]string{"branch": "gangnam"}} {
		announce(key, body).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	}
	id := requestID(t, guest, "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": key})
	if e := guest.Send("GET", "/door/v2/unlock/subscribe?requestId="+id+"&key="+key, nil, nil).Event(t); e.Status != "SUCCESS" || len(a.Driven()) != 1 {
		t.Errorf("result %+v, driven %v", e, a.Driven())
	}
	for n := 0; answer.HTTP == http.StatusOK && n < 1000; n++ {
		answer = announce(key, room)
	}
	answer.Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
}
