package httpapi_test

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The report counts the time between commands that had an effect, splits it by local day and by stays, and shows what the sensor measured.
func TestAirReport(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.DB.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory) select id, '1', $1, $1, true, '{"sensors": ["1번 룸"]}' from branch where code = 'gangnam'
	      on conflict (branch_id) do update set inventory = excluded.inventory`, s.Clock.Now())
	for _, id := range []string{"cool", "off"} {
		exec(`insert into airconditioner_option (id, branch_id, unit, path) select $1, id, 'unit', array[$1] from branch where code = 'gangnam'`, id)
	}
	policy := map[string]any{"room": "1", "unit": "unit", "arriveOption": "cool", "leaveOption": "off", "leadMinutes": 15, "lagMinutes": 5, "low": 22, "high": 26, "hourlyCost": 600}
	c.Manager.Put("/v2/admin/branches/gangnam/climate-policy", map[string]any{"rooms": []any{policy}}).OK(t)
	for _, bad := range []int{-1, 100_001} {
		policy["hourlyCost"] = bad
		c.Manager.Put("/v2/admin/branches/gangnam/climate-policy", map[string]any{"rooms": []any{policy}}).Fails(t, 400, "IllegalArguemntError", "시간당 비용(hourlyCost) 값은 0에서 100000 사이여야 합니다.")
	}

	seoul := time.FixedZone("KST", 9*60*60)
	today := s.Clock.Now().In(seoul)
	second := time.Date(today.Year(), today.Month(), today.Day()-2, 0, 0, 0, 0, seoul) // the second day of the report
	at := func(hours float64) time.Time { return second.Add(time.Duration(hours * float64(time.Hour))) }
	command := func(hours float64, option, by, outcome string) {
		exec(`insert into airconditioner_command (branch_id, option_id, unit, path, requested_by, at, outcome)
		      select id, $1, 'unit', array[$1], $2, $3, $4 from branch where code = 'gangnam'`, option, by, at(hours), outcome)
	}
	stay := func(from, to float64) {
		exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		      select b.id, m.id, 'DONE', 'ADMIN', $1::timestamptz, $2::timestamptz, tstzrange($1::timestamptz, $2::timestamptz + interval '10 minutes')
		      from branch b join room m on m.branch_id = b.id and m.no = 1 where b.code = 'gangnam'`, at(from), at(to))
	}
	stay(-1, 1) // over midnight
	command(-1.25, "cool", "system:climate", "sent")
	command(0.5, "cool", "admin:hq", "sent") // another option while it is on
	command(1.5, "off", "system:climate", "failed")
	command(2, "off", "system:climate", "sent")
	// An intent without effect does not count as running.
	stay(10, 11)
	exec(`insert into climate_intent (branch_id, room_id, reservation_id, edge, at, option_id, state, next_at, sent_at, judged_at)
	      select branch_id, room_id, id, 'arrive', $1, 'cool', 'no-effect', $1, $1, $1::timestamptz + interval '9 minutes' from reservation where start_at = $2`, at(9.75), at(10))
	command(9.76, "cool", "system:climate", "sent")
	for hours, celsius := range map[float64]float64{-2: 30, 3: 24.04, 23.9: 25.04, 24: 10} {
		exec(`insert into sensor_reading (branch_id, location, at, celsius, humidity) select id, '1번 룸', $1, $2, 50 from branch where code = 'gangnam'`, at(hours), celsius)
	}

	type row struct {
		Room, Unit, Date        string
		RunMinutes, IdleMinutes int
		Cost                    *int
		Low, Mean, High         *float64
		NoEffect                int
	}
	day := func(n int) string { return second.AddDate(0, 0, n).Format(time.DateOnly) }
	query := "?branch=gangnam&from=" + day(-1) + "&to=" + day(1)
	want := []row{
		{"1", "unit", day(-1), 75, 15, new(750), new(30.0), new(30.0), new(30.0), 0},
		{"1", "unit", day(0), 120, 60, new(1200), new(24.0), new(24.5), new(25.0), 1},
		{"1", "unit", day(1), 0, 0, new(0), new(10.0), new(10.0), new(10.0), 0},
	}
	for _, client := range []*servicetest.Client{c.Manager, c.Viewer, c.HQ} {
		var answer struct{ Rows []row }
		client.Get("/v2/admin/reports/climate"+query).OK(t).Into(t, &answer)
		if diff := cmp.Diff(want, answer.Rows); diff != "" {
			t.Errorf("(-want +got) %s", diff)
		}
	}
	text := c.Manager.Send(http.MethodGet, "/v2/admin/reports/climate.csv"+query, nil, nil)
	lines, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text.Raw, []byte("\uFEFF")))).ReadAll()
	if err != nil || len(lines) != 4 || !slices.Equal(lines[2], []string{"1", "unit", day(0), "120", "60", "1200", "24.0", "24.5", "25.0", "1"}) {
		t.Errorf("file %q, %v", lines, err)
	}
	book, err := excelize.OpenReader(bytes.NewReader(c.Manager.Send(http.MethodGet, "/v2/admin/reports/climate.xlsx"+query, nil, nil).Raw))
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := book.GetRows("냉난방")
	if err != nil || len(sheet) != 4 || !slices.Equal(sheet[2], []string{"1", "unit", day(0), "120", "60", "1,200", "24.0", "24.5", "25.0", "1"}) {
		t.Errorf("workbook %q, %v", sheet, err)
	}

	c.Other.Get("/v2/admin/reports/climate"+query).Fails(t, http.StatusForbidden, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	c.Manager.Get("/v2/admin/reports/climate?from="+day(0)+"&to="+day(0)).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	c.Manager.Get("/v2/admin/reports/climate?branch=gangnam&from="+day(0)+"&to="+day(-1)).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	c.Manager.Get("/v2/admin/reports/climate?branch=gangnam&from="+day(0)+"&to="+day(62)).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
}
