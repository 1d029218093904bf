package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// dump returns every row of every table as text.
func (g *target) dump() string {
	g.Helper()
	rows, err := g.DB.Pool.Query(g.Context(), `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
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
		if err := g.DB.Pool.QueryRow(g.Context(), `select coalesce(string_agg(to_jsonb(x)::text, E'\n'), '') from `+pgx.Identifier{table}.Sanitize()+` x`).Scan(&content); err != nil {
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
			g.held(answer.HTTP == 200 && !strings.Contains(string(answer.Raw), "지울") && !guestNumber.Match(answer.Raw), "%s: HTTP %d %.200s", path, answer.HTTP, answer.Raw)
		}
	}},
	{"A26", "contact-of-a-repeated-confirmation", func(g *target) {
		_, confirmation := g.buy(g.Client(g.T), 3, victim)
		g.Clock.Advance(11 * time.Minute)
		answer := g.Client(g.T).Post("/payment/confirm", confirmation)
		g.held(!guestNumber.Match(answer.Raw) && !strings.Contains(string(answer.Raw), "jiul"), "the contact is shown: %s", answer.Raw)
	}},
	{"A26", "secrets-shown-to-viewers", func(g *target) {
		g.hq().Post("/v2/admin/branches/hongdae/channels", map[string]any{"partner": "p", "roomNo": "2", "feedUrl": "https://partner.example/secret-token.ics"}).OK(g.T)
		viewer := g.administrator("looker", "viewer", "hongdae")
		for _, path := range []string{"settings", "devices", "doors", "audit", "timeline?date=2026-11-22"} {
			answer := viewer.Send(http.MethodGet, "/v2/admin/branches/hongdae/"+path, nil, nil)
			g.held(!strings.Contains(string(answer.Raw), "secret-token"), "%s shows the address of a calendar to a viewer", path)
		}
	}},
	erasureAttack,
}

// settled waits until the refund and the messages of a reservation are finished.
func (g *target) settled(id int64) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		g.Clock.Advance(time.Second) // what waits for another attempt
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

// tracesOf returns the first place with a trace of the victim, in clear or sealed; empty: there is none.
func (g *target) tracesOf(text string) string {
	for _, trace := range []string{"지울", "8888-0001", "88880001", "jiul", "77776666"} {
		if i := strings.Index(text, trace); i >= 0 {
			return fmt.Sprintf("%q: …%s…", trace, text[max(0, i-200):min(len(text), i+60)])
		}
	}
	return ""
}

// opened returns all sealed values, opened with the service's key.
func (g *target) opened() string {
	g.Helper()
	keys, err := g.Settings.Keyring()
	if err != nil {
		g.Fatal(err)
	}
	var all strings.Builder
	for _, c := range postgres.SealedColumns {
		rows, err := g.DB.Pool.Query(g.Context(), `select `+c.Column+` from `+c.Table+` where `+c.Column+` is not null`)
		if err != nil {
			g.Fatal(err)
		}
		values, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			g.Fatal(err)
		}
		for _, v := range values {
			plain, err := keys.Open(c.Purpose, v)
			if err != nil {
				g.Fatalf("%s.%s: %v", c.Table, c.Column, err)
			}
			fmt.Fprintf(&all, "%s.%s: %s\n", c.Table, c.Column, plain)
			var answer struct{ Body []byte }
			if json.Unmarshal(plain, &answer) == nil {
				fmt.Fprintf(&all, "%s\n", answer.Body)
			}
		}
	}
	return all.String()
}

// readOrderIDs counts the order ids in a text that can be read with the service's key and the keys in the database.
func (g *target) readOrderIDs(text string) (read int) {
	g.Helper()
	keys, err := g.Settings.Keyring()
	if err != nil {
		g.Fatal(err)
	}
	rings := []*seal.Keyring{keys}
	stored, err := postgres.OrderKeys(g.Context(), g.DB.Pool)
	if err != nil {
		g.Fatal(err)
	}
	for _, one := range stored {
		plain, err := keys.Open(postgres.OrderKeyPurpose, one)
		if err != nil {
			g.Fatal(err)
		}
		ring, err := seal.ParseKeys(string(plain))
		if err != nil {
			g.Fatal(err)
		}
		rings = append(rings, ring)
	}
	for _, id := range orderIDs.FindAllString(text, -1) {
		sealed, err := base64.RawURLEncoding.DecodeString(id)
		if err != nil {
			continue
		}
		for _, ring := range rings {
			if _, err := ring.Open("order", sealed); err == nil {
				read++
			}
		}
	}
	return read
}

// orderIDs matches what may be an order id.
var orderIDs = regexp.MustCompile(`[A-Za-z0-9_-]{64}`)

// key returns the header of an idempotent request.
func key(text string) http.Header { return http.Header{"Idempotency-Key": {text}} }

// A guest with a row of every kind: two stays, a companion, an extension, a press without an agent, a code, a moved stay, a
// refunded virtual account, a login, an inquiry, and repeated requests.
var erasureAttack = attack{"A26", "traces-in-every-table", func(g *target) {
	hq, guest := g.hq(), g.Client(g.T)
	g.Clock.StartOfSlot()
	g.hold(guest, 2, 30)
	order := g.registerFor(guest, victim, 25_000)
	guest.Send(http.MethodPost, "/payment/confirm", g.authenticate(order, 25_000, sandbox.MethodVirtualAccount), key("confirm")).Envelope(g.T).OK(g.T)
	if _, err := g.Sandbox.Deposit(order); err != nil {
		g.Fatal(err)
	}
	g.await(`select exists (select from reservation where state = 'DONE')`)
	later := only[int64](g, `select id from reservation where state = 'DONE'`)
	first, owner, companion := g.stay()
	if first == later {
		first = only[int64](g, `select max(id) from reservation where state = 'DONE'`)
	}
	c := g.Client(g.T)
	for _, device := range []string{"front", "room"} {
		c.Send(http.MethodPost, "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": device, "key": companion}, key(device)).Envelope(g.T).OK(g.T)
		c.Post("/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": device, "key": owner}).OK(g.T)
	}
	c.Post("/v2/keys/"+owner+"/companions", map[string]string{"label": "지울의 동생"}).OK(g.T)
	c.Post("/v2/keys/"+owner+"/codes", map[string]string{"door": "front"})
	c.Send(http.MethodPost, "/v2/keys/"+owner+"/extension", map[string]string{"endDateTime": minute(g.Clock.Now().Add(75 * time.Minute).Truncate(10 * time.Minute))}, key("extend")).Envelope(g.T).OK(g.T)
	c.Send(http.MethodPost, "/account/code", map[string]string{"type": "mobile", "id": victim}, key("code")).Envelope(g.T).OK(g.T)
	guest.Post("/account/code", map[string]string{"type": "email", "id": "jiul@example.com"}).OK(g.T)
	c.Post("/franchise/inquiries", map[string]any{"name": "박지울", "mobileNum": victim, "email": "jiul@example.com", "region": "부산", "message": "지울입니다", "privacyConsent": true}).OK(g.T)
	g.Client(g.T).Post("/franchise/inquiries", map[string]any{"name": "이하나", "mobileNum": "010-7777-6666", "email": "hana@example.com", "region": "부산", "message": "x", "privacyConsent": true}).OK(g.T)

	path := fmt.Sprintf("/v2/admin/reservations/%d", first)
	hq.Get(path).OK(g.T)
	hq.Get("/v2/admin/reservations?query=8888").OK(g.T)
	hq.Send(http.MethodPost, path+"/key", map[string]string{"reason": "박지울 님이 잃어버림"}, key("key")).Envelope(g.T).OK(g.T)
	hq.Post(path+"/refunds", map[string]any{"amount": 1000, "reason": "박지울 님 010-8888-0001"}).OK(g.T)
	hq.Patch(path+"/contact", map[string]string{"name": "박지울", "mobileNum": victim, "email": "jiul@example.com", "reason": "박지울 님 요청"}).OK(g.T)
	hq.Send(http.MethodPost, "/v2/admin/personal-data/export", map[string]string{"contact": victim}, key("export")).Envelope(g.T).OK(g.T)
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "77776666", "refundReceiveAccountHolderName": "박지울", "reason": "박지울"}
	hq.Delete(fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", later), account).OK(g.T)
	hq.Delete(fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", first), map[string]string{"reason": "박지울"}).OK(g.T)
	g.settled(later)
	g.settled(first)
	g.Clock.Advance(2 * time.Hour) // the hold of the extension expires
	g.await(`select not exists (select from message where state in ('QUEUED', 'SENDING')) and not exists (select from refund where state not in ('COMPLETED', 'REFUSED'))`)

	g.held(g.tracesOf(g.opened()) != "", "the fixture seals nothing of the guest")
	backup := g.backup()
	for i, contact := range []string{victim, "jiul@example.com", "010-7777-6666"} {
		hq.Send(http.MethodPost, "/v2/admin/personal-data/erase", map[string]string{"contact": contact}, key(fmt.Sprint("erase-", i))).Envelope(g.T).OK(g.T)
	}
	g.held(g.tracesOf(g.dump()) == "", "in the tables: %s", g.tracesOf(g.dump()))
	g.held(g.tracesOf(g.opened()) == "", "in sealed values: %s", g.tracesOf(g.opened()))
	g.held(g.tracesOf(g.Log.String()) == "", "in the log: %s", g.tracesOf(g.Log.String()))
	places := g.dump() + g.Log.String()
	g.held(g.readOrderIDs(places) > 0, "no order id of the fixture can be read")
	g.AdvanceDays(g.T, 9)
	if err := g.Replica(g.T).KeepOrderKeys(g.Context()); err != nil {
		g.Fatal(err)
	}
	read := g.readOrderIDs(places)
	g.held(read == 0, "%d order ids can be read with the service's keys", read)
	g.chainHolds()

	restored := g.restored(backup)
	g.held(restored.tracesOf(restored.dump()) == "", "in the tables of a restored backup: %s", restored.tracesOf(restored.dump()))
	g.held(restored.tracesOf(restored.opened()) == "", "in sealed values of a restored backup: %s", restored.tracesOf(restored.opened()))
	g.held(restored.tracesOf(restored.Log.String()) == "", "in the log after a restore: %s", restored.tracesOf(restored.Log.String()))
	restored.chainHolds()
}}

func (g *target) chainHolds() {
	g.Helper()
	_, _, err := postgres.VerifyAudit(g.Context(), g.DB.Pool, postgres.AuditHead{})
	g.held(err == nil, "the audit chain: %v", err)
}

// tool runs one of PostgreSQL's programs on a database.
func (g *target) tool(name, database string, args ...string) {
	g.Helper()
	server, err := postgres.DiagnoseServer(g.Context(), g.DB.Pool)
	if err != nil {
		g.Fatal(err)
	}
	path, err := pgserver.Tool(g.Context(), name, server.VersionNumber/100_00)
	if err != nil {
		g.Fatal(err)
	}
	if out, err := exec.CommandContext(g.Context(), path, append([]string{"--dbname=" + database, "--no-owner", "--no-privileges"}, args...)...).CombinedOutput(); err != nil {
		g.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// backup writes the database into a file, as `yeolda backup` does.
func (g *target) backup() (file string) {
	g.Helper()
	file = filepath.Join(g.TempDir(), "dump")
	g.tool("pg_dump", g.Settings.Database.URL, "--format=custom", "--file="+file)
	return file
}

// restored starts the service on a backup and the list of erasures, as after `yeolda restore`, and waits until it has erased
// the persons again.
func (g *target) restored(backup string) *target {
	g.Helper()
	erasures, err := postgres.Erasures(g.Context(), g.DB.Pool)
	if err != nil {
		g.Fatal(err)
	}
	url := pgtest.Empty(g.T, g.Settings.Database.URL)
	g.tool("pg_restore", url, "--single-transaction", "--exit-on-error", backup)
	db, err := postgres.Open(g.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		g.Fatal(err)
	}
	defer db.Close()
	before := &target{g.T, &servicetest.Stack{DB: db}}
	g.held(g.tracesOf(before.dump()) != "", "the backup does not contain the guest")
	if err := postgres.PutPendingErasures(g.Context(), db.Pool, erasures); err != nil {
		g.Fatal(err)
	}
	again := &target{g.T, servicetest.Start(g.T, func(set *config.Settings) {
		set.Database.URL = url
		set.Secrets = g.Settings.Secrets
	})}
	again.await(`select not exists (select from erasure_pending)`)
	return again
}

// await waits until a query selects true; $1 is true.
func (g *target) await(query string) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		g.Clock.Advance(time.Second) // what waits for another attempt
		if only[bool](g, query) {
			return
		}
	}
	g.Fatalf("not within a minute: %s", query)
}
