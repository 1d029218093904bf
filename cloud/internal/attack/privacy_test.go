package attack

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// dump returns every row of every table as text.
func (g *target) dump() string {
	g.Helper()
	rows, err := g.DB.Pool.Query(g.Context(), `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' and $1`, true)
	if err != nil {
		g.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		g.Fatal(err)
	}
	var all strings.Builder
	for _, table := range tables {
		var content string
		if err := g.DB.Pool.QueryRow(g.Context(), `select coalesce(string_agg(to_jsonb(x)::text, E'\n'), '') from `+pgx.Identifier{table}.Sanitize()+` x where $1`, true).Scan(&content); err != nil {
			g.Fatal(err)
		}
		fmt.Fprintf(&all, "%s: %s\n", table, content)
	}
	return all.String()
}

var privacyAttacks = []attack{
	{"A26", "traces-of-an-erased-guest", func(g *target) {
		g.buy(g.Client(g.T), 3, victim)
		hq := g.hq()
		var id int64
		if err := g.DB.Pool.QueryRow(g.Context(), `select id from reservation where mobile_key = $1`, "01088880001").Scan(&id); err != nil {
			g.Fatal(err)
		}
		at := g.Clock.Now().In(seoul).Add(30 * time.Hour).Truncate(10 * time.Minute)
		hq.Put(fmt.Sprintf("/admin/reservation/%d", id), map[string]any{"room": "1", "startDateTime": minute(at), "endDateTime": minute(at.Add(time.Hour)), "reason": "박지울(010-8888-0001) 님 요청"}).OK(g.T)
		hq.Delete(fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil).OK(g.T)
		g.settled(id)
		hq.Post("/v2/admin/personal-data/erase", map[string]string{"contact": victim}).OK(g.T)
		after := g.dump()
		for _, trace := range []string{"지울", "8888-0001", "88880001", "jiul"} {
			i := strings.Index(after, trace)
			g.held(i < 0, "%q remains: …%s…", trace, after[max(0, i-120):min(len(after), max(0, i)+40)])
		}
		g.held(!strings.Contains(string(hq.Get("/v2/admin/branches/gangnam/audit").Raw), "지울"), "the audit log names the guest")
	}},
	{"A26", "names-in-public-answers", func(g *target) {
		g.buy(g.Client(g.T), 3, victim)
		day := g.Clock.Now().In(seoul)
		for _, path := range []string{
			"/v2/branches/gangnam/reservations?date=" + day.Format("2006-01-02") + "&baseHour=0&hours=24", "/v2/branches/gangnam/calendar?yearMonth=" + day.Format("2006-01"),
			"/reservations?branch=gangnam&base_hour=0&base_date=" + day.Format("20060102"), "/v2/branches", "/v2/site",
		} {
			answer := g.Client(g.T).Send(http.MethodGet, path, nil, nil)
			g.held(answer.HTTP == 200 && !strings.Contains(string(answer.Raw), "지울") && !strings.Contains(string(answer.Raw), "8888"), "%s: HTTP %d %.200s", path, answer.HTTP, answer.Raw)
		}
	}},
	{"A26", "contact-of-a-repeated-confirmation", func(g *target) {
		_, confirmation := g.buy(g.Client(g.T), 3, victim)
		g.Clock.Advance(11 * time.Minute)
		answer := g.Client(g.T).Post("/payment/confirm", confirmation)
		g.held(!strings.Contains(string(answer.Raw), "010-8888") && !strings.Contains(string(answer.Raw), "jiul"), "the contact is shown: %s", answer.Raw)
	}},
	{"A26", "secrets-shown-to-viewers", func(g *target) {
		g.hq().Post("/v2/admin/branches/hongdae/channels", map[string]any{"partner": "p", "roomNo": "2", "feedUrl": "https://partner.example/secret-token.ics"}).OK(g.T)
		viewer := g.administrator("looker", "viewer", "hongdae")
		for _, path := range []string{"settings", "devices", "doors", "audit", "timeline?date=2026-11-22"} {
			answer := viewer.Send(http.MethodGet, "/v2/admin/branches/hongdae/"+path, nil, nil)
			g.held(!strings.Contains(string(answer.Raw), "secret-token"), "%s shows the address of a calendar to a viewer", path)
		}
	}},
}

// settled waits until the refund and the messages of a reservation are finished.
func (g *target) settled(id int64) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var open int
		err := g.DB.Pool.QueryRow(g.Context(), `
			select (select count(*) from refund where reservation_id = $1 and state not in ('COMPLETED', 'REFUSED'))
			     + (select count(*) from message where reservation_id = $1 and state in ('QUEUED', 'SENDING'))
			     + (select count(*) from reservation where id = $1 and state <> 'CANCELED')`, id).Scan(&open)
		if err != nil {
			g.Fatal(err)
		}
		if open == 0 {
			return
		}
	}
	g.Fatalf("reservation %d is not settled", id)
}
