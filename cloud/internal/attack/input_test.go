package attack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
)

var inputAttacks = []attack{
	{"A13", "odd-bodies", func(g *target) {
		bodies := []string{
			"", "null", "[]", "1", `"text"`, "{", `{"id":`, `{"id":"hq"} {"id":"hq"}`, `{"id":"hq","password":["a"]}`, `{"id":1,"password":"x"}`,
			`{"id":"hq\u0000","password":"x"}`, "\xff\xfe", strings.Repeat("[", 10_000), `{"id":"` + strings.Repeat("a", 200) + `","password":"x"}`, `{"id":"hq","password":""}`,
		}
		for _, body := range bodies {
			g.refused(g.Client(g.T).Send(http.MethodPost, "/admin/login", body, nil), fmt.Sprintf("body %.40q", body), 400)
		}
		g.refused(g.Client(g.T).Send(http.MethodPost, "/admin/login", strings.Repeat(" ", 65<<10)+"{}", nil), "65 KiB", 413)
	}},
	{"A13", "sql-in-every-field", func(g *target) {
		c := g.Client(g.T)
		for _, text := range []string{"' or '1'='1", "1; drop table reservation", "gangnam' --", "%00", "\\", "${jndi:x}", "../../etc/passwd"} {
			for _, path := range []string{"/v2/branches/%s/calendar?yearMonth=2026-12", "/v2/branches/gangnam/calendar?yearMonth=%s", "/v2/keys/%s", "/door/v2/unlock/subscribe?requestId=%s&key=%[1]s"} {
				answer := c.Send(http.MethodGet, fmt.Sprintf(path, strings.NewReplacer(" ", "%20", "'", "%27", "/", "%2F", "\\", "%5C", "$", "%24", "{", "%7B", "}", "%7D").Replace(text)), nil, nil)
				g.held(answer.HTTP >= 400 && answer.HTTP < 500, "%s with %q: HTTP %d", path, text, answer.HTTP)
				g.held(!strings.Contains(strings.ToLower(string(answer.Raw)), "sql"), "%s with %q tells about the database: %s", path, text, answer.Raw)
			}
		}
	}},
	{"A27", "calendar-address-inside-our-network", func(g *target) {
		hq := g.hq()
		for _, address := range []string{"http://partner.example/1.ics", "https://me:secret@partner.example/1.ics", "file:///etc/passwd", "ftp://partner.example/1.ics", "https:///1.ics", "gopher://x", "javascript:alert(1)"} {
			g.refused(hq.Send(http.MethodPost, "/v2/admin/branches/hongdae/channels", map[string]any{"partner": "p", "roomNo": "2", "feedUrl": address}, nil), address, 400)
		}
		reader := channel.NewICal("yeolda.example", g.Clock.Now)
		for _, host := range []string{
			"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "168.63.129.16",
			"100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "2130706433", "0x7f000001", "017700000001",
		} {
			_, err := reader.Pull(g.Context(), channel.Feed{URL: "https://" + host + "/", Zone: seoul})
			g.held(err != nil, "%s was fetched", host)
		}
	}},
	{"A28", "unsigned-chat-command", func(g *target) {
		for _, header := range []http.Header{
			nil, {"X-Signature-Ed25519": {strings.Repeat("0", 128)}, "X-Signature-Timestamp": {"1"}}, {"X-Signature-Ed25519": {"zz"}, "X-Signature-Timestamp": {fmt.Sprint(g.Clock.Now().Unix())}},
		} {
			g.refused(g.Client(g.T).Send(http.MethodPost, "/discord/interactions", `{"type":1}`, header), "interaction without a valid signature", 401, 404)
		}
	}},
	{"A29", "flood-of-inquiries", func(g *target) {
		body := map[string]any{"name": "a\r\nBcc: x@example.com", "mobileNum": "010-1234-5678", "email": "a@example.com", "region": "부산", "message": "x", "privacyConsent": true}
		refused := 0
		for range 10 {
			if g.send(g.Client(g.T), "198.51.100.9", http.MethodPost, "/franchise/inquiries", body).HTTP == 429 {
				refused++
			}
		}
		g.held(refused >= 5, "%d of 10 inquiries within an hour were refused", refused)
		g.refused(g.Client(g.T).Send(http.MethodPost, "/franchise/inquiries", map[string]any{"name": "a", "mobileNum": "010-1234-5678", "email": "a@example.com\r\nBcc: x@example.com", "region": "b", "message": "x", "privacyConsent": true}, nil), "a header in an address", 400)
	}},
	{"A30", "calendar-bombs", func(g *target) {
		event := func(lines string) string { return "BEGIN:VEVENT\r\nUID:%d\r\n" + lines + "END:VEVENT\r\n" }
		for name, lines := range map[string]string{
			"long occurrences":     "DTSTART:19720101T000000Z\r\nDURATION:P21000D\r\nRRULE:FREQ=DAILY;COUNT=20000\r\n",
			"daily without an end": "DTSTART:20261123T000000Z\r\nDURATION:PT10M\r\nRRULE:FREQ=DAILY\r\n",
			"exceptions":           "DTSTART:20261123T000000Z\r\nRRULE:FREQ=DAILY\r\n" + strings.Repeat("EXDATE:"+strings.Repeat("20261124T000000Z,", 100)+"20261125T000000Z\r\n", 20),
			"never matching":       "DTSTART:20261123T000000Z\r\nRRULE:FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31\r\n",
		} {
			var b strings.Builder
			b.WriteString("BEGIN:VCALENDAR\r\n")
			for i := 0; b.Len() < 1<<20; i++ {
				fmt.Fprintf(&b, event(lines), i)
			}
			b.WriteString("END:VCALENDAR\r\n")
			list, problems, _, err := channel.ParseCalendar(g.Context(), []byte(b.String()), seoul, "yeolda.example", time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
			g.held(len(list) <= 2000, "%s: %d bookings", name, len(list))
			g.held(err != nil || len(problems) > 0, "%s: accepted", name)
		}
		ctx, cancel := context.WithCancel(g.Context())
		cancel()
		_, _, _, err := channel.ParseCalendar(ctx, []byte("BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"), seoul, "yeolda.example", time.Now())
		g.held(errors.Is(err, context.Canceled), "parsing after its context ended: %v", err)
	}},
	{"A30", "kept-answers-of-strangers", func(g *target) {
		var wg sync.WaitGroup
		client := g.Client(g.T)
		for worker := range 4 {
			wg.Go(func() {
				for i := range 330 {
					client.Send(http.MethodPost, "/account/logout", nil, http.Header{"X-Forwarded-For": {"198.51.100.9"}, "Idempotency-Key": {fmt.Sprint(worker, "-", i)}})
				}
			})
		}
		wg.Wait()
		kept := only[int](g, `select count(*) from idempotent_request`)
		g.held(kept <= 1200, "%d answers are kept for one address", kept)
	}},
	{"A31", "errors-that-tell", func(g *target) {
		c := g.Client(g.T)
		for _, path := range []string{"/v2/keys/00000000-0000-4000-8000-000000000000", "/nothing", "/v2/branches/nowhere/calendar?yearMonth=2026-12", "/door/v2/unlock/subscribe?requestId=x&key=y"} {
			answer := c.Send(http.MethodGet, path, nil, nil)
			for _, trace := range []string{"postgres", "goroutine", ".go:", "pgx", "SQLSTATE", "panic"} {
				g.held(!strings.Contains(string(answer.Raw), trace), "%s tells %q: %s", path, trace, answer.Raw)
			}
			g.held(answer.Header.Get("Server") == "", "%s: header Server", path)
		}
	}},
}
