package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestCleaning: after a stay its room is listed until it was cleaned. A cleaner opens it between stays only.
func TestCleaning(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s) // with a paid hour in room 1
	start := slot(s, 3*time.Hour)
	waitOnline(t, connectAgent(t, s, "gangnam", protocol.Inventory{}))
	const room = "/v2/admin/cleaning/gangnam/1"
	unlock := func(door string) servicetest.Answer {
		return c.Cleaner.Post(room+"/unlock", map[string]string{"door": door})
	}
	opens := func(what, door string) {
		t.Helper()
		var answer struct{ Opened bool }
		if unlock(door).OK(t).Into(t, &answer); !answer.Opened {
			t.Errorf("%s: the %s door did not open", what, door)
		}
	}
	list := func(client *servicetest.Client) (rooms []struct{ Branch, RoomNo, EndedAt string }) {
		t.Helper()
		var answer struct {
			Rooms []struct{ Branch, RoomNo, EndedAt string }
		}
		client.Get("/v2/admin/cleaning").OK(t).Into(t, &answer)
		return answer.Rooms
	}
	occupied := reply{http.StatusConflict, "SettingConflictException", "이용 중이거나 곧 이용할 룸에는 들어갈 수 없습니다."}

	s.Clock.Stop(start.Add(-3 * time.Minute))
	opens("before the stay", "room")
	for _, at := range []time.Duration{-2 * time.Minute, 0, time.Hour - time.Second} {
		s.Clock.Stop(start.Add(at))
		says(t, "during the stay", unlock("room"), occupied)
		opens("during the stay", "front")
		if rooms := list(c.Cleaner); len(rooms) > 0 {
			t.Errorf("listed during the stay: %+v", rooms)
		}
	}
	s.Clock.Stop(start.Add(time.Hour))
	if rooms := list(c.Cleaner); len(rooms) != 1 || rooms[0].RoomNo != "1" || rooms[0].Branch != "gangnam" {
		t.Fatalf("after the stay: %+v, want room 1", rooms)
	}
	if rooms := list(c.Other); len(rooms) > 0 {
		t.Errorf("another branch sees %+v", rooms)
	}
	says(t, "a branch of others", c.Cleaner.Get("/v2/admin/cleaning?branch=hongdae"), outOfScope)
	opens("after the stay", "room")
	refuses(t, "no such door", unlock("window"))
	says(t, "the doors of administrators", c.Cleaner.Post(adminUnlock+"gangnam/room/1", nil), notAuthorized)
	c.Cleaner.Post(room+"/done", nil).OK(t)
	if rooms := list(c.Cleaner); len(rooms) > 0 {
		t.Errorf("after cleaning: %+v", rooms)
	}
}
