package httpapi_test

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type overviewBranch struct {
	Branch                           string
	Online                           bool
	OpenAlerts, OccupiedRooms, Rooms int
	WorstAlert, NextArrival, Since   *string
	TodayAmount                      int
	UnlockSuccess7d                  *float64
}

func overview(t *testing.T, client *servicetest.Client, query string) (branches []overviewBranch, next *string) {
	t.Helper()
	var answer struct {
		Branches []overviewBranch
		Next     *string
	}
	client.Get("/v2/admin/overview"+query).OK(t).Into(t, &answer)
	return answer.Branches, answer.Next
}

func codes(branches []overviewBranch) (list []string) {
	for _, b := range branches {
		list = append(list, b.Branch)
	}
	return list
}

// Branches that are offline come first, then those with alerts by severity, then the others.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := overview(t, c.HQ, ""); !slices.Equal(codes(got), []string{"gangnam", "hongdae", "jamsil"}) {
		t.Errorf("without alerts: %q", codes(got))
	}
	exec(`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory) select id, '1', $1, $1, true, '{}' from branch where code = 'hongdae'`, s.Clock.Now())
	if got, _ := overview(t, c.HQ, ""); !slices.Equal(codes(got), []string{"gangnam", "jamsil", "hongdae"}) {
		t.Errorf("with two branches whose agent was never connected: %q", codes(got))
	}
	exec(`insert into alert (kind, branch, subject, since, notified_at) values ('clock', 'hongdae', '', now(), now()), ('door-held', 'jamsil', 'front_1', now(), now()), ('clock', 'jamsil', '', now(), now())`)
	got, _ := overview(t, c.HQ, "")
	if !slices.Equal(codes(got), []string{"jamsil", "hongdae", "gangnam"}) || got[0].OpenAlerts != 2 || *got[0].WorstAlert != "door-held" || !got[1].Online {
		t.Errorf("with alerts: %+v", got)
	}
	exec(`update agent_inventory set online = false, presence_since = $1`, s.Clock.Now())
	if got, _ = overview(t, c.HQ, ""); !slices.Equal(codes(got), []string{"hongdae", "jamsil", "gangnam"}) || got[0].Since == nil {
		t.Errorf("with a branch offline: %+v", got)
	}
	first, next := overview(t, c.HQ, "?limit=2")
	if !slices.Equal(codes(first), []string{"hongdae", "jamsil"}) || next == nil {
		t.Fatalf("first page %q, next %v", codes(first), next)
	}
	if second, end := overview(t, c.HQ, "?limit=2&cursor="+*next); !slices.Equal(codes(second), []string{"gangnam"}) || end != nil {
		t.Errorf("second page %q, next %v", codes(second), end)
	}
	c.HQ.Get("/v2/admin/overview?cursor=7").Fails(t, 400, "IllegalArguemntError", "다음 위치(cursor) 값의 형식이 올바르지 않습니다.")

	// The customer of the cast has paid for an hour, three hours from now.
	own, _ := overview(t, c.Manager, "")
	if len(own) != 1 || own[0].TodayAmount == 0 || own[0].NextArrival == nil || own[0].OccupiedRooms != 0 || own[0].Rooms != 6 {
		t.Fatalf("of the manager: %+v", own)
	}
	paid := own[0].TodayAmount
	exec(`insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		select 'part', reservation_id, branch_id, order_id, 'refunded', -1000, at from money_entry where kind = 'paid' and branch_id = (select id from branch where code = 'gangnam') limit 1`)
	if own, _ = overview(t, c.Manager, ""); own[0].TodayAmount != paid-1000 {
		t.Errorf("after the refund of a part: %d won, want %d", own[0].TodayAmount, paid-1000)
	}
	s.Clock.Advance(3*time.Hour + time.Minute)
	exec(`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at, detail)
		select gen_random_uuid(), id, 'admin:x', 'front', 'front', '{}', state, $1, $1, detail
		from branch, (values ('SUCCESS', ''), ('SUCCESS', ''), ('FAILED', 'bolt'), ('FAILED', 'branch offline')) v (state, detail) where code = 'gangnam'`, s.Clock.Now())
	if own, _ = overview(t, c.Manager, ""); own[0].OccupiedRooms != 1 || own[0].UnlockSuccess7d == nil || *own[0].UnlockSuccess7d != 0.6667 {
		t.Errorf("during the stay: %+v", own[0])
	}
}

