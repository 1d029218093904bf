package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestConsentIsStored checks that the version of the accepted terms is stored with the time of the request.
func TestConsentIsStored(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	c.Post("/reservation", holdBody(1, slot(s, 3*time.Hour), 90*time.Minute)).OK(t)
	s.Clock.Stop(s.Clock.Now().Truncate(time.Second))
	payer := map[string]any{"amount": 46000, "name": "홍길동", "mobileNum": "010-1234-5678", "consentVersion": "2026-11-22"}
	c.Post("/payment", payer).OK(t)
	var version string
	var at time.Time
	const query = "select consent_version, consent_at from reservation where consent_version is not null"
	if err := s.DB.Pool.QueryRow(t.Context(), query).Scan(&version, &at); err != nil {
		t.Fatal(err)
	}
	if version != "2026-11-22" || !at.Equal(s.Clock.Now()) {
		t.Errorf("got consent %s at %s, want 2026-11-22 at %s", version, at, s.Clock.Now())
	}
	payer["consentVersion"] = strings.Repeat("x", 21)
	c.Post("/payment", payer).Fails(t, 400, "IllegalArguemntError", "")
}
