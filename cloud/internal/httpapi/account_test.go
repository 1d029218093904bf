package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// guest creates a paid reservation of 010-1234-5678, hong@example.com.
func guest(t *testing.T, s *servicetest.Stack) (start time.Time) {
	t.Helper()
	c := s.Client(t)
	start = slot(s, 3*time.Hour)
	c.Post("/payment/confirm", order(t, s, c, 1, start, time.Hour, 30000, "카드")).OK(t)
	return start
}

// awaitCode returns the latest login code sent to a contact, once n codes were sent.
func awaitCode(t *testing.T, s *servicetest.Stack, to string, n int) string {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var codes []string
		for _, m := range s.Sandbox.Messages(to) {
			if code := m.Variables["code"]; code != "" {
				codes = append(codes, code)
			}
		}
		if len(codes) >= n {
			return codes[n-1]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d codes arrived at %s", len(codes), n, to)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sessionOf returns the session id of a client.
func sessionOf(t *testing.T, s *servicetest.Stack, c *servicetest.Client) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range c.HTTP.Jar.Cookies(u) {
		if cookie.Name == "JSESSIONID" {
			return cookie.Value
		}
	}
	return ""
}

// withSession returns a client that sends a session id as its cookie.
func withSession(t *testing.T, s *servicetest.Stack, id string) *servicetest.Client {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client(t)
	c.HTTP.Jar.SetCookies(u, []*http.Cookie{{Name: "JSESSIONID", Value: id, Path: "/"}})
	return c
}

func noSession(t *testing.T, a servicetest.Answer) {
	t.Helper()
	a.Fails(t, 401, "AuthenticationError", "인증되지 않은 사용자입니다.")
}

func TestCustomerLogin(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest(t, s)
	for i, who := range []struct{ loginType, id, spelt, sentTo, stored string }{
		{"mobile", "010-1234-5678", "01012345678", "01012345678", "01012345678"},
		{"email", "hong@example.com", "Hong@Example.COM", "hong@example.com", "hong@example.com"},
	} {
		c := s.Client(t)
		if data := c.Post("/account/code", map[string]string{"type": who.loginType, "id": who.id}).OK(t).Data; string(data) != "null" {
			t.Errorf("data %s", data)
		}
		code := awaitCode(t, s, who.sentTo, 1)
		answer := c.Post("/account/login", map[string]string{"type": who.loginType, "id": who.spelt, "code": code}).OK(t)
		var payments []map[string]any
		answer.Into(t, &payments)
		if len(payments) != 1 || payments[0]["status"] != "DONE" || payments[0]["branch"] != "gangnam" {
			t.Errorf("%s: payments %v", who.loginType, payments)
		}
		if again := c.Get("/my-reservations").OK(t); string(again.Data) != string(answer.Data) {
			t.Errorf("my-reservations %s, login %s", again.Data, answer.Data)
		}
		var me struct{ LoginType, LoginID string }
		c.Get("/v2/me").OK(t).Into(t, &me)
		if me.LoginType != who.loginType || me.LoginID != who.stored {
			t.Errorf("me %d: %+v", i, me)
		}
		c.Get("/admin/reservations?branch=gangnam&base_date=20261121&base_hour=10").Fails(t, 403, "AuthorizationError", "인가되지 않은 사용자입니다.")
		s.Client(t).Post("/account/login", map[string]string{"type": who.loginType, "id": who.id, "code": code}).
			Fails(t, 401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다.")

		id := sessionOf(t, s, c)
		c.Post("/account/logout", nil).OK(t)
		noSession(t, c.Get("/v2/me"))
		noSession(t, withSession(t, s, id).Get("/v2/me"))
	}
}

func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	guest(t, s)
	long := strings.Repeat("가", 300)
	for _, c := range []struct {
		path, body string
		status     int
		errorType  string
		message    string
	}{
		{"/account/code", `{"type":"mobile","id":"010-9999-9999"}`, 404, "ResourceNotFoundException", "예약 내역이 없습니다."},
		{"/account/code", `{"type":"email","id":"nobody@example.com"}`, 404, "ResourceNotFoundException", "예약 내역이 없습니다."},
		{"/account/code", `{"type":"fax","id":"010-1234-5678"}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `{"type":"mobile"}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `{"id":"010-1234-5678"}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `{"type":"mobile","id":"hong@example.com"}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `{"type":"email","id":"010-1234-5678"}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `{"type":"mobile","id":1012345678}`, 400, "IllegalArguemntError", ""},
		{"/account/code", `[]`, 400, "IllegalArguemntError", ""},
		{"/account/login", `{"type":"mobile","id":"010-1234-5678","code":"000000"}`, 401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다."},
		{"/account/login", `{"type":"mobile","id":"010-9999-9999","code":"000000"}`, 401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다."},
		{"/account/login", `{"type":"mobile","id":"010-1234-5678"}`, 400, "IllegalArguemntError", ""},
		{"/account/login", `{"type":"mobile","id":"010-1234-5678","code":123456}`, 400, "IllegalArguemntError", ""},
		{"/admin/login", `{"id":"hq","password":"wrong"}`, 401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."},
		{"/admin/login", `{"id":"nobody","password":"hq-demo"}`, 401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."},
		{"/admin/login", `{"id":"hq","password":"HQ-DEMO"}`, 401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."},
		{"/admin/login", `{"id":"hq"}`, 400, "IllegalArguemntError", ""},
		{"/admin/login", `{"password":"hq-demo"}`, 400, "IllegalArguemntError", ""},
		{"/admin/login", `{"id":"hq","password":"` + long + `"}`, 400, "IllegalArguemntError", ""},
		{"/admin/login", `{"id":"` + long + `","password":"x"}`, 400, "IllegalArguemntError", ""},
	} {
		a := s.Client(t).Post(c.path, c.body)
		a.Fails(t, c.status, c.errorType, c.message)
		if len(a.Header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s %s sets a cookie", c.path, c.body)
		}
	}
}

func TestAdministratorLogin(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for id, c := range map[string]struct {
		password string
		branches []string
	}{
		"hq":              {"hq-demo", []string{"gangnam", "hongdae", "jamsil"}},
		"gangnam-manager": {"gangnam-demo", []string{"gangnam"}},
	} {
		var data struct {
			AdminLoginID string
			BranchList   []string
		}
		client := s.Client(t)
		client.Post("/admin/login", map[string]string{"id": id, "password": c.password}).OK(t).Into(t, &data)
		if data.AdminLoginID != id || !slices.Equal(data.BranchList, c.branches) {
			t.Errorf("%s: %+v", id, data)
		}
		session := sessionOf(t, s, client)
		client.Post("/admin/logout", nil).OK(t)
		noSession(t, withSession(t, s, session).Get("/v2/me"))
	}
}

// A login invalidates the session id that the client sent, whether the client invented it or the service issued it.
func TestLoginGivesANewSession(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	login := map[string]string{"id": "hq", "password": "hq-demo"}

	planted := strings.Repeat("A", 43)
	victim := withSession(t, s, planted)
	victim.Post("/admin/login", login).OK(t)
	if sessionOf(t, s, victim) == planted {
		t.Error("a planted session id was taken over")
	}
	noSession(t, withSession(t, s, planted).Get("/v2/me"))

	first := sessionOf(t, s, victim)
	victim.Post("/admin/login", map[string]string{"id": "gangnam-manager", "password": "gangnam-demo"}).OK(t)
	noSession(t, withSession(t, s, first).Get("/v2/me"))
	var me struct{ AdminLoginID string }
	victim.Get("/v2/me").OK(t).Into(t, &me)
	if me.AdminLoginID != "gangnam-manager" {
		t.Errorf("logged in as %s", me.AdminLoginID)
	}
}

// A guest who logs out on a shared computer leaves no key behind. A purchase in progress continues.
func TestLogoutForgetsThePurchase(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	purchase := order(t, s, c, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")
	c.Post("/account/logout", nil).OK(t)
	c.Post("/payment/confirm", purchase).OK(t)
	c.Get("/v2/receipt").OK(t)
	c.Post("/account/logout", nil).OK(t)
	c.Get("/v2/receipt").Fails(t, 401, "ResourceTimeOutException", "")
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.CookieSecure = true })
	cookie := func(a servicetest.Answer) *http.Cookie {
		cookies := (&http.Response{Header: a.Header}).Cookies()
		i := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == "JSESSIONID" })
		if i < 0 {
			t.Fatalf("cookies %v", cookies)
		}
		return cookies[i]
	}
	c := cookie(s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t))
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 24*60*60 || len(c.Value) < 22 {
		t.Errorf("cookie %+v", c)
	}
	if c := cookie(s.Client(t).Post("/account/logout", nil).OK(t)); c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("cookie after logout %+v", c)
	}
	var stored int
	if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from session where token = $1`, c.Value).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the session id is stored as it is: %d, %v", stored, err)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.Times.CustomerSessionTTL = 2 * time.Hour })
	guest(t, s)
	admin := s.Admin(t, "hq", "hq-demo")
	customer := s.Client(t)
	customer.Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	customer.Post("/account/login", map[string]string{"type": "mobile", "id": "01012345678", "code": awaitCode(t, s, "01012345678", 1)}).OK(t)

	s.Clock.Advance(2*time.Hour - time.Minute)
	customer.Get("/my-reservations").OK(t)
	s.Clock.Advance(2 * time.Minute)
	noSession(t, customer.Get("/my-reservations"))
	s.Clock.Advance(22*time.Hour - 2*time.Minute)
	admin.Get("/v2/me").OK(t) // a session expires 24 hours after the login, even if it is in use
	s.Clock.Advance(2 * time.Minute)
	noSession(t, admin.Get("/v2/me"))
}

func TestSessionsSurviveARestart(t *testing.T) {
	t.Parallel()
	first := servicetest.Start(t)
	admin := first.Admin(t, "hq", "hq-demo")
	second := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = first.DB.Pool.Config().ConnString()
		set.MQTT.BrokerURL = "mqtt://127.0.0.1:9" // only one service on a database may have the embedded broker
	})
	withSession(t, second, sessionOf(t, first, admin)).Get("/v2/me").OK(t)
	admin.Post("/admin/logout", nil).OK(t)
	noSession(t, withSession(t, second, sessionOf(t, first, admin)).Get("/v2/me"))
}

