package service_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func read(t *testing.T, address string) (status int, body string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestOperations(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest := s.Client(t)
	guest.Get("/v2/branches").OK(t)
	guest.Send("GET", "/v2/keys/11111111-2222-4333-8444-555555555555", nil, nil)

	if status, body := read(t, s.Operations+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %s", status, body)
	}
	status, body := read(t, s.Operations+"/readyz")
	if status != http.StatusOK || !strings.Contains(body, "database  answers") || !strings.Contains(body, "broker    connected") {
		t.Errorf("readyz: %d %s", status, body)
	}
	if err := postgres.PutDoctorChecks(t.Context(), s.DB.Pool, map[string]string{"disk": "fail"}, time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	status, body = read(t, s.Operations+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("metrics: %d", status)
	}
	for _, want := range []string{
		`yeolda_http_requests_total{code="200",method="GET",route="/api/v2/branches"}`,
		`yeolda_branches 3`, `yeolda_agents_online 0`, `yeolda_reservations{state="HOLD"} 0`, `yeolda_vitals_up 1`,
		`yeolda_oldest_seconds{kind="payment"} 0`, `yeolda_jobs{state="available"}`, `yeolda_db_connections_max 14`, `yeolda_mqtt_connected 1`,
		`yeolda_doctor_check{check="disk",state="fail"} 1`, `yeolda_doctor_check{check="disk",state="ok"} 0`,
		`yeolda_doctor_check_timestamp_seconds{check="disk"} 1.8e+09`, `go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, "11111111-2222") {
		t.Error("a key is in the metrics")
	}
	if status, body := read(t, s.Root+"/packages/yeolda-agent_arm64.deb"); status != http.StatusNotFound || !strings.Contains(body, "this service has no package of the agent") {
		t.Errorf("a package that is not there: got %d %q, want 404 and what is missing", status, body)
	}
	if response, err := http.Head(s.Root + "/install.sh"); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("curl -I of install.sh: got %+v, %v", response, err)
	}
	// None of it is where customers are.
	for _, path := range []string{"/metrics", "/readyz", "/debug/pprof/"} {
		if status, body := read(t, s.Root+path); status == http.StatusOK && (strings.Contains(body, "yeolda_http") || strings.Contains(body, "database  answers") || strings.Contains(body, "goroutine")) {
			t.Errorf("%s is public", path)
		}
	}
}