func TestDoorLevels(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	now := s.Clock.Now()
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
		select gen_random_uuid(), b.id, 'admin:x', 'room', 'room_' || room, '{}', case when room = 2 and n = 1 then 'FAILED' else 'SUCCESS' end,
		       at, at + make_interval(secs => (100 + n + case room when 3 then 20 * (14 - day) else 0 end) / 1000.0)
		from branch b, generate_series(1, 3) room, generate_series(0, 14) day, generate_series(1, 5) n,
		     lateral (select $1::timestamptz - make_interval(days => day, mins => n)) t (at)
		where b.code = 'gangnam'`, now); err != nil {
		t.Fatal(err)
	}
	read := func(query string) map[string][]string {
		t.Helper()
		var answer struct {
			Doors []struct {
				Device, Verdict  string
				Presses, Success int
				P50              *int
				Trend            float64
				Days             []struct{ Date string }
			}
		}
		c.Manager.Get("/v2/admin/doors/levels?branch=gangnam"+query).OK(t).Into(t, &answer)
		found := map[string][]string{}
		for i, d := range answer.Doors {
			found[d.Device] = []string{strconv.Itoa(i), d.Verdict, strconv.Itoa(d.Presses), strconv.Itoa(d.Success), strconv.FormatFloat(d.Trend, 'f', 0, 64), strconv.Itoa(len(d.Days))}
		}
		return found
	}
	check := func(when string) {
		t.Helper()
		got := read("&days=30")
		for device, want := range map[string][]string{
			"room_1": {"2", "good", "75", "75", "0", "15"}, "room_2": {"0", "failing", "75", "60", "0", "15"}, "room_3": {"1", "watch", "75", "75", "20", "15"},
		} {
			if !slices.Equal(got[device], want) {
				t.Errorf("%s: %s %q, want %q", when, device, got[device], want)
			}
		}
	}
	for _, at := range []time.Time{now.AddDate(0, 0, -10), now} {
		if err := postgres.PutDoorDays(t.Context(), s.DB.Pool, at); err != nil {
			t.Fatal(err)
		}
	}
	check("after the service was down for ten days")
	if err := postgres.PutDoorDays(t.Context(), s.DB.Pool, now); err != nil {
		t.Fatal(err)
	}
	check("after the job ran twice")
	c.Manager.Get("/v2/admin/doors/levels?days=91").Fails(t, 400, "IllegalArguemntError", "기간(days) 값은 1에서 90 사이여야 합니다.")
	c.Other.Get("/v2/admin/doors/levels?branch=gangnam").Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
}

func TestOccupancy(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	start := c.start.In(time.FixedZone("KST", 9*60*60)) // the stay of the cast: an hour in room 1
	day := start.Format(time.DateOnly)
	type row struct {
		Key                          string
		SoldMinutes, SellableMinutes int
		Amount                       int
	}
	read := func(client *servicetest.Client, query string) []row {
		t.Helper()
		var answer struct{ Rows []row }
		client.Get("/v2/admin/reports/occupancy?"+query).OK(t).Into(t, &answer)
		return answer.Rows
	}
	sum := func(rows []row) (sold, sellable, amount int) {
		for _, r := range rows {
			sold, sellable, amount = sold+r.SoldMinutes, sellable+r.SellableMinutes, amount+r.Amount
		}
		return sold, sellable, amount
	}
	until := start.AddDate(0, 0, 1).Format(time.DateOnly)
	midnight := time.Date(start.Year(), start.Month(), start.Day()+1, 0, 0, 0, 0, start.Location())
	sold := int(min(time.Hour, midnight.Sub(start)).Minutes()) // on the day of the start
	for by, keys := range map[string]int{"room": 6, "weekday": 2, "hour": 24, "day": 2} {
		rows := read(c.Manager, "branch=gangnam&from="+day+"&to="+until+"&by="+by)
		sold, sellable, amount := sum(rows)
		if len(rows) != keys || sold != 60 || sellable != 2*6*24*60 || amount == 0 {
			t.Errorf("by %s: %d rows, %d of %d minutes, %d won", by, len(rows), sold, sellable, amount)
		}
	}
	_, _, before := sum(read(c.Manager, "branch=gangnam&from="+day+"&to="+until+"&by=room"))
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		select 'part', id, branch_id, order_id, 'refunded', -1000, now() from reservation where state = 'DONE' order by id limit 1`); err != nil {
		t.Fatal(err)
	}
	if _, _, after := sum(read(c.Manager, "branch=gangnam&from="+day+"&to="+until+"&by=room")); after != before-1000 {
		t.Errorf("%d won after a refund of 1,000, want %d", after, before-1000)
	}
	if rows := read(c.HQ, "from="+day+"&to="+day+"&by=room"); !slices.ContainsFunc(rows, func(r row) bool { return r.Key == "gangnam/1" && r.SoldMinutes == sold }) {
		t.Errorf("of all branches: %+v", rows)
	}
	answer := c.Manager.Send(http.MethodGet, "/v2/admin/reports/occupancy.csv?branch=gangnam&from="+day+"&to="+day+"&by=room", nil, nil)
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(answer.Raw), "\uFEFF"))).ReadAll()
	if err != nil || answer.HTTP != http.StatusOK || len(lines) != 7 || lines[1][1] != strconv.Itoa(sold) {
		t.Errorf("file: %d %v %q", answer.HTTP, err, lines)
	}
	book, err := excelize.OpenReader(bytes.NewReader(c.Manager.Send(http.MethodGet, "/v2/admin/reports/occupancy.xlsx?branch=gangnam&from="+day+"&to="+day+"&by=room", nil, nil).Raw))
	if err != nil {
		t.Fatal(err)
	}
	amount, err := book.GetCellValue("가동률", "E2", excelize.Options{RawCellValue: true})
	if kind, kindErr := book.GetCellType("가동률", "E2"); err != nil || kindErr != nil || amount != lines[1][4] || kind == excelize.CellTypeSharedString {
		t.Errorf("workbook: %q %v %v %v, the file says %q", amount, kind, err, kindErr, lines[1])
	}
	for query, message := range map[string]string{
		"from=" + until + "&to=" + day + "&by=day": "종료일(to) 값은 1에서 366 사이여야 합니다.",
		"from=2026-01-01&to=2026-12-31&by=day":     "종료일(to) 값은 1에서 62 사이여야 합니다.",
		"from=2026-13-01&to=2026-12-31&by=day":     "시작일(from) 값의 형식이 올바르지 않습니다.",
		"from=" + day + "&to=" + day + "&by=moon":  "구분(by) 값이 올바르지 않습니다.",
		"from=" + day + "&to=" + day:               "구분(by) 값은 필수입니다.",
	} {
		c.HQ.Get("/v2/admin/reports/occupancy?"+query).Fails(t, 400, "IllegalArguemntError", message)
	}
}

