package attack

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// reader is a client whose answers are searched for secrets.
type reader struct {
	name   string
	client *servicetest.Client
	header http.Header
}

// token has the headquarters create a token.
func (g *target) token(hq *servicetest.Client, branches []string, scopes ...string) http.Header {
	g.Helper()
	var created struct{ Token string }
	hq.Post("/v2/admin/tokens", map[string]any{"name": "t", "scopes": scopes, "branches": branches}).OK(g.T).Into(g.T, &created)
	return http.Header{"Authorization": {"Bearer " + created.Token}}
}

// only returns the one value that a query selects.
func only[T any](g *target, query string) (value T) {
	g.Helper()
	if err := g.DB.Pool.QueryRow(g.Context(), query).Scan(&value); err != nil {
		g.Fatal(err)
	}
	return value
}

// stay buys room 1 for an hour that has begun, and returns the reservation with its key and the key of a companion.
func (g *target) stay() (id int64, owner, companion string) {
	g.Helper()
	owner, _ = g.buy(g.Client(g.T), 3, victim)
	g.Clock.Stop(g.Clock.Now().In(seoul).Add(3 * time.Hour).Truncate(10 * time.Minute).Add(5 * time.Minute))
	var added struct{ Key string }
	g.Client(g.T).Post("/v2/keys/"+owner+"/companions", map[string]string{"label": "동생"}).OK(g.T).Into(g.T, &added)
	return only[int64](g, `select id from reservation where state = 'DONE'`), owner, added.Key
}

// readEverything returns what a client reads from all operations that read, with the values of the fixture in the path.
func (g *target) readEverything(r reader, values *strings.Replacer) string {
	g.Helper()
	var all strings.Builder
	for _, o := range contract.Operations() {
		if o.Method != http.MethodGet || strings.Contains(o.Path, "subscribe") || strings.Contains(o.Path, "openapi") || strings.HasPrefix(o.Path, "/v2/keys/") {
			continue
		}
		path := values.Replace(o.Path)
		for _, query := range []string{"", "?date=2026-11-25", "?branch=gangnam&month=2026-11", "?yearMonth=2026-11", "?query=8888", "?branch=gangnam&from=2026-11-01&to=2026-11-30&by=day"} {
			fmt.Fprintf(&all, "%s%s\n%s\n", path, query, r.client.Send(http.MethodGet, path+query, nil, r.header).Raw)
		}
	}
	return all.String()
}

// traces are the actions of the audit log with which operations that show names of guests leave a trace of the reader.
var traces = map[string]string{
	"/admin/reservation/{id}":                  "reservation.view",
	"/v2/admin/reservations/{id}":              "reservation.view",
	"/v2/admin/reservations":                   "reservation.search",
	"/v2/admin/reservations/{id}/guest":        "guest.view",
	"/v2/admin/messages/{id}":                  "message.view",
	"/v2/admin/branches/{branch}/timeline":     "reservation.day",
	"/v2/admin/branches/{branch}/money":        "reservation.month",
	"/v2/admin/branches/{branch}/payments":     "reservation.month",
	"/v2/admin/branches/{branch}/payments.csv": "export.payments",
}

