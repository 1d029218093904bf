package integrators

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/client"
)

// Both clients return what a program needs to repeat a rejected request, and accept an address with a slash at its end.
func TestErrorsOfClients(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v2/hold" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "r1")
		w.Header().Set("Retry-After", "7")
		http.SetCookie(w, &http.Cookie{Name: "PAY_SESSIONID", MaxAge: -1})
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"status":"error","errorType":"TooManyRequestsException","errorCode":"E1","message":"나중에","data":{"cookie":"` + r.Header.Get("Cookie") + `"}}`))
	}))
	t.Cleanup(service.Close)

	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		api, err := client.New(service.URL+"/", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.ShowHoldWithResponse(context.Background())
		var rejected *client.Error
		if !errors.As(err, &rejected) || rejected.RetryAfter != 7*time.Second || string(rejected.Data) != `{"cookie":""}` || rejected.Code != "E1" || rejected.RequestID != "r1" {
			t.Errorf("the client returns %+v (%v)", rejected, err)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		got := runNode(t, `
			import { yeolda, YeoldaError } from "yeolda";
			const api = yeolda(process.env.YEOLDA_URL! + "/");
			for (let i = 0; i < 2; i++)
				await api.GET("/v2/hold").catch((e: YeoldaError) => console.log(e.http, e.type, e.code, e.retryAfter, JSON.stringify(e.data), e.requestId));
		`, "YEOLDA_URL="+service.URL)
		want := strings.Repeat("429 TooManyRequestsException E1 7 {\"cookie\":\"\"} r1\n", 2)
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("the client returns %s, want %s", got, want)
		}
	})
}
