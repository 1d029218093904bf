package attack

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

var accessAttacks = []attack{
	{"A1", "session-planted-or-kept", func(g *target) {
		hq := g.hq()
		address, err := url.Parse(g.Root)
		if err != nil {
			g.Fatal(err)
		}
		cookies := hq.HTTP.Jar.Cookies(address)
		hq.Post("/admin/logout", nil).OK(g.T)
		for _, c := range cookies {
			if c.Name == "JSESSIONID" {
				g.refused(g.Client(g.T).Send(http.MethodGet, "/v2/me", nil, http.Header{"Cookie": {"JSESSIONID=" + c.Value}}), "session after logout", 401)
			}
		}
		planted := g.Client(g.T)
		planted.Send(http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, http.Header{"Cookie": {"JSESSIONID=planted-by-an-attacker"}})
		g.refused(g.Client(g.T).Send(http.MethodGet, "/v2/me", nil, http.Header{"Cookie": {"JSESSIONID=planted-by-an-attacker"}}), "planted session id", 401)
	}},
	{"A2", "request-of-another-site", func(g *target) {
		hq := g.hq()
		for _, header := range []http.Header{{"Origin": {"https://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"null"}}} {
			for _, path := range []string{"/admin/logout", "/admin/reservation", "/v2/admin/account/password", "/v2/admin/personal-data/erase"} {
				g.refused(hq.Send(http.MethodPost, path, map[string]string{}, header), path+" from another site", 403)
			}
		}
		hq.Get("/v2/me").OK(g.T)
	}},
	{"A3", "answer-read-by-another-origin", func(g *target) {
		for _, origin := range []string{"https://evil.example", "null", g.Root + ".evil.example"} {
			for _, method := range []string{http.MethodGet, http.MethodOptions} {
				answer := g.Client(g.T).Send(method, "/v2/branches", nil, http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}})
				for name := range answer.Header {
					g.held(!strings.HasPrefix(name, "Access-Control-"), "%s from %s: header %s", method, origin, name)
				}
			}
		}
	}},
	{"A10", "every-operation-without-rights", func(g *target) {
		guest := g.Client(g.T)
		g.buy(guest, 3, "010-8888-0001")
		viewer := g.administrator("looker", "viewer", "hongdae")
		manager := g.administrator("keeper", "manager", "hongdae")
		parameter := regexp.MustCompile(`\{[^}]+\}`)
		for _, o := range contract.Operations() {
			if o.Access() == "public" || strings.Contains(o.Path, "logout") {
				continue
			}
			path := strings.NewReplacer("{branch}", "gangnam", "{id}", "1001", "{payId}", "1001", "{room}", "1", "{roomNo}", "1", "{doorType}", "front").Replace(o.Path)
			path = parameter.ReplaceAllString(path, "1")
			g.refused(g.Client(g.T).Send(o.Method, path, nil, nil), "anonymous "+o.Method+" "+path, 401)
			if !strings.HasPrefix(o.Path, "/admin/") && !strings.HasPrefix(o.Path, "/v2/admin/") {
				continue
			}
			if strings.Contains(path, "gangnam") || o.Access() == "hq" {
				answer := manager.Send(o.Method, path, nil, nil)
				g.refused(answer, "manager of another branch "+o.Method+" "+path, 400, 403, 404, 410)
				g.held(answer.HTTP != 400 || !strings.Contains(string(answer.Raw), "gangnam"), "manager of another branch %s: %s", path, answer.Raw)
			}
			if o.Access() == "hq" || o.Access() == "change" {
				g.refused(viewer.Send(o.Method, path, nil, nil), "viewer "+o.Method+" "+path, 403)
			}
		}
	}},
	{"A11", "record-of-another-branch", func(g *target) {
		g.buy(g.Client(g.T), 3, "010-8888-0001")
		manager := g.administrator("keeper", "manager", "hongdae")
		var id string
		if err := g.DB.Pool.QueryRow(g.Context(), `select id::text from reservation where state = 'DONE'`).Scan(&id); err != nil {
			g.Fatal(err)
		}
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"GET", "/admin/reservation/" + id, nil},
			{"DELETE", "/admin/reservation/" + id + "?bookingStatus=paid", nil},
			{"PUT", "/admin/reservation/" + id, map[string]any{"room": "1", "startDateTime": minute(g.Clock.Now().Add(48 * 3600e9)), "endDateTime": minute(g.Clock.Now().Add(49 * 3600e9))}},
			{"GET", "/v2/admin/reservations/" + id, nil},
			{"POST", "/v2/admin/reservations/" + id + "/key-message", nil},
			{"POST", "/v2/admin/reservations/" + id + "/refund", nil},
			{"POST", "/admin/door/v2/unlock/gangnam/front", nil},
			{"GET", "/v2/admin/branches/gangnam/timeline?date=2026-11-22", nil},
			{"GET", "/v2/admin/live?branch=gangnam&date=2026-11-22", nil},
		} {
			answer := manager.Send(r.method, r.path, r.body, nil)
			g.held(answer.HTTP == 400 || answer.HTTP == 403 || answer.HTTP == 404, "%s %s: HTTP %d", r.method, r.path, answer.HTTP)
			g.held(!guestNumber.Match(answer.Raw), "%s %s shows the guest: %s", r.method, r.path, answer.Raw)
		}
	}},
	{"A12", "spelling-of-a-path", func(g *target) {
		for _, path := range []string{
			"/admin/reservations", "/Admin/reservations", "/admin//reservations", "/./admin/reservations", "/x/../admin/reservations", "/admin/reservations/",
			"/admin%2freservations", "/%61dmin/reservations", "/admin/reservations%00", "/admin/reservations;a=b", "/v2/branches/../admin/administrators",
			"/v2/branches/gangnam/../../admin/administrators", "/v2/admin/administrators/", "/door/v2/unlock/../../../admin/reservations", "/franchise/../admin/reservations",
		} {
			request, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.URL, nil)
			if err != nil {
				g.Fatal(err)
			}
			request.URL.Opaque = strings.TrimPrefix(g.URL, "http:") + path
			answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
			if err != nil {
				continue // the client refuses to send it
			}
			_ = answer.Body.Close()
			g.held(answer.StatusCode >= 300, "%s: HTTP %d", path, answer.StatusCode)
		}
	}},
}