var secretAttacks = []attack{
	{"A26", "secrets-by-role", func(g *target) {
		hq := g.hq()
		id, owner, companion := g.stay()
		var facts struct{ PIN struct{ Code string } }
		g.Client(g.T).Get("/v2/keys/"+owner).OK(g.T).Into(g.T, &facts)
		hq.Put("/v2/admin/branches/hongdae/doors/front/pin", map[string]string{"pin": "739182"}).OK(g.T)
		hq.Post("/v2/admin/branches/gangnam/channels", map[string]any{"partner": "p", "roomNo": "2", "feedUrl": "https://partner.example/calendar-secret.ics"}).OK(g.T)
		hq.Put("/v2/admin/alert-contacts", map[string]any{"alertContacts": []any{map[string]any{"name": "a", "channel": "webhook", "to": "https://partner.example/alert-secret", "kinds": []string{}}}}).OK(g.T)
		var hook struct{ ID, Secret string }
		hq.Post("/v2/admin/webhooks", map[string]string{"url": "https://partner.example/hook-secret"}).OK(g.T).Into(g.T, &hook)
		err := g.DB.InTx(g.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			return g.Replica(g.T).Queue.Message(ctx, tx, queue.Message{
				Reservation: booking.ReservationID(id), Branch: only[booking.BranchID](g, `select id from branch where code = 'gangnam'`),
				Template: "refund-account", Language: "ko", Mobile: victim,
				Variables: map[string]string{"amount": "1", "link": g.Root + "/refund/refund-secret"},
			})
		})
		if err != nil {
			g.Fatal(err)
		}
		reads, all := g.token(hq, nil, "read"), g.token(hq, nil, "read", "book", "money", "doors", "climate")
		readers := []reader{
			{"anonymous", g.Client(g.T), nil},
			{"viewer", g.administrator("looker", "viewer", "gangnam", "hongdae"), nil},
			{"manager", g.administrator("keeper", "manager", "gangnam", "hongdae"), nil},
			{"front desk", g.administrator("desk", "front-desk", "gangnam", "hongdae"), nil},
			{"accountant", g.administrator("books", "accountant", "gangnam", "hongdae"), nil},
			{"cleaner", g.administrator("broom", "cleaner", "gangnam", "hongdae"), nil},
			{"other manager", g.administrator("other", "manager", "jamsil"), nil},
			{"token read", g.Client(g.T), reads},
			{"token all", g.Client(g.T), all},
			{"token of another branch", g.Client(g.T), g.token(hq, []string{"jamsil"}, "read", "book", "money", "doors", "climate")},
			{"hq", hq, nil},
		}
		messages := only[[]string](g, `select array_agg(id::text) from message where reservation_id is not null`)
		secrets := []struct {
			name, pattern string
			shown         []string // the readers that may see it
		}{
			{"the owner's key", owner, []string{"manager", "token all", "hq"}},
			{"a companion's key", companion, nil},
			{"the PIN of a stay", `\b` + facts.PIN.Code + `\b`, []string{"manager", "token all", "hq"}},
			{"the PIN of a door", `\b739182\b`, nil},
			{"the address of a calendar", "calendar-secret", []string{"manager", "token all", "hq"}},
			{"the address of an alert contact", "alert-secret", []string{"token all", "hq"}},
			{"the address of a webhook", "hook-secret", []string{"token read", "token all", "hq"}},
			{"the secret of a webhook", regexp.QuoteMeta(hook.Secret), nil},
			{"the link of a refund account", "refund-secret", nil},
			{"a token", strings.TrimPrefix(reads.Get("Authorization"), "Bearer "), nil},
			{"the phone number of a guest", "8888-?0001", []string{"viewer", "front desk", "manager", "token read", "token all", "hq"}},
			{"the e-mail address of a guest", "jiul@", []string{"viewer", "front desk", "manager", "token read", "token all", "hq"}},
			{"the hash of a password", `\$argon2id\$`, nil},
		}
		for _, r := range readers {
			var read strings.Builder
			for _, message := range messages {
				read.WriteString(g.readEverything(r, strings.NewReplacer("{branch}", "gangnam", "/messages/{id}", "/messages/"+message, "/webhooks/{id}", "/webhooks/"+hook.ID, "{id}", fmt.Sprint(id))))
			}
			read.WriteString(g.readEverything(r, strings.NewReplacer("{branch}", "hongdae", "{id}", fmt.Sprint(id))))
			for _, s := range secrets {
				text := read.String()
				found := regexp.MustCompile(s.pattern).FindStringIndex(text)
				want := slices.Contains(s.shown, r.name)
				if found == nil {
					g.held(!want || s.name == "the PIN of a stay", "%s does not see %s", r.name, s.name)
					continue
				}
				g.held(want, "%s sees %s: …%s…", r.name, s.name, text[max(0, found[0]-200):min(len(text), found[1]+40)])
			}
		}
	}},
	{"A19", "names-read-without-a-trace", func(g *target) {
		hq := g.hq()
		id, _, _ := g.stay()
		message := only[string](g, `select min(id)::text from message where reservation_id is not null`)
		values := strings.NewReplacer("{branch}", "gangnam", "/messages/{id}", "/messages/"+message, "{id}", fmt.Sprint(id))
		day, month := g.Clock.Now().In(seoul).Format(time.DateOnly), g.Clock.Now().In(seoul).Format("2006-01")
		queries := []string{"", "?date=" + day, "?yearMonth=" + month, "?query=8888", "?month=" + month, "?branch=gangnam&date=" + day, "?branch=gangnam&from=" + day + "&to=" + day + "&by=day"}
		guest, tested := regexp.MustCompile(`지울|8888-?0001|jiul@`), 0
		for _, o := range contract.Operations() {
			if o.Method != http.MethodGet || o.Access() == "public" || strings.Contains(o.Path, "subscribe") {
				continue
			}
			for _, query := range queries {
				if !guest.Match(hq.Send(http.MethodGet, values.Replace(o.Path)+query, nil, nil).Raw) {
					continue
				}
				tested++
				traced := slices.Contains(only[[]string](g, `select array_agg(distinct action) from audit where actor = 'admin:hq'`), traces[o.Path])
				g.held(traced, "%s%s shows a guest, and no entry of the audit log names the reader", o.Path, query)
			}
		}
		g.held(tested >= 5, "only %d answers show the guest: nothing was tested", tested)
	}},
	{"A7", "secrets-in-a-copy-of-the-database", func(g *target) {
		hq := g.hq()
		_, owner, companion := g.stay()
		hq.Put("/v2/admin/branches/hongdae/doors/front/pin", map[string]string{"pin": "739182605514"}).OK(g.T)
		hq.Post("/v2/admin/branches/gangnam/channels", map[string]any{"partner": "p", "roomNo": "2", "feedUrl": "https://partner.example/calendar-secret.ics"}).OK(g.T)
		hq.Put("/v2/admin/alert-contacts", map[string]any{"alertContacts": []any{map[string]any{"name": "a", "channel": "webhook", "to": "https://partner.example/alert-secret", "kinds": []string{}}}}).OK(g.T)
		var hook struct{ Secret string }
		hq.Post("/v2/admin/webhooks", map[string]string{"url": "https://partner.example/hook"}).OK(g.T).Into(g.T, &hook)
		token := strings.TrimPrefix(g.token(hq, nil, "read").Get("Authorization"), "Bearer ")
		root, err := url.Parse(g.URL)
		if err != nil {
			g.Fatal(err)
		}
		var session string
		for _, cookie := range hq.HTTP.Jar.Cookies(root) {
			if cookie.Name == "JSESSIONID" {
				session = cookie.Value
			}
		}
		copied := g.dump()
		g.held(strings.Contains(copied, "박지울"), "the copy lacks the guest")
		for name, secret := range map[string]string{
			"the owner's key": owner, "a companion's key": companion, "the PIN of a door": "739182605514", "the address of a calendar": "calendar-secret",
			"the address of an alert contact": "alert-secret", "the secret of a webhook": hook.Secret, "a token": token, "a password": "hq-demo",
			"the session of the headquarters": session,
		} {
			g.held(secret != "" && !strings.Contains(copied, secret), "a copy of the database holds %s as text", name)
			g.held(!strings.Contains(copied, hex.EncodeToString([]byte(secret))), "a copy of the database holds %s as bytes", name)
		}
	}},
	{"A7", "companion-as-owner", func(g *target) {
		_, owner, companion := g.stay()
		c := g.Client(g.T)
		path := "/v2/keys/" + companion
		facts := c.Get(path).OK(g.T)
		g.held(!guestNumber.Match(facts.Raw), "a companion's key shows the number: %s", facts.Raw)
		for _, trace := range []string{owner, "jiul", "지울"} {
			g.held(!strings.Contains(string(facts.Raw), trace), "a companion's key shows %q: %s", trace, facts.Raw)
		}
		g.held(!strings.Contains(string(facts.Raw), `"pin":{`), "a companion's key shows the PIN: %s", facts.Raw)
		before := only[string](g, `select string_agg(state || end_at::text, ' ' order by id) from reservation`)
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"GET", path + "/companions", nil},
			{"POST", path + "/companions", map[string]string{"label": "x"}},
			{"DELETE", path + "/companions/1", nil},
			{"POST", path + "/extension", map[string]string{"endDateTime": minute(g.Clock.Now().Add(75 * time.Minute).Truncate(10 * time.Minute))}},
			{"POST", path + "/end", nil},
		} {
			g.refused(c.Send(r.method, r.path, r.body, nil), r.method+" with a companion's key", 403)
		}
		offer := c.Get(path + "/extension").OK(g.T)
		g.held(strings.Contains(string(offer.Raw), `"options":[]`), "a companion is offered an extension: %s", offer.Raw)
		after := only[string](g, `select string_agg(state || end_at::text, ' ' order by id) from reservation`)
		g.held(before == after, "reservations %s, before %s", after, before)
		g.held(strings.Contains(string(c.Get("/v2/keys/"+owner+"/extension").OK(g.T).Raw), `"endDateTime"`), "the owner is offered no extension")
		c.Delete("/v2/keys/"+owner+"/companions/"+only[string](g, `select id::text from access_key where kind = 'companion'`), nil).OK(g.T)
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"GET", path, nil}, {"GET", path + "/extension", nil}, {"POST", path + "/codes", map[string]string{"door": "front"}}, {"POST", path + "/end", nil},
			{"POST", path + "/climate", map[string]string{"option": "a"}}, {"GET", path + "/companions", nil},
			{"POST", "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "front", "key": companion}},
		} {
			g.refused(c.Send(r.method, r.path, r.body, nil), r.method+" "+r.path+" with a revoked key", 400)
		}
	}},
	{"A8", "token-beyond-its-rights", func(g *target) {
		hq, c := g.hq(), g.Client(g.T)
		all := []string{"read", "book", "money", "doors", "climate"}
		everything, gangnam, reading := g.token(hq, nil, all...), g.token(hq, []string{"gangnam"}, all...), g.token(hq, nil, "read")
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"POST", "/v2/admin/tokens", map[string]any{"name": "x", "scopes": all}}, {"GET", "/v2/admin/tokens", nil}, {"DELETE", "/v2/admin/tokens/1", nil},
			{"GET", "/v2/admin/administrators", nil}, {"POST", "/v2/admin/administrators", map[string]any{"id": "x", "password": "lamp river nine", "role": "hq"}},
			{"PUT", "/v2/admin/administrators/hq", map[string]any{"role": "viewer"}}, {"POST", "/v2/admin/administrators/hq/password", map[string]any{"password": "lamp river nine"}},
			{"POST", "/v2/admin/account/password", map[string]any{"password": "hq-demo"}}, {"DELETE", "/v2/admin/administrators/hq/totp", nil}, {"GET", "/v2/admin/account", nil},
		} {
			g.refused(c.Send(r.method, r.path, r.body, everything), "token of all scopes: "+r.method+" "+r.path, 403)
		}
		for _, path := range []string{
			"/v2/admin/branches/hongdae/timeline?date=2026-11-25", "/v2/admin/settlement?month=2026-11&branch=hongdae", "/v2/admin/alerts?branch=hongdae",
			"/v2/admin/overview?branch=hongdae", "/v2/admin/webhooks", "/v2/admin/alert-contacts", "/v2/admin/agents/rollout",
		} {
			g.refused(c.Send(http.MethodGet, path, nil, gangnam), "token of gangnam: "+path, 403)
		}
		for _, path := range []string{"/admin/door/v2/unlock/gangnam/front", "/v2/admin/branches/gangnam/agents", "/v2/admin/closures", "/v2/admin/personal-data/erase", "/v2/admin/reconciliation"} {
			g.refused(c.Send(http.MethodPost, path, nil, reading), "token of the scope read: "+path, 403)
		}
		for _, bad := range []string{"", "Bearer", "Bearer yl_", "Bearer x", "Basic aHE6aHEtZGVtbw==", "Bearer " + strings.Repeat("y", 5000)} {
			g.refused(c.Send(http.MethodGet, "/v2/admin/overview", nil, http.Header{"Authorization": {bad}}), "header "+bad[:min(20, len(bad))], 401)
		}
		for _, events := range []string{"/v2/events?limit=1000"} {
			g.stay()
			seen := c.Send(http.MethodGet, events, nil, g.token(hq, []string{"hongdae"}, "read"))
			g.held(seen.HTTP == 200 && !strings.Contains(string(seen.Raw), "gangnam"), "events of another branch: %s", seen.Raw)
			own := c.Send(http.MethodGet, events, nil, gangnam)
			g.held(strings.Contains(string(own.Raw), `"gangnam"`) && !guestNumber.Match(own.Raw), "events of the own branch: %s", own.Raw)
		}
	}},
	{"A11", "console-of-another-branch", func(g *target) {
		id, owner, _ := g.stay()
		manager := g.administrator("keeper", "manager", "hongdae")
		alert := only[int64](g, `insert into alert (kind, branch, subject, since) select 'door-held', 'gangnam', 'room_1', now() returning id`)
		everywhere := only[int64](g, `insert into alert (kind, branch, subject, since) select 'reconciliation-late', '', '', now() returning id`)
		reservation := fmt.Sprintf("/v2/admin/reservations/%d", id)
		snapshot := func() string {
			return only[string](g, `select (select string_agg(concat_ws(' ', id, state, start_at, end_at, mobile, name), ',' order by id) from reservation)
				|| (select string_agg(concat_ws(' ', id, kind, revoked_at), ',' order by id) from access_key)
				|| (select string_agg(concat_ws(' ', id, acknowledged_by), ',' order by id) from alert)
				|| (select string_agg(concat_ws(' ', code, schedule, keypads), ',' order by id) from branch)`)
		}
		before := snapshot()
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"PATCH", reservation + "/contact", map[string]string{"mobileNum": "010-9999-0001", "reason": "x"}},
			{"POST", reservation + "/key", map[string]string{"reason": "x"}},
			{"DELETE", reservation + "/companions/" + only[string](g, `select id::text from access_key where kind = 'companion'`), nil},
			{"POST", reservation + "/refunds", map[string]any{"amount": 100, "reason": "x"}},
			{"POST", reservation + "/refunds", map[string]any{"amount": price, "reason": "x", "settledOutside": map[string]string{"how": "cash", "reference": "1"}}},
			{"POST", reservation + "/refund/approval", nil},
			{"DELETE", reservation + "/refund/approval", nil},
			{"GET", reservation + "/why", nil},
			{"POST", fmt.Sprintf("/v2/admin/alerts/%d/acknowledge", alert), nil},
			{"POST", fmt.Sprintf("/v2/admin/alerts/%d/acknowledge", everywhere), nil},
			{"GET", "/v2/admin/alerts?branch=gangnam", nil},
			{"GET", "/v2/admin/settlement?month=2026-11&branch=gangnam", nil},
			{"GET", "/v2/admin/settlement.csv?month=2026-11&branch=gangnam", nil},
			{"GET", "/v2/admin/settlement.xlsx?month=2026-11&branch=gangnam", nil},
			{"GET", "/v2/admin/overview?branch=gangnam", nil},
			{"GET", "/v2/admin/doors/levels?branch=gangnam", nil},
			{"GET", "/v2/admin/reports/occupancy?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil},
			{"GET", "/v2/admin/reports/occupancy.csv?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil},
			{"GET", "/v2/admin/reports/occupancy.xlsx?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil},
			{"GET", "/v2/admin/branches/gangnam/climate-policy", nil},
			{"PUT", "/v2/admin/branches/gangnam/climate-policy", map[string]any{"rooms": []any{}}},
			{"PUT", "/v2/admin/branches/gangnam/doors/front/pin", map[string]string{"pin": "123987"}},
			{"POST", "/v2/admin/branches/gangnam/quarantine/1/release", map[string]string{"reason": "x"}},
			{"POST", "/v2/admin/closures", map[string]any{"branches": []string{"hongdae", "gangnam"}, "rule": map[string]string{"yearly": "01-01"}, "reason": "x", "preview": false}},
			{"POST", "/v2/admin/agents/agent-gangnam/activate", nil},
			{"POST", "/v2/admin/agents/agent-gangnam/rotate", nil},
			{"DELETE", "/v2/admin/agents/agent-gangnam", nil},
			{"POST", "/v2/admin/webhooks", map[string]any{"url": "https://partner.example/", "branches": []string{"gangnam"}}},
			{"GET", "/v2/admin/alert-contacts", nil},
		} {
			answer := manager.Send(r.method, r.path, r.body, nil)
			g.refused(answer, r.method+" "+r.path, 403)
			g.held(!guestNumber.Match(answer.Raw) && !strings.Contains(string(answer.Raw), owner), "%s %s shows the guest: %s", r.method, r.path, answer.Raw)
		}
		g.held(snapshot() == before, "something of gangnam has changed")
		for _, path := range []string{"/v2/admin/settlement?month=2026-11", "/v2/admin/alerts?state=all", "/v2/admin/overview", "/v2/admin/reservations?query=8888", "/v2/events"} {
			answer := manager.Get(path)
			g.held(answer.HTTP == 200 && !strings.Contains(string(answer.Raw), "gangnam") && !guestNumber.Match(answer.Raw), "%s: HTTP %d %s", path, answer.HTTP, answer.Raw)
		}
	}},
	{"A17", "refund-link-guessed", func(g *target) {
		account := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "thief"}
		for _, token := range []string{"x", strings.Repeat("A", 26), "%27%20or%201=1", "..%2f..", strings.Repeat("A", 3000), "%00"} {
			g.refused(g.Client(g.T).Send(http.MethodGet, "/v2/refund-accounts/"+token, nil, nil), "reading a guessed link", 400, 401, 404)
			g.refused(g.Client(g.T).Send(http.MethodPost, "/v2/refund-accounts/"+token, account, nil), "entering an account at a guessed link", 400, 401, 404)
		}
	}},
	{"A27", "webhook-inside-our-network", func(g *target) {
		strict := servicetest.Start(g.T, func(set *config.Settings) { set.Webhooks.Allow = []netip.Prefix{} })
		hq := strict.Admin(g.T, "hq", "hq-demo")
		for _, host := range []string{
			"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1",
			"192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001::1]", "[::]", "[::127.0.0.1]",
		} {
			for _, scheme := range []string{"https", "http"} {
				g.refused(hq.Send(http.MethodPost, "/v2/admin/webhooks", map[string]string{"url": scheme + "://" + host + "/"}, nil), scheme+" "+host, 400)
			}
		}
		for _, address := range []string{"http://93.184.216.34/", "file:///etc/passwd", "gopher://x", "https://a:b@93.184.216.34/", "https:///", "//93.184.216.34", "https://93.184.216.34/#f", "javascript:alert(1)"} {
			g.refused(hq.Send(http.MethodPost, "/v2/admin/webhooks", map[string]string{"url": address}, nil), address, 400)
		}
	}},
}
