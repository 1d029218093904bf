package httpapi_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestOverloadRejectsNewRequests sends far more requests than a slow database can answer. Soon further ones are rejected at once, except
// those of a guest at a door, and when the crowd has left they are accepted again.
func TestOverloadRejectsNewRequests(t *testing.T) {
	t.Parallel()
	line := new(cable)
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = line.through(t, set.Database.URL)
		set.HTTP.RateLimits = "off"
	})
	c := newCast(t, s)
	const look = "/v2/admin/alerts"
	c.HQ.Get(look).OK(t)

	line.slow(50 * time.Millisecond)
	rejected := make(chan servicetest.Answer)
	present, leave := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer leave()
	for range 250 {
		crowd.Go(func() {
			for present.Err() == nil {
				answer := c.HQ.Get(look)
				if answer.HTTP == http.StatusServiceUnavailable {
					select {
					case rejected <- answer:
						<-present.Done()
					case <-present.Done():
					}
				}
			}
		})
	}
	var answer servicetest.Answer
	select {
	case answer = <-rejected:
	case <-time.After(time.Minute):
		t.Fatal("no request was rejected")
	}
	c.Nobody.Post(unlockPath, unlockBody("room", uuid.NewString())).Fails(t, 400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다.")
	ready, err := http.Get(s.Operations + "/readyz") //nolint:noctx // the test's deadline suffices
	if err != nil {
		t.Fatal(err)
	}
	_ = ready.Body.Close()
	if ready.StatusCode != http.StatusOK {
		t.Errorf("an overloaded replica is not ready: %s", ready.Status)
	}
	leave()
	crowd.Wait()
	answer.Fails(t, 503, "ServiceUnavailableError", "일시적으로 서비스를 이용할 수 없습니다. 잠시 후 다시 시도해 주세요.")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("a rejected request has no Retry-After")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer := c.HQ.Get(look)
		if answer.HTTP == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still rejected: %d %s", answer.HTTP, answer.Raw)
		}
	}
}
