package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestStepUp lets the proof of the identity expire: every sensitive operation is refused until the administrator confirms,
// and all others are not. Tokens and administrators who see no secret are not asked.
func TestStepUp(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.StepUp = 15 * time.Minute })
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Clock.Stop(at)
	hq := s.Admin(t, "hq", "hq-demo")
	type operation struct {
		method, path string
		body         any
	}
	sensitive := []operation{
		{"GET", "/v2/admin/messages/999999", nil},
		{"POST", "/v2/admin/reservations/999999/refund", nil},
		{"POST", "/v2/admin/reservations/999999/refund/approval", nil},
		{"DELETE", "/v2/admin/reservations/999999/refund/approval", nil},
		{"POST", "/v2/admin/reservations/999999/refunds", map[string]any{"amount": 100, "reason": "x"}},
		{"POST", "/v2/admin/differences/999999/refund", nil},
		{"POST", "/v2/admin/personal-data/export", map[string]string{"contact": "01012345678"}},
		{"POST", "/v2/admin/branches/gangnam/exports", map[string]any{"kind": "audit", "from": "2026-11-01", "to": "2026-11-02"}},
		{"GET", "/v2/admin/branches/gangnam/payments.csv?yearMonth=2026-11", nil},
		{"GET", "/v2/admin/settlement.csv?month=2026-11", nil},
		{"GET", "/v2/admin/settlement.xlsx?month=2026-11", nil},
		{"PUT", "/v2/admin/entities/seoul", map[string]any{}},
		{"PATCH", "/v2/admin/entities/seoul", map[string]any{"enabled": true}},
		{"PUT", "/v2/admin/branches/gangnam/entity", map[string]any{}},
		{"POST", "/v2/admin/tokens", map[string]any{}},
		{"POST", "/v2/admin/administrators", map[string]any{}},
		{"PUT", "/v2/admin/administrators/999999", map[string]any{}},
		{"POST", "/v2/admin/administrators/999999/password", map[string]any{}},
		{"DELETE", "/v2/admin/administrators/999999/totp", nil},
	}
	for _, o := range contract.Operations() { // the contract, not this list, knows all refunds
		path := strings.ReplaceAll(o.Path, "{id}", "999999")
		if o.Method == http.MethodPost && strings.HasPrefix(path, "/v2/admin/") && strings.Contains(path, "/refund") &&
			!slices.ContainsFunc(sensitive, func(s operation) bool { return s.path == path }) {
			t.Errorf("%s moves money and is not in the list", o.Path)
		}
	}
	refused := func(when string, c *servicetest.Client, header http.Header, want bool) {
		t.Helper()
		for _, o := range sensitive {
			answer := c.Send(o.method, o.path, o.body, header)
			got := answer.HTTP == http.StatusForbidden
			if got {
				answer.Envelope(t).Fails(t, 403, "ConfirmationRequired", "본인 확인이 필요합니다. 비밀번호나 2단계 인증 번호를 다시 입력해 주세요.")
			}
			if got != want || !want && !slices.Contains([]int{200, 400, 404}, answer.HTTP) {
				t.Errorf("%s: %s %s: HTTP %d %.200s, want refused %v", when, o.method, o.path, answer.HTTP, answer.Raw, want)
			}
		}
	}
	state := func(confirmed bool, method string) {
		t.Helper()
		var got struct {
			Confirmed bool
			Method    string
		}
		hq.Get("/v2/admin/account/confirmation").OK(t).Into(t, &got)
		if got.Confirmed != confirmed || got.Method != method {
			t.Errorf("got %+v, want %v and %s", got, confirmed, method)
		}
	}
	later := func(by time.Duration) {
		at = at.Add(by)
		s.Clock.Stop(at)
	}
	var token struct{ Token string }
	hq.Post("/v2/admin/tokens", map[string]any{"name": "t", "scopes": []string{"read", "money", "doors", "book"}}).OK(t).Into(t, &token)
	hq.Post("/v2/admin/administrators", map[string]any{"id": "looker", "password": "lamp river nine", "role": "viewer", "branches": []string{"gangnam"}}).OK(t)
	viewer := s.Admin(t, "looker", "lamp river nine")

	refused("after the login", hq, nil, false)
	state(true, "password")
	later(15 * time.Minute)
	refused("15 minutes later", hq, nil, true)
	state(false, "password")
	hq.Get("/v2/admin/overview").OK(t)
	hq.Get("/v2/admin/settlement?month=2026-11").OK(t)
	viewer.Get("/v2/admin/messages/999999").Fails(t, 404, "ResourceNotFoundException", "")
	answer := s.Client(t).Send("GET", "/v2/admin/settlement.csv?month=2026-11", nil, http.Header{"Authorization": {"Bearer " + token.Token}})
	if answer.HTTP != http.StatusOK {
		t.Errorf("a token: HTTP %d %.200s", answer.HTTP, answer.Raw)
	}

	const confirmation = "/v2/admin/account/confirmation"
	hq.Post(confirmation, map[string]string{"password": "wrong"}).Fails(t, 401, "AuthenticationError", "")
	refused("after a wrong password", hq, nil, true)
	hq.Post(confirmation, map[string]string{"password": "hq-demo"}).OK(t)
	refused("after the password", hq, nil, false)

	var begun struct{ Secret string }
	hq.Post("/v2/admin/account/totp", map[string]string{"password": "hq-demo"}).OK(t).Into(t, &begun)
	code := func() string {
		later(time.Minute)
		c, err := totp.GenerateCode(begun.Secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hq.Put("/v2/admin/account/totp", map[string]string{"code": code()}).OK(t)
	later(15 * time.Minute)
	state(false, "code")
	hq.Post(confirmation, map[string]string{"password": "hq-demo"}).Fails(t, 401, "SecondFactorRequired", "")
	refused("after the password without the code", hq, nil, true)
	hq.Post(confirmation, map[string]string{"code": code()}).OK(t)
	refused("after the code", hq, nil, false)
}
