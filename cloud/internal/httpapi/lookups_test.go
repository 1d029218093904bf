package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestConditionalLookUps holds that a client that has the answer gets 304 until something changes.
func TestConditionalLookUps(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t)) // with a paid hour in room 1
	for name, path := range map[string]string{
		"V1": "/reservations?" + hourOf("gangnam", c.start),
		"V2": "/v2/branches/gangnam/reservations?" + dayOf(c.start, 6),
	} {
		ask := func(tag string) servicetest.Answer {
			t.Helper()
			return c.Nobody.Send(http.MethodGet, path, nil, http.Header{"If-None-Match": {tag}})
		}
		first := c.Nobody.Get(path).OK(t)
		tag := first.Header.Get("ETag")
		if got := first.Header.Get("Cache-Control"); tag == "" || got != "no-cache" {
			t.Fatalf("%s: ETag %q, Cache-Control %q", name, tag, got)
		}
		if again := c.Nobody.Get(path).OK(t); again.Header.Get("ETag") != tag || string(again.Raw) != string(first.Raw) {
			t.Errorf("%s: the second answer differs: %s", name, again.Raw)
		}
		for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			if got := ask(known); got.HTTP != http.StatusNotModified || len(got.Raw) > 0 || got.Header.Get("ETag") != tag {
				t.Errorf("%s: If-None-Match %s: %d %s", name, known, got.HTTP, got.Raw)
			}
		}
		if got := ask(`"other"`); got.HTTP != http.StatusOK || string(got.Raw) != string(first.Raw) {
			t.Errorf("%s: another answer: %d %s", name, got.HTTP, got.Raw)
		}

		guest := c.s.Client(t)
		guest.Post("/reservation", holdBody(2, c.start, 20*time.Minute)).OK(t)
		held := ask(tag)
		if held.HTTP != http.StatusOK || held.Header.Get("ETag") == tag {
			t.Errorf("%s: after a hold: %d", name, held.HTTP)
		}
		guest.Delete("/reservation", nil).OK(t)
		if got := ask(held.Header.Get("ETag")); got.HTTP != http.StatusOK || got.Header.Get("ETag") != tag {
			t.Errorf("%s: after its release: %d, ETag %s, want the first one", name, got.HTTP, got.Header.Get("ETag"))
		}
		c.Manager.Patch("/admin/machines/gangnam/6", map[string]bool{"enabled": false}).OK(t)
		if got := ask(tag); got.HTTP != http.StatusOK {
			t.Errorf("%s: after a room was switched off: %d", name, got.HTTP)
		}
		c.Manager.Patch("/admin/machines/gangnam/6", map[string]bool{"enabled": true}).OK(t)
	}
}
