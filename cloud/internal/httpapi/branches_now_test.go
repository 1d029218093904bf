package httpapi_test

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type branchesNow struct {
	Branches []struct {
		Branch    string
		Status    string
		FreeRooms int
		Online    bool
		NextFree  *string `json:"nextFreeDateTime"`
	}
	Next *string
}

func TestBranchesNow(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.Clock.StartOfSlot()
	c := s.Client(t)
	start := slot(s, 0)
	ask := func(query string) (page branchesNow) {
		t.Helper()
		c.Get("/v2/branches/now"+query).OK(t).Into(t, &page)
		return page
	}
	before := ask("?q=gangnam")
	if len(before.Branches) != 1 || before.Branches[0].Branch != "gangnam" || before.Branches[0].FreeRooms == 0 || before.Next != nil {
		t.Fatalf("got %+v, want gangnam with free rooms", before)
	}
	if padded := ask("?q=%20gangnam%20"); len(padded.Branches) != 1 {
		t.Errorf("a search with spaces around it: got %+v, want gangnam", padded)
	}
	if want := start.Format("200601021504"); *before.Branches[0].NextFree != want {
		t.Errorf("next free at %s, want the current slot %s", *before.Branches[0].NextFree, want)
	}
	c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	if after := ask("?q=강남"); after.Branches[0].FreeRooms != before.Branches[0].FreeRooms-1 {
		t.Errorf("%d rooms are free with a hold, want %d", after.Branches[0].FreeRooms, before.Branches[0].FreeRooms-1)
	}
	if before.Branches[0].Online {
		t.Error("a branch whose agent never connected is shown as online")
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
		select id, '', now(), now(), true, '[]' from branch where code = 'gangnam' on conflict (branch_id) do update set online = true`); err != nil {
		t.Fatal(err)
	}
	if page := ask("?q=gangnam"); !page.Branches[0].Online {
		t.Error("gangnam is shown as offline while its agent is connected")
	}
	if none := ask("?q=nowhere"); len(none.Branches) != 0 || none.Next != nil {
		t.Errorf("got %+v, want an empty page", none)
	}
	first := ask("?limit=1")
	if len(first.Branches) != 1 || first.Next == nil {
		t.Fatalf("got %+v, want one branch and a cursor", first)
	}
	rest := ask("?cursor=" + *first.Next)
	if len(rest.Branches) == 0 || rest.Branches[0].Branch == first.Branches[0].Branch || rest.Next != nil {
		t.Errorf("after %s got %+v, want the other branches", first.Branches[0].Branch, rest)
	}
	t.Run("photos of rooms", func(t *testing.T) { roomPhotos(t, s) })
	t.Run("arrival steps", func(t *testing.T) { arrivalSteps(t, s) })
	c.Get("/v2/branches/now?limit=0").Fails(t, 400, "IllegalArguemntError", "")
	c.Get("/v2/branches/now?cursor=x").Fails(t, 400, "IllegalArguemntError", "")
}

// TestBranchesNowAtNight: once no room is free today, the next free time is that of tomorrow.
func TestBranchesNowAtNight(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	seoul, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		t.Fatal(err)
	}
	tomorrow := booking.DateOf(s.Clock.Now(), seoul).AddDays(1)
	for { // hongdae is closed on Mondays and holidays
		if _, holiday := booking.KoreanHoliday(tomorrow); !holiday && tomorrow.Weekday() != time.Monday {
			break
		}
		tomorrow = tomorrow.AddDays(1)
	}
	s.Clock.Advance(tomorrow.At(-70, seoul).Sub(s.Clock.Now())) // hongdae closes at 22:00
	var page branchesNow
	s.Client(t).Get("/v2/branches/now?q=hongdae").OK(t).Into(t, &page)
	want := tomorrow.At(10*60, seoul).Format("200601021504")
	if b := page.Branches[0]; b.FreeRooms != 0 || b.NextFree == nil || *b.NextFree != want {
		t.Errorf("at night: %+v, next free %v, want %s", b, b.NextFree, want)
	}
}

// TestBranchesNear: with near, the nearest branches come first, those without a location last, page by page.
func TestBranchesNear(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	type near struct {
		Branches []struct {
			Branch         string
			Location       *booking.Location
			DistanceMeters *int
		}
		Next *string
	}
	ask := func(query string) (page near) {
		t.Helper()
		c.Get("/v2/branches/now"+query).OK(t).Into(t, &page)
		return page
	}
	const jamsilStation = "37.5133,127.1001"
	page := ask("?near=" + jamsilStation)
	got := []string{}
	for _, b := range page.Branches {
		got = append(got, b.Branch)
	}
	if want := []string{"jamsil", "gangnam", "hongdae"}; !slices.Equal(got, want) {
		t.Fatalf("near Jamsil: %v, want %v", got, want)
	}
	// 6.6 km by the haversine formula.
	if d := page.Branches[1].DistanceMeters; d == nil || *d < 6500 || *d > 6800 {
		t.Errorf("gangnam is %v meters away", d)
	}
	first := ask("?limit=2&near=" + jamsilStation)
	if len(first.Branches) != 2 || first.Next == nil {
		t.Fatalf("first page: %+v", first)
	}
	if rest := ask("?limit=2&near=" + jamsilStation + "&cursor=" + *first.Next); len(rest.Branches) != 1 || rest.Branches[0].Branch != "hongdae" || rest.Next != nil {
		t.Errorf("second page: %+v", rest)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set latitude = null, longitude = null, revision = revision + 1 where code = $1`, "jamsil"); err != nil {
		t.Fatal(err)
	}
	if page = ask("?near=" + jamsilStation); page.Branches[2].Branch != "jamsil" || page.Branches[2].DistanceMeters != nil {
		t.Errorf("without a location: %+v", page)
	}
	if page = ask(""); page.Branches[0].DistanceMeters != nil || page.Branches[0].Location == nil {
		t.Errorf("without near: %+v", page)
	}
	for _, bad := range []string{"", "1", "91,0", "0,181", "NaN,0", "a,b", "1,2,3"} {
		c.Get("/v2/branches/now?near="+bad).Fails(t, 400, "IllegalArguemntError", "")
	}
}