// A manager's console receives the changes of the manager's branches only.
func TestLiveOverview(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	header := http.Header{"Cookie": {"JSESSIONID=" + cookie(t, s, c.Manager, "JSESSIONID")}}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/v2/admin/live", header)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // changes until the watch has begun
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				_, _ = s.DB.Pool.Exec(t.Context(), `insert into alert (kind, branch, subject, since) values ('clock', 'hongdae', $1, now()), ('clock', 'gangnam', $1, now())`, strconv.Itoa(n))
			}
		}
	}()
	var got struct {
		Events []struct{ Kind, Target string }
	}
	for len(got.Events) == 0 { // a ping has none
		if err := conn.ReadJSON(&got); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Events) != 1 || got.Events[0].Kind != "branch" || got.Events[0].Target != "gangnam" {
		t.Errorf("events %+v, want the branch gangnam only", got.Events)
	}
}

// BenchmarkOverview reads the first page of 1,000 branches with ten rooms each, seven stays per room around now and two weeks
// of door days; five percent of the branches are offline.
func BenchmarkOverview(b *testing.B) {
	if os.Getenv("CI") != "" {
		b.Skip("fills a database")
	}
	s := servicetest.Start(b)
	for _, sql := range []string{
		`insert into branch (code, name_ko, name_en) select 'b' || n, 'b' || n, 'b' || n from generate_series(1, 1000) n`,
		`insert into room (branch_id, no, enabled) select id, n, true from branch, generate_series(1, 10) n where code ~ '^b[0-9]'`,
		`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory) select id, '1', now(), now(), id % 20 > 0, '{}' from branch where code ~ '^b[0-9]'`,
		`insert into alert (kind, branch, subject, since, notified_at) select 'door-held', code, 'front_1', now(), now() from branch where id % 10 = 0`,
		`insert into door_day select id, 'room_' || n, current_date - day, 20, 20, 100, 200, 0, 0 from branch, generate_series(1, 10) n, generate_series(1, 14) day`,
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, amount, method, paid_at)
		 select branch_id, id, 'DONE', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), 10000, '카드', at - interval '1 day'
		 from room, generate_series(-3, 3) n, lateral (select date_trunc('hour', now()) + n * interval '2 hours') t (at) where room.branch_id > 3`,
		`analyze`,
	} {
		if _, err := s.DB.Pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	hq := s.Admin(b, "hq", "hq-demo")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		hq.Get("/v2/admin/overview?limit=50").OK(b)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// TestEmptyParameters: the place and the size of a page, and the days of a report, may be empty, as in a link for the first page.
func TestEmptyParameters(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	client := &http.Client{Jar: s.Admin(t, "hq", "hq-demo").HTTP.Jar} // openapi.yaml has no empty values
	for _, path := range []string{
		"/v2/branches/now?q=&near=37.5,127&cursor=&limit=", "/v2/admin/overview?cursor=&limit=", "/v2/admin/doors/levels?branch=&days=",
		"/v2/admin/alerts?branch=&state=&cursor=&limit=", "/v2/events?after=&limit=",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, answer.StatusCode)
		}
	}
}
