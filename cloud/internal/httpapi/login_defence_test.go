package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// behindProxy lets a test send requests from any address.
func behindProxy(set *config.Settings) {
	set.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

func from(address string) http.Header { return http.Header{"X-Forwarded-For": {address}} }

// Wrong passwords from other addresses lock out unknown browsers. A browser that has logged in before is not locked out,
// and its open session can change the password.
func TestLockOutSparesTheOwnBrowser(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, behindProxy)
	browser := s.Client(t)
	browser.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t)
	for i := range 10 {
		body := map[string]string{"id": "hq", "password": "wrong"}
		if answer := s.Client(t).Send(http.MethodPost, "/admin/login", body, from(fmt.Sprintf("198.51.%d.1", i))); answer.HTTP != http.StatusUnauthorized {
			t.Fatalf("wrong password %d: HTTP %d", i, answer.HTTP)
		}
	}
	s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).Fails(t, 429, "TooManyRequestsError", "")
	browser.Post("/v2/admin/account/password", map[string]string{"password": "hq-demo", "newPassword": "lamp river nine"}).OK(t)
	browser.Post("/admin/logout", nil).OK(t)
	browser.Post("/admin/login", map[string]string{"id": "hq", "password": "lamp river nine"}).OK(t)
}

// Wrong codes from another browser do not invalidate a guest's code.
func TestStrangersGuessesSpareTheGuest(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, behindProxy)
	guest(t, s)
	id := map[string]string{"type": "mobile", "id": "010-1234-5678"}
	browser, stranger := s.Client(t), s.Client(t)
	browser.Post("/account/code", id).OK(t)
	code := awaitCode(t, s, "010-1234-5678", 1)
	wrong := map[string]string{"type": "mobile", "id": "010-1234-5678", "code": "x"}
	for range 6 {
		stranger.Post("/account/login", wrong).Fails(t, 401, "AuthenticationError", "")
	}
	right := map[string]string{"type": "mobile", "id": "010-1234-5678", "code": code}
	stranger.Post("/account/login", right).Fails(t, 401, "AuthenticationError", "")
	browser.Post("/account/login", right).OK(t)

	const perAddress = 60
	limited := stranger.Post("/account/login", wrong)
	for n := 0; limited.HTTP == http.StatusUnauthorized && n < perAddress; n++ {
		limited = stranger.Post("/account/login", wrong)
	}
	limited.Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
}

// Wrong codes from elsewhere use up the attempts of a contact for a day, and clients of the same address its codes and attempts. A browser in
// which the guest has logged in before still logs in.
func TestStrangersDoNotLockOutARecognisedGuest(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, behindProxy)
	guest(t, s)
	post := func(c *servicetest.Client, path, address string, body map[string]string) servicetest.Answer {
		t.Helper()
		answer := c.Send(http.MethodPost, path, body, from(address))
		if err := json.Unmarshal(answer.Raw, &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const mobile, office, perDay, perAddress, codesPerAddress = "010-1234-5678", "203.0.113.9", 100, 60, 20
	id := map[string]string{"type": "mobile", "id": mobile}
	with := func(code string) map[string]string {
		return map[string]string{"type": "mobile", "id": mobile, "code": code}
	}
	browser, stranger := s.Client(t), s.Client(t)
	post(browser, "/account/code", office, id).OK(t)
	post(browser, "/account/login", office, with(awaitCode(t, s, mobile, 1))).OK(t)

	for n := range perDay {
		post(stranger, "/account/login", fmt.Sprintf("198.51.%d.1", n/(perAddress/2)), with("x"))
	}
	post(stranger, "/account/login", "198.51.200.1", with("x")).Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
	for n := range perAddress {
		other := map[string]string{"type": "email", "id": fmt.Sprintf("guest-%d@example.com", n), "code": "x"}
		post(stranger, "/account/login", office, other)
		if n < codesPerAddress {
			post(stranger, "/account/code", office, other)
		}
	}
	for _, path := range []string{"/account/code", "/account/login"} {
		post(stranger, path, office, with("x")).Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
	}

	post(browser, "/account/code", office, id).OK(t)
	post(browser, "/account/login", office, with(awaitCode(t, s, mobile, 2))).OK(t)

	limited := post(browser, "/account/login", office, with("x")) // the browser has a limit of its own
	for n := 0; limited.HTTP == http.StatusUnauthorized && n < perDay; n++ {
		limited = post(browser, "/account/login", office, with("x"))
	}
	limited.Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
}

// If a second factor is enabled, a session and the password alone can neither change the password nor replace or recover
// the second factor.
func TestSecondFactorProtectsItself(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(*config.Settings) {})
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Clock.Stop(at)
	hq := s.Admin(t, "hq", "hq-demo")
	var begun struct {
		Secret string `json:"secret"`
	}
	password := map[string]string{"password": "hq-demo"}
	hq.Post("/v2/admin/account/recovery-codes", password).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post("/v2/admin/account/totp", password).OK(t).Into(t, &begun)
	code := func() string {
		at = at.Add(time.Minute)
		s.Clock.Stop(at)
		c, err := totp.GenerateCode(begun.Secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hq.Put("/v2/admin/account/totp", map[string]string{"code": code()}).OK(t)

	change := map[string]string{"password": "hq-demo", "newPassword": "lamp river nine"}
	hq.Post("/v2/admin/account/totp", password).Fails(t, 401, "SecondFactorRequired", "")
	hq.Post("/v2/admin/account/recovery-codes", password).Fails(t, 401, "SecondFactorRequired", "")
	hq.Post("/v2/admin/account/password", change).Fails(t, 401, "SecondFactorRequired", "")
	change["code"] = code()
	hq.Post("/v2/admin/account/password", change).OK(t)

	var recovery struct {
		Codes []string `json:"codes"`
	}
	hq.Post("/v2/admin/account/recovery-codes", map[string]string{"password": "lamp river nine", "code": code()}).OK(t).Into(t, &recovery)
	login := map[string]string{"id": "hq", "password": "lamp river nine", "code": recovery.Codes[0]}
	s.Client(t).Post("/admin/login", login).OK(t)
	s.Client(t).Post("/admin/login", login).Fails(t, 401, "AuthenticationError", "")
}

// If the policy requires a second factor, an administrator without one can access only the own account.
func TestSecondFactorPolicy(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.SecondFactor = []string{"hq"} })
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Clock.Stop(at)
	hq := s.Admin(t, "hq", "hq-demo")
	hq.Get("/v2/admin/administrators").Fails(t, 403, "SecondFactorRequired", "")
	hq.Get("/v2/admin/account").OK(t)
	var begun struct {
		Secret string `json:"secret"`
	}
	hq.Post("/v2/admin/account/totp", map[string]string{"password": "hq-demo"}).OK(t).Into(t, &begun)
	code, err := totp.GenerateCode(begun.Secret, at)
	if err != nil {
		t.Fatal(err)
	}
	hq.Put("/v2/admin/account/totp", map[string]string{"code": code}).OK(t)
	hq.Get("/v2/admin/administrators").OK(t)
}

