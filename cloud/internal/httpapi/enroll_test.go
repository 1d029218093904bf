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

// TestOfferEndsWithTheRights: a token for an agent is invalid once the administrator or the token that has offered it is removed, or
// has other rights. With it, a machine would replace the agent of the branch.
func TestOfferEndsWithTheRights(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	token, header := newToken(t, hq, []string{"doors"}, []string{"gangnam"})
	body := map[string]any{"id": "leaver", "password": "keys to the house", "role": "manager", "branches": []string{"gangnam"}}
	hq.Post("/v2/admin/administrators", body).OK(t)
	path := "/v2/admin/administrators/leaver"
	const nothing = "nothing"
	for name, end := range map[string]func(){
		nothing:    func() {},
		"rights":   func() { hq.Put(path, map[string]any{"role": "viewer", "branches": []string{"gangnam"}}).OK(t) },
		"password": func() { hq.Post(path+"/password", map[string]string{"password": "keys to the house"}).OK(t) },
		"sessions": func() { hq.Delete(path+"/sessions", nil).OK(t) },
		"token":    func() { hq.Delete("/v2/admin/tokens/"+token, nil).OK(t) },
	} {
		var offer struct{ Command string }
		const offers = "/v2/admin/branches/gangnam/agents"
		if name == "token" {
			s.Client(t).Send("POST", offers, map[string]string{"replaces": "agent-gangnam"}, header).Envelope(t).OK(t).Into(t, &offer)
		} else {
			hq.Put(path, map[string]any{"role": "manager", "branches": []string{"gangnam"}}).OK(t)
			s.Admin(t, "leaver", "keys to the house").Post(offers, map[string]string{"replaces": "agent-gangnam"}).OK(t).Into(t, &offer)
		}
		_, secret, _ := strings.Cut(offer.Command, " -s -- ")
		end()
		want := http.StatusUnauthorized
		if name == nothing {
			want = http.StatusOK
		}
		if got := s.Client(t).Post("/v2/agent/enroll", map[string]string{"token": secret}); got.HTTP != want {
			t.Errorf("%s ended: HTTP %d, want %d", name, got.HTTP, want)
		}
	}
}
