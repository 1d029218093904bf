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

// TestEnrollAgent: a machine that has only the token becomes an agent that the broker lets in, once.
func TestEnrollAgent(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	keys := []string{"PeMGaAkBHCZ3EA8Hgt561IoFwmvxrQereqIiOh7X5Xw="}
	token, err := enroll.Offer(t.Context(), s.DB.Pool, "gangnam", "cli:root", keys, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	machine := s.Client(t)
	var got struct {
		Branch, Username, Password string
		GrantPublicKeys            []string
	}
	machine.Post("/v2/agent/enroll", map[string]string{"token": token}).OK(t).Into(t, &got)
	if got.Branch != "gangnam" || len(got.Password) != 43 || len(got.GrantPublicKeys) == 0 {
		t.Errorf("%+v", got)
	}
	if branch, err := postgres.BranchOfAgent(t.Context(), s.DB.Pool, got.Username); err != nil || branch != "gangnam" {
		t.Errorf("the credential is of %q: %v", branch, err)
	}
	if again := machine.Post("/v2/agent/enroll", map[string]string{"token": token}); again.HTTP != http.StatusUnauthorized {
		t.Errorf("the token works twice: %+v", again)
	}
	if long := machine.Post("/v2/agent/enroll", map[string]string{"token": strings.Repeat("x", 101)}); long.HTTP != http.StatusBadRequest {
		t.Errorf("a long token: %+v", long)
	}
}