// An administrator's session expires when it is idle, but not while it is in use.
func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.AdminIdle = time.Hour })
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Clock.Stop(at)
	hq := s.Admin(t, "hq", "hq-demo")
	for range 4 {
		at = at.Add(50 * time.Minute)
		s.Clock.Stop(at)
		hq.Get("/v2/admin/account").OK(t)
	}
	s.Clock.Stop(at.Add(time.Hour))
	hq.Get("/v2/admin/account").Fails(t, 401, "AuthenticationError", "")
}

// A client that knows only the address to which the payment provider redirected the browser does not receive the contact.
func TestRepeatedConfirmationHidesTheContact(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	confirmation := order(t, s, c, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")
	contact := func(c *servicetest.Client) (phone string, email *string) {
		t.Helper()
		var data struct {
			MobileNum string  `json:"mobileNum"`
			Email     *string `json:"email"`
		}
		c.Post("/payment/confirm", confirmation).OK(t).Into(t, &data)
		return data.MobileNum, data.Email
	}
	own, _ := contact(c)
	again, _ := contact(c)
	if own != "010-1234-5678" || again != own {
		t.Errorf("own contact %q, then %q", own, again)
	}
	if retry, _ := contact(s.Client(t)); retry != own {
		t.Errorf("an immediate retry without the cookie: %q, want %q", retry, own)
	}
	s.Clock.Advance(11 * time.Minute)
	if phone, email := contact(s.Client(t)); phone != "*********5678" || email != nil {
		t.Errorf("without the guest's cookie: phone %q, email %v", phone, email)
	}
}

// The address of a partner's calendar contains a secret, so viewers do not receive it.
func TestViewersSeeNoFeedAddress(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const feed = "https://partner.example/secret-token.ics"
	hq.Post("/v2/admin/branches/hongdae/channels", map[string]any{"partner": "달력", "roomNo": "2", "feedUrl": feed}).OK(t)
	hq.Post("/v2/admin/administrators", map[string]any{"id": "looker", "password": "lamp river nine", "role": "viewer", "branches": []string{"hongdae"}}).OK(t)
	const path = "/v2/admin/branches/hongdae/settings"
	if answer := hq.Get(path).OK(t); !strings.Contains(string(answer.Raw), feed) {
		t.Errorf("hq does not see the address: %s", answer.Raw)
	}
	if answer := s.Admin(t, "looker", "lamp river nine").Get(path).OK(t); strings.Contains(string(answer.Raw), "secret-token") {
		t.Errorf("a viewer sees the address: %s", answer.Raw)
	}
}
