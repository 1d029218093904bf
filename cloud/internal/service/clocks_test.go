package service_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestReplicasWithDifferentClocksAgree runs replicas on machines whose clocks are 90 seconds ahead of the database's and behind
// it, with holds and codes that live for a minute. By its own clock, each would see those of the other as expired, or its own as live.
func TestReplicasWithDifferentClocksAgree(t *testing.T) {
	t.Parallel()
	const skew = 90 * time.Second
	join := func(s *config.Settings) {
		s.MQTT.BrokerPeerURL = "mqtt://" + s.MQTT.Addr
		s.Times.CustomerHoldTTL, s.Times.LoginCodeTTL = time.Minute, time.Minute
	}
	ahead := servicetest.StartSkewed(t, skew, join)
	behind := servicetest.StartSkewed(t, -skew, join, func(s *config.Settings) { s.Database.URL, s.Toss = ahead.Settings.Database.URL, ahead.Settings.Toss })
	minute := func(at time.Time) string { return at.In(time.FixedZone("KST", 9*60*60)).Format("200601021504") }
	start := ahead.DB.Now().Truncate(time.Hour).Add(26 * time.Hour)
	for n, c := range []struct{ holder, other *servicetest.Stack }{{behind, ahead}, {ahead, behind}} {
		begin := start.Add(time.Duration(n) * 4 * time.Hour)
		slot := map[string]any{"branch": "gangnam", "room": 1, "startDateTime": minute(begin), "endDateTime": minute(begin.Add(50 * time.Minute))}
		guest := c.holder.Client(t)
		if got := guest.Post("/reservation", slot); got.HTTP != http.StatusOK {
			t.Fatalf("hold %d: %d %s", n, got.HTTP, got.Message)
		}
		if got := c.other.Client(t).Post("/reservation", slot); got.HTTP != http.StatusConflict {
			t.Errorf("hold %d at the other replica: got %d %s, want 409", n, got.HTTP, got.Message)
		}
	}
	for _, s := range []*servicetest.Stack{ahead, behind} {
		if difference := s.DB.Now().Sub(time.Now()).Abs(); difference > 10*time.Second {
			t.Errorf("the rules' clock of a replica differs from the database's by %s", difference)
		}
	}
	_, metrics := read(t, behind.Operations+"/metrics")
	if want := "yeolda_database_clock_ahead_seconds 9"; !strings.Contains(metrics, want) && !strings.Contains(metrics, "yeolda_database_clock_ahead_seconds 89.9") {
		t.Errorf("metrics of the replica that is behind: no %s…", want)
	}
}

// TestServiceForgetsTheFuture starts the service after the clock of the database was nine hours ahead. Times that were recorded then must not
// keep alerts and recurring work waiting.
func TestServiceForgetsTheFuture(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) {
		db, err := postgres.Open(t.Context(), set.Database.URL, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkBackup, db.Now().Add(9*time.Hour)); err != nil {
			t.Fatal(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		last, err := postgres.LastSuccesses(t.Context(), s.DB.Pool)
		if err != nil {
			t.Fatal(err)
		}
		if !last[postgres.WorkBackup].After(s.DB.Now()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the last backup is still at %v", last[postgres.WorkBackup])
		}
	}
}