// If an administrator loses a right, the next request of an open session no longer has it.
func TestRightsEndAtOnce(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx := t.Context()
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	path := "/admin/reservations?branch=gangnam&base_date=20261121&base_hour=10"
	manager.Get(path).OK(t)
	manager.Get(strings.Replace(path, "gangnam", "hongdae", 1)).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")

	if _, err := s.DB.Pool.Exec(ctx, `delete from administrator_branch`); err != nil {
		t.Fatal(err)
	}
	manager.Get(path).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")

	if _, err := s.DB.Pool.Exec(ctx, `update administrator set role = $1 where login_id = 'gangnam-manager'`, "hq"); err != nil {
		t.Fatal(err)
	}
	manager.Get(strings.Replace(path, "gangnam", "hongdae", 1)).OK(t)

	if err := postgres.SetDisabled(ctx, s.DB.Pool, "gangnam-manager", time.Now()); err != nil {
		t.Fatal(err)
	}
	noSession(t, manager.Get(path))
}

func TestViewerLooksOnly(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	accounts := &account.Service{DB: s.DB}
	err := accounts.AddAdministrator(t.Context(), account.NewAdministrator{
		LoginID: "viewer", Password: "only looking around", Role: account.Viewer, Branches: []string{"gangnam"},
	}, "test")
	if err != nil {
		t.Fatal(err)
	}
	viewer := s.Admin(t, "viewer", "only looking around")
	viewer.Get("/admin/reservations?branch=gangnam&base_date=20261121&base_hour=10").OK(t)
	viewer.Patch("/admin/machines/gangnam/1", map[string]bool{"enabled": false}).Fails(t, 403, "AuthorizationError", "인가되지 않은 사용자입니다.")
	viewer.Post("/admin/logout", nil).OK(t)
}

