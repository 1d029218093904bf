package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestPressingWithoutEnd: a key, and a member of staff, that nobody could press so often with a finger.
func TestPressingWithoutEnd(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	limits := &limit.Limiter{DB: s.DB}
	rule := limit.Rule{Name: "unlock", Max: 1200, Window: time.Minute}
	key := keyFor(t, s, 1)
	for _, subject := range []string{key, "admin:hq"} {
		if err := limits.Take(t.Context(), rule, subject); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update rate_limit set count = $1`, rule.Max); err != nil { // at other replicas
		t.Fatal(err)
	}
	guest, hq := s.Client(t), s.Admin(t, "hq", "hq-demo")
	for _, press := range []func() servicetest.Answer{
		func() servicetest.Answer {
			return guest.Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "front", "key": key})
		},
		func() servicetest.Answer { return hq.Post("/admin/door/v2/unlock/gangnam/front", nil) },
		func() servicetest.Answer { return hq.Post("/admin/door/v2/unlock/gangnam/room/1", nil) },
	} {
		answer := press()
		for n := 0; answer.HTTP == http.StatusOK && n < rule.Max; n++ {
			answer = press()
		}
		answer.Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.")
		if answer.Header.Get("Retry-After") == "" {
			t.Error("nothing says for how long")
		}
	}
	s.Client(t).Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "front", "key": keyFor(t, s, 2)}).OK(t)
}
