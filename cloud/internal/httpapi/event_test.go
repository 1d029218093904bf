package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type eventPage struct {
	Events []struct {
		ID, At, Type, Subject string
		Branch                *string
		Version               int
	}
	Next string
}

func TestEvents(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	_, read := newToken(t, c.HQ, []string{"read"}, []string{"hongdae"})
	page := func(client *servicetest.Client, header http.Header, query string) (p eventPage) {
		t.Helper()
		client.Send("GET", "/v2/events"+query, nil, header).Envelope(t).OK(t).Into(t, &p)
		return p
	}
	begin := page(c.Manager, nil, "?after=0&limit=1000").Next
	order(t, c.s, c.s.Client(t), 2, slot(c.s, 5*time.Hour), time.Hour, 25000, "카드")
	// The changes that were answered before the request are in its answer, also page by page.
	var types []string
	for next := begin; ; {
		p := page(c.Manager, nil, "?limit=2&after="+next)
		for _, e := range p.Events {
			if e.Branch == nil || *e.Branch != "gangnam" {
				t.Errorf("the manager of gangnam receives %+v", e)
			}
			if strings.HasPrefix(e.Type, "reservation.") {
				types = append(types, fmt.Sprint(e.Type, " ", e.Version))
			}
		}
		if p.Next == next {
			break
		}
		next = p.Next
	}
	if len(types) == 0 || types[0] != "reservation.hold 1" {
		t.Errorf("events %v", types)
	}
	// A token of another branch receives none of them, and continues after them.
	other := page(c.Nobody, read, "?limit=1000&after="+begin)
	if len(other.Events) != 0 || other.Next == begin {
		t.Errorf("the token of hongdae receives %+v", other)
	}
	for query, want := range map[string]int{"?after=-1": 400, "?after=x": 400, "?limit=0": 400, "?limit=1001": 400, "?after=999999999": 410} {
		if answer := c.HQ.Get("/v2/events" + query); answer.HTTP != want {
			t.Errorf("%s: %d, want %d", query, answer.HTTP, want)
		}
	}
}
