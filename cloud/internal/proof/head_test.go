package proof

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// The signed head leaves the machine every hour. A receiver that fails gets it at the next attempt, and the copy outside shows a
// log that was rewritten later with a valid chain.
func TestHeadLeavesEveryHour(t *testing.T) {
	t.Parallel()
	s := open(t)
	now := time.Now()
	s.DB.Now = func() time.Time { return now }
	var received []Signed
	status := http.StatusOK
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		var one Signed
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		if status == http.StatusOK {
			received = append(received, one)
		}
	}))
	defer outside.Close()
	var log strings.Builder
	s.HeadURL, s.Log = outside.URL+"/heads?token=secret", slog.New(slog.NewTextHandler(&log, nil))
	send := func(step string, want int) {
		t.Helper()
		err := s.SendHead(t.Context())
		if (err != nil) != (status != http.StatusOK) || len(received) != want {
			t.Fatalf("%s: %d heads were received, %v, want %d", step, len(received), err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the address: %v", step, err)
		}
	}
	write := func() {
		t.Helper()
		if err := postgres.AppendAudit(t.Context(), s.DB.Pool, audit.Entry{Actor: "admin:hq", Action: "test"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DB.ChainAudit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send("an empty log", 0)
	write()
	send("the first entry", 1)
	now = now.Add(54 * time.Minute)
	send("before the hour is over", 1)
	now = now.Add(time.Minute)
	status = http.StatusBadGateway
	send("a receiver that fails", 1)
	status = http.StatusOK
	write()
	send("the next attempt", 2)
	send("at once again", 2)

	last, err := received[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := received[1].Verify(PublicKey(s.Keys)); err != nil || len(last.Rules) != 0 {
		t.Errorf("%+v: %v", last, err)
	}
	if !strings.Contains(log.String(), last.Head) || strings.Contains(log.String(), "secret") {
		t.Errorf("the log has to contain the head and no address: %s", log.String())
	}
	hash, err := hex.DecodeString(strings.TrimPrefix(last.Head, "2:"))
	if err != nil {
		t.Fatal(err)
	}
	known := postgres.AuditHead{Place: 2, Hash: hash}
	if _, _, err := postgres.VerifyAudit(t.Context(), s.DB.Pool, known); err != nil {
		t.Errorf("the log as it was: %v", err)
	}
	// The owner of the database rewrites the last entry and links it again.
	for _, sql := range []string{`alter table audit disable trigger user`, `update audit set actor = 'admin:other', place = null, prev_hash = null, hash = null where place = 2`} {
		if _, err := s.DB.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DB.ChainAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := postgres.VerifyAudit(t.Context(), s.DB.Pool, postgres.AuditHead{}); err != nil {
		t.Fatalf("the rewritten chain alone has to hold: %v", err)
	}
	if _, _, err := postgres.VerifyAudit(t.Context(), s.DB.Pool, known); err == nil {
		t.Error("the head outside does not show that the log was rewritten")
	}
}
