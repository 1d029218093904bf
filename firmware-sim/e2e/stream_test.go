package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	yeolda "github.com/yeolda/yeolda/cloud/client"
)

// stream is what a reader of the event stream knows of reservations and door requests.
type stream struct {
	cluster  *cluster
	api      []*yeolda.API // of the replicas
	next     string
	events   int
	state    map[string]string
	versions map[string]int
}

// follow begins to read the stream at its start. Each page comes from the next replica; a replica that does not answer is skipped.
func (c *cluster) follow(t *testing.T) *stream {
	t.Helper()
	var token struct{ Token string }
	hq := staff(t, c.stack)
	hq.must("POST", "/v2/admin/tokens", map[string]any{"name": "stream", "scopes": []string{"read"}}, &token)
	s := &stream{cluster: c, next: "0", state: map[string]string{}, versions: map[string]int{}}
	for _, r := range c.Replicas {
		api, err := yeolda.New(strings.TrimSuffix(r.API, "/api"), token.Token)
		if err != nil {
			t.Fatal(err)
		}
		s.api = append(s.api, api)
	}
	return s
}

// read reads until ctx ends, and then to the end of the stream. It returns an error for a version that is missing or out of order.
func (s *stream) read(ctx context.Context) error {
	limit := 500
	for turn := 0; ; turn++ {
		over := ctx.Err() != nil
		page, err := s.api[turn%len(s.api)].ListEventsWithResponse(context.WithoutCancel(ctx), &yeolda.ListEventsParams{After: &s.next, Limit: &limit})
		if err != nil {
			time.Sleep(50 * time.Millisecond) // the replica or the database is down
			continue
		}
		for _, e := range page.JSON200.Data.Events {
			s.events++
			kind, _, _ := strings.Cut(e.Subject, ":")
			if kind != "reservation" && kind != "door-request" {
				continue
			}
			if e.Version != s.versions[e.Subject]+1 {
				return fmt.Errorf("event %s: version %d of %s after %d", e.ID, e.Version, e.Subject, s.versions[e.Subject])
			}
			s.versions[e.Subject] = e.Version
			if _, what, _ := strings.Cut(e.Type, "."); what != "moved" && what != "changed" {
				s.state[e.Subject] = strings.ToUpper(strings.ReplaceAll(what, "-", "_"))
			}
		}
		if over && page.JSON200.Data.Next == s.next {
			return nil
		}
		s.next = page.JSON200.Data.Next
	}
}

// compare compares the reader's state with the database.
func (s *stream) compare(t *testing.T) {
	t.Helper()
	over, end := context.WithCancel(t.Context())
	end()
	var stored []string
	for seen := -1; seen != s.events; { // until the service has nothing more to change
		seen = s.events
		stored = s.cluster.query(`
			select 'reservation:' || id || '|' || state || '|' || version from reservation
			union all select 'door-request:' || id || '|' || state || '|' || version from door_request`)
		if err := s.read(over); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range stored {
		part := strings.Split(row, "|")
		if known := fmt.Sprintf("%s|%s|%d", part[0], s.state[part[0]], s.versions[part[0]]); known != row {
			t.Errorf("the stream says %s, the database %s", known, row)
		}
	}
	t.Logf("%d events, %d subjects in the database, all as in the stream", s.events, len(stored))
}
