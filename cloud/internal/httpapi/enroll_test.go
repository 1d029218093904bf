package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestEnrollAgent checks that a machine with only the token receives a credential that the broker accepts, and that the
// token works once.
func TestEnrollAgent(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	var offer struct{ Command, ExpiresAt, QR string }
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	manager.Post("/v2/admin/branches/gangnam/agents", map[string]string{"replaces": "agent-hongdae"}).Fails(t, 404, "ResourceNotFoundException", "해당 장치를 찾을 수 없습니다.")
	manager.Post("/v2/admin/branches/gangnam/agents", nil).OK(t).Into(t, &offer)
	before, token, ok := strings.Cut(offer.Command, " -s -- ")
	if !ok || !strings.Contains(before, "/install.sh") || len(offer.QR) < 21*22 {
		t.Fatalf("%+v", offer)
	}
	if at, err := time.Parse(time.RFC3339Nano, offer.ExpiresAt); err != nil || at.Sub(s.Clock.Now()) > enroll.TokenLife || at.Sub(s.Clock.Now()) < enroll.TokenLife-time.Minute {
		t.Errorf("expires at %s: %v", offer.ExpiresAt, err)
	}
	machine := s.Client(t)
	var got struct {
		Branch, Username, Password string
		GrantPublicKeys            []string
	}
	machine.Post("/v2/agent/enroll", map[string]string{"token": token}).OK(t).Into(t, &got)
	if got.Branch != "gangnam" || len(got.Password) != 26 || len(got.GrantPublicKeys) == 0 {
		t.Errorf("%+v", got)
	}
	if branch, err := postgres.BranchOfAgent(t.Context(), s.DB.Pool, got.Username); err != nil || branch != "gangnam" {
		t.Errorf("the credential is of %q: %v", branch, err)
	}
	if by := only(t, s, `select string_agg(actor || ' ' || action, ', ' order by id) from audit where action like $1`, "agent.%"); by != "admin:gangnam-manager agent.offer, admin:gangnam-manager agent.enroll" {
		t.Errorf("audit log: %s", by)
	}
	if again := machine.Post("/v2/agent/enroll", map[string]string{"token": token}); again.HTTP != http.StatusUnauthorized {
		t.Errorf("the token works twice: %+v", again)
	}
	if long := machine.Post("/v2/agent/enroll", map[string]string{"token": strings.Repeat("x", 101)}); long.HTTP != http.StatusBadRequest {
		t.Errorf("a long token: %+v", long)
	}
}