func TestTooManyLogins(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) {
		set.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	guest(t, s)
	from := func(address string) *servicetest.Client {
		c := s.Client(t)
		c.HTTP.Transport = forwarded{address}
		return c
	}
	tooMany := func(a servicetest.Answer) {
		t.Helper()
		a.Fails(t, 429, "TooManyRequestsError", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.")
		if after := a.Header.Get("Retry-After"); after == "" || after == "0" || len(after) > 3 {
			t.Errorf("Retry-After %q", after)
		}
	}
	ask := map[string]string{"type": "mobile", "id": "010-1234-5678"}
	for i := range 5 {
		from(fmt.Sprintf("198.51.100.%d", i)).Post("/account/code", ask).OK(t)
	}
	tooMany(from("198.51.100.9").Post("/account/code", ask))

	wrong := map[string]string{"id": "hq", "password": "wrong"}
	for i := range 10 {
		from("198.51.100.77").Post("/admin/login", map[string]string{"id": fmt.Sprintf("id%d", i), "password": "wrong"}).Fails(t, 401, "AuthenticationError", "")
	}
	tooMany(from("198.51.100.77").Post("/admin/login", wrong))
	from("198.51.100.78").Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t)
}

// forwarded sends requests with the headers of a reverse proxy.
type forwarded struct{ client string }

