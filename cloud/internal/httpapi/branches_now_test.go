package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type branchesNow struct {
	Branches []struct {
		Branch    string
		Status    string
		FreeRooms int
		NextFree  *string `json:"nextFreeDateTime"`
	}
	Next *string
}

func TestBranchesNow(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
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
	if want := start.Format("200601021504"); *before.Branches[0].NextFree != want {
		t.Errorf("next free at %s, want the current slot %s", *before.Branches[0].NextFree, want)
	}
	c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	if after := ask("?q=강남"); after.Branches[0].FreeRooms != before.Branches[0].FreeRooms-1 {
		t.Errorf("%d rooms are free with a hold, want %d", after.Branches[0].FreeRooms, before.Branches[0].FreeRooms-1)
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
	c.Get("/v2/branches/now?limit=0").Fails(t, 400, "IllegalArguemntError", "")
	c.Get("/v2/branches/now?cursor=x").Fails(t, 400, "IllegalArguemntError", "")
}
