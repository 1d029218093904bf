package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The running service has no violation after a payment. A row that was changed in the database is found, with the call
// that repairs it; after the call it is not found any more.
func TestProof(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	c := s.Client(t)
	c.Post("/payment/confirm", order(t, s, c, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")).OK(t)
	id := live(t, s, 1)
	type finding struct {
		Rule, Subject, Path string
	}
	check := func(query string) (found []finding) {
		t.Helper()
		var got struct {
			Report struct {
				Violations int
				Rules      []struct {
					ID      string
					Checked int
					Found   []struct {
						Subject string
						Repair  struct{ Verb, Method, Path string }
					}
				}
			}
		}
		hq.Get("/v2/admin/proof"+query).Into(t, &got)
		for _, r := range got.Report.Rules {
			for _, f := range r.Found {
				found = append(found, finding{r.ID, f.Subject, f.Repair.Path})
			}
		}
		if len(found) != got.Report.Violations || len(got.Report.Rules) == 0 {
			t.Errorf("got %+v", got)
		}
		return found
	}
	if found := check(""); len(found) > 0 {
		t.Errorf("a paid reservation: %v", found)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update access_key set revoked_at = now(), revoked_as = 'rotated' where reservation_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	found := check("?since=2026-01-01T00:00:00Z")
	if len(found) != 1 || found[0] != (finding{"M7", "reservation:" + id, "/v2/admin/reservations/" + id + "/key"}) {
		t.Fatalf("without a key: got %v", found)
	}
	hq.Post(found[0].Path, map[string]any{"reason": "증명"}).OK(t)
	if found := check(""); len(found) > 0 {
		t.Errorf("after the repair: %v", found)
	}
	if answer := hq.Get("/v2/admin/proof?since=yesterday"); answer.HTTP != 400 {
		t.Errorf("a malformed time: got %d", answer.HTTP)
	}
	var kept struct{ Proofs []any }
	hq.Get("/v2/admin/proofs").Into(t, &kept)
	if kept.Proofs == nil {
		t.Error("the list of proofs is null")
	}
}