func (f forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", "203.0.113.250, "+f.client) // the first entry is invented by the client
	return http.DefaultTransport.RoundTrip(r)
}

func TestFranchiseInquiry(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	inquiry := func(change func(map[string]any)) map[string]any {
		body := map[string]any{
			"name": "김철수", "mobileNum": "010-1111-2222", "email": "kim@example.com", "region": "부산 해운대구",
			"message": "가맹 문의드립니다.\n연락 부탁드립니다.", "privacyConsent": true,
		}
		change(body)
		return body
	}
	for name, change := range map[string]func(map[string]any){
		"no consent":     func(b map[string]any) { b["privacyConsent"] = false },
		"no word of it":  func(b map[string]any) { delete(b, "privacyConsent") },
		"name too long":  func(b map[string]any) { b["name"] = strings.Repeat("가", 51) },
		"phone too long": func(b map[string]any) { b["mobileNum"] = strings.Repeat("1", 21) },
		"no e-mail":      func(b map[string]any) { b["email"] = "" },
		"two e-mails":    func(b map[string]any) { b["email"] = "a@b.kr\r\nBcc: c@d.kr" },
		"region":         func(b map[string]any) { b["region"] = strings.Repeat("가", 101) },
		"no message":     func(b map[string]any) { delete(b, "message") },
		"long message":   func(b map[string]any) { b["message"] = strings.Repeat("가", 2001) },
	} {
		if a := c.Post("/franchise/inquiries", inquiry(change)); a.HTTP != 400 || a.ErrorType != "IllegalArguemntError" {
			t.Errorf("%s: %d %s", name, a.HTTP, a.Raw)
		}
	}
	longest := inquiry(func(b map[string]any) {
		b["message"], b["name"] = strings.Repeat("가", 2000), strings.Repeat("가", 50)
	})
	if a := c.Post("/franchise/inquiries", longest).OK(t); string(a.Data) != "null" {
		t.Errorf("data %s", a.Data)
	}
	for range 4 {
		c.Post("/franchise/inquiries", inquiry(func(map[string]any) {})).OK(t)
	}
	c.Post("/franchise/inquiries", inquiry(func(map[string]any) {})).Fails(t, 429, "TooManyRequestsError", "")
	deadline := time.Now().Add(time.Minute)
	for len(s.Sandbox.Messages("hq@yeolda.example")) < 5 {
		if time.Now().After(deadline) {
			t.Fatal("the headquarters was not notified")
		}
		time.Sleep(20 * time.Millisecond)
	}
	var stored int
	if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from franchise_inquiry where region = $1`, "부산 해운대구").Scan(&stored); err != nil || stored != 5 {
		t.Errorf("%d inquiries are stored, %v", stored, err)
	}
}

// Messages, sessions and the audit log contain no secrets of a login.
func TestCodesAreNotStoredInTheOpen(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest(t, s)
	s.Client(t).Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	code := awaitCode(t, s, "01012345678", 1)
	for _, table := range []string{"message", "login_code", "audit", "river_job"} {
		var rows []json.RawMessage
		if err := s.DB.Pool.QueryRow(t.Context(), `select coalesce(array_agg(to_jsonb(x)), '{}') from `+table+` x`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if strings.Contains(string(row), `"`+code+`"`) {
				t.Errorf("%s shows the code", table)
			}
		}
	}
}

// An Internet provider gives one customer thousands of IPv6 networks. Each inquiry sends a mail to the headquarters, so they share a limit.
func TestInquiriesAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, behindProxy)
	c := s.Client(t)
	inquiry := map[string]any{"name": "홍길동", "mobileNum": "010-1234-5678", "email": "a@b.kr", "region": "부산", "message": "문의", "privacyConsent": true}
	sent := 0
	for n := range 60 {
		answer := c.Send(http.MethodPost, "/franchise/inquiries", inquiry, from(fmt.Sprintf("2001:db8:1:%x::1", n)))
		switch answer.HTTP {
		case http.StatusOK:
			sent++
		case http.StatusTooManyRequests:
			if answer.Header.Get("Retry-After") == "" {
				t.Fatal("429 without Retry-After")
			}
		default:
			t.Fatalf("HTTP %d", answer.HTTP)
		}
	}
	if sent != 50 {
		t.Errorf("%d inquiries from one /48, want 50", sent)
	}
}
