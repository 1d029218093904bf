package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestCleaning: after a stay its room is listed until it was cleaned. A cleaner opens it between stays only.
func TestCleaning(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s) // with a paid hour in room 1
	start := c.start
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
	refuses(t, "no base64", c.Cleaner.Post(room+"/done", map[string]string{"data": "?"}), "data")
	refuses(t, "no photo", c.Cleaner.Post(room+"/done", map[string]string{"data": "aGk="}), "data")
	photo := map[string]string{"data": base64.StdEncoding.EncodeToString(jpegOf(t, 800, 600))}
	says(t, "a photo of an unused room", c.Cleaner.Post("/v2/admin/cleaning/gangnam/2/done", photo),
		reply{http.StatusConflict, "SettingConflictException", "최근에 이용이 끝난 예약이 없어 사진을 남길 수 없습니다."})
	if rooms := list(c.Cleaner); len(rooms) != 1 {
		t.Errorf("after rejected photos: %+v, want room 1", rooms)
	}
	c.Cleaner.Post(room+"/done", photo).OK(t)
	if rooms := list(c.Cleaner); len(rooms) > 0 {
		t.Errorf("after cleaning: %+v", rooms)
	}

	// Managers see the photo with the stay, for 30 days.
	record := "/v2/admin/reservations/" + only(t, s, `select r.id::text from reservation r join room m on m.id = r.room_id where m.no = 1 and r.start_at = $1`, start)
	seen := func() *struct{ By, Photo string } {
		t.Helper()
		var answer struct{ Cleaned *struct{ By, Photo string } }
		c.Manager.Get(record).OK(t).Into(t, &answer)
		return answer.Cleaned
	}
	cleaned := seen()
	if cleaned == nil || cleaned.By != "admin:gangnam-cleaner" {
		t.Fatalf("the record has %+v, want a photo by the cleaner", cleaned)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(cleaned.Photo, "data:image/jpeg;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	if size, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil || size.Width != 480 {
		t.Errorf("the photo is %d pixels wide (%v), want 480", size.Width, err)
	}
	for _, kept := range []bool{true, false} {
		at := start.Add(time.Hour + postgres.CleaningPhotoTTL)
		if !kept {
			at = at.Add(time.Second)
		}
		if err := postgres.DeleteCleaningPhotos(t.Context(), s.DB.Pool, at); err != nil {
			t.Fatal(err)
		}
		if got := seen() != nil; got != kept {
			t.Errorf("at %s the photo is there: %t, want %t", at, got, kept)
		}
	}
}

// TestCleaningAfterChangedStay: guests leave a room to clean, too, whose stay is moved or cancelled after they have entered.
func TestCleaningAfterChangedStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	waitOnline(t, connectAgent(t, s, "gangnam", protocol.Inventory{}))
	id, key := c.running(t)
	toClean := func(when, want string) {
		t.Helper()
		var answer struct {
			Rooms []struct{ RoomNo, EndedAt string }
		}
		c.Cleaner.Get("/v2/admin/cleaning").OK(t).Into(t, &answer)
		var rooms []string
		for _, r := range answer.Rooms {
			rooms = append(rooms, r.RoomNo)
		}
		if got := strings.Join(rooms, " "); got != want {
			t.Errorf("%s: rooms %q are to be cleaned, want %q", when, got, want)
		}
	}
	enter := func() {
		t.Helper()
		press(c.Nobody, key).OK(t)
		eventually(t, "the door is open", func() bool {
			return only(t, s, `select count(*)::text from door_request where finished_at is null`) == "0"
		})
	}
	move := func(room string) {
		t.Helper()
		c.Manager.Put("/admin/reservation/"+id, map[string]any{
			"room": room, "startDateTime": wire(c.start), "endDateTime": wire(c.start.Add(time.Hour)), "reason": "에어컨 고장"}).OK(t)
	}
	move("2")
	toClean("moved before an entry", "")
	enter()
	toClean("during the stay", "")
	move("3")
	toClean("moved after the guests had entered", "2")
	photo := map[string]string{"data": base64.StdEncoding.EncodeToString(jpegOf(t, 800, 600))}
	s.Clock.Advance(time.Minute)
	c.Cleaner.Post("/v2/admin/cleaning/gangnam/2/done", photo).OK(t)
	toClean("cleaned", "")
	var record struct{ Cleaned *struct{ By string } }
	if c.Manager.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record); record.Cleaned == nil {
		t.Error("the photo is not in the record of the stay")
	}
	enter()
	c.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", nil).OK(t)
	toClean("cancelled after the guests had entered", "3")

	var entered struct{ ID string }
	c.Manager.Post("/v2/admin/branches/gangnam/partner-bookings", map[string]any{
		"partner": "place", "externalId": "p-1", "roomNo": "4", "startDateTime": wire(c.start), "endDateTime": wire(c.start.Add(time.Hour)), "mobileNum": "01088880001",
	}).OK(t).Into(t, &entered)
	id, key = entered.ID, ownerKey(t, s, entered.ID)
	enter()
	c.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", nil).OK(t)
	toClean("a partner's stay, cancelled after the guests had entered", "3 4")
}

// A room is listed after a stay of a partner, which may take weeks, as after any other.
func TestCleaningAfterLongStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for room, days := range map[int]int{1: 2, 2: 8, 3: 30} {
		if _, err := s.DB.Pool.Exec(t.Context(), `
			with root as (
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, stay_end)
				select m.branch_id, m.id, 'DONE', 'PARTNER', a.at, a.at + interval '5 hours', tstzrange(a.at, a.at + interval '310 minutes'), $3 - interval '1 hour'
				from room m join branch b on b.id = m.branch_id, lateral (select $3::timestamptz - $2::integer * interval '1 day') a (at)
				where b.code = 'gangnam' and m.no = $1 returning *)
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
			select branch_id, room_id, 'DONE', 'PARTNER', a.at, a.at + interval '3 hours', tstzrange(a.at, a.at + interval '190 minutes'), id
			from root, lateral (select $3::timestamptz - interval '4 hours') a (at)`, room, days, s.Clock.Now().UTC()); err != nil {
			t.Fatal(err)
		}
	}
	var list struct{ Rooms []struct{ RoomNo string } }
	s.Admin(t, "hq", "hq-demo").Get("/v2/admin/cleaning?branch=gangnam").OK(t).Into(t, &list)
	if len(list.Rooms) != 3 {
		t.Errorf("to clean: %v, want rooms 1, 2 and 3", list.Rooms)
	}
}
