package console

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ShowOverview serves GET /v2/admin/overview?cursor=&limit=: one's branches, those that need attention first.
func (c *Console) ShowOverview(w http.ResponseWriter, r *http.Request) error {
	branches, err := c.Reach(r)
	if err != nil {
		return err
	}
	severity, id, err := overviewCursor(r)
	if err != nil {
		return err
	}
	limit, err := wire.PageLimit(r)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.Overview(r.Context(), branches, severity, id, limit+1)
	if err != nil {
		return err
	}
	var next *string
	if len(found) > limit {
		found = found[:limit]
		last := found[limit-1]
		next = wire.Nullable(fmt.Sprintf("%d-%d", last.Severity, last.ID))
	}
	type item struct {
		Branch          string   `json:"branch"`
		Name            string   `json:"name"`
		NameEn          string   `json:"nameEn"`
		Online          bool     `json:"online"`
		Since           *string  `json:"since"`
		OpenAlerts      int      `json:"openAlerts"`
		WorstAlert      *string  `json:"worstAlert"`
		OccupiedRooms   int      `json:"occupiedRooms"`
		Rooms           int      `json:"rooms"`
		NextArrival     *string  `json:"nextArrival"`
		TodayAmount     int64    `json:"todayAmount"`
		UnlockSuccess7d *float64 `json:"unlockSuccess7d"`
	}
	list := make([]item, 0, len(found))
	for _, b := range found {
		one := item{
			Branch: b.Branch, Name: b.NameKo, NameEn: b.NameEn, Online: b.Online != nil && *b.Online, Since: moment(b.Since), OpenAlerts: b.OpenAlerts,
			WorstAlert: b.WorstAlert, OccupiedRooms: b.OccupiedRooms, Rooms: b.Rooms, NextArrival: moment(b.NextArrival), TodayAmount: b.TodayAmount,
		}
		if b.Presses > 0 {
			rate := math.Round(float64(b.Success)/float64(b.Presses)*1e4) / 1e4
			one.UnlockSuccess7d = &rate
		}
		list = append(list, one)
	}
	return wire.WriteData(w, struct {
		Branches []item  `json:"branches"`
		Next     *string `json:"next"`
	}{list, next})
}

// overviewCursor reads the severity and the id of the last branch of the previous page.
func overviewCursor(r *http.Request) (severity, id int, err error) {
	cursor := r.URL.Query().Get("cursor")
	if cursor == "" {
		return 0, 0, nil
	}
	first, second, ok := strings.Cut(cursor, "-")
	severity, severityErr := wire.Number(first)
	id, idErr := wire.Number(second)
	if !ok || severityErr != nil || idErr != nil || severity > math.MaxInt32 || id > math.MaxInt32 {
		return 0, 0, wire.Malformed("cursor")
	}
	return severity, id, nil
}

func moment(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return wire.Instant(*t)
}

// ShowDoorLevels serves GET /v2/admin/doors/levels?branch=&days=: the service of each door, those that need attention first.
func (c *Console) ShowDoorLevels(w http.ResponseWriter, r *http.Request) error {
	branches, err := c.Reach(r)
	if err != nil {
		return err
	}
	days, err := wire.OptionalInt(r, "days", 30, 1, 90)
	if err != nil {
		return err
	}
	levels, err := c.Backoffice.DoorLevels(r.Context(), branches, days)
	if err != nil {
		return err
	}
	type day struct {
		Date    string `json:"date"`
		Presses int    `json:"presses"`
		Success int    `json:"success"`
		P50     *int   `json:"p50"`
	}
	type item struct {
		Branch  string  `json:"branch"`
		Device  string  `json:"device"`
		Presses int     `json:"presses"`
		Success int     `json:"success"`
		P50     *int    `json:"p50"`
		P95     *int    `json:"p95"`
		Retries int     `json:"retries"`
		PINs    int     `json:"pins"`
		Trend   float64 `json:"trend"`
		Verdict string  `json:"verdict"`
		Days    []day   `json:"days"`
	}
	known := func(ms, success int) *int {
		if success == 0 {
			return nil
		}
		return &ms
	}
	list := make([]item, 0, len(levels))
	for _, l := range levels {
		sum := l.Total()
		perDay, _ := l.Trend()
		one := item{l.Branch, l.Device, sum.Presses, sum.Success, known(sum.P50, sum.Success), known(sum.P95, sum.Success), sum.Retries, sum.PINs,
			math.Round(perDay*10) / 10, string(l.Verdict()), []day{}}
		for _, d := range l.Days {
			one.Days = append(one.Days, day{d.Date.Format(time.DateOnly), d.Presses, d.Success, known(d.P50, d.Success)})
		}
		list = append(list, one)
	}
	return wire.WriteData(w, map[string]any{"doors": list})
}

// The longest reports, in days.
const (
	maxReport    = 366
	maxReportAll = 62 // of several branches
)

// occupancy reads the query of an occupancy report and makes it. Without a branch, it covers all of the administrator's, and
// the keys of rooms begin with the branch.
func (c *Console) occupancy(r *http.Request) (rows []backoffice.OccupancyRow, name string, err error) {
	by := backoffice.Grouping(r.URL.Query().Get("by"))
	if by == "" {
		return nil, "", wire.Missing("by")
	}
	if !by.Valid() {
		return nil, "", wire.UnknownValue("by")
	}
	from, to, err := reportDays(r)
	if err != nil {
		return nil, "", err
	}
	name = "all"
	if code := r.URL.Query().Get("branch"); code != "" {
		if err := wire.Scope(r, code); err != nil {
			return nil, "", err
		}
		branch, err := c.Backoffice.Branch(r.Context(), code)
		if err != nil {
			return nil, "", err
		}
		rows, err = c.Backoffice.Occupancy(r.Context(), branch, from, to, by)
		return rows, branch.Code + "-" + string(by), err
	}
	if to.At(0, time.UTC).Sub(from.At(0, time.UTC)) >= maxReportAll*24*time.Hour {
		return nil, "", wire.OutOfRange("to", 1, maxReportAll)
	}
	branches, err := c.Backoffice.Branches(r.Context())
	if err != nil {
		return nil, "", err
	}
	var reports [][]backoffice.OccupancyRow
	for _, branch := range branches {
		if wire.Scope(r, branch.Code) != nil {
			continue
		}
		report, err := c.Backoffice.Occupancy(r.Context(), branch, from, to, by)
		if err != nil {
			return nil, "", err
		}
		for i := range report {
			if by == backoffice.ByRoom {
				report[i].Key = branch.Code + "/" + report[i].Key
			}
		}
		reports = append(reports, report)
	}
	return backoffice.SumOccupancy(reports...), name + "-" + string(by), nil
}

// reportDays reads from and to of a query: dates, both included.
func reportDays(r *http.Request) (from, to booking.Date, err error) {
	for _, field := range []struct {
		name string
		date *booking.Date
	}{{"from", &from}, {"to", &to}} {
		text, err := wire.Query(r, field.name)
		if err != nil {
			return from, to, err
		}
		if *field.date, err = booking.ParseDate(text); err != nil {
			return from, to, wire.Malformed(field.name)
		}
	}
	length := int(to.At(0, time.UTC).Sub(from.At(0, time.UTC))/(24*time.Hour)) + 1
	if length < 1 || length > maxReport {
		return from, to, wire.OutOfRange("to", 1, maxReport)
	}
	return from, to, nil
}

// ShowOccupancy serves GET /v2/admin/reports/occupancy?branch=&from=&to=&by=room|weekday|hour|day.
func (c *Console) ShowOccupancy(w http.ResponseWriter, r *http.Request) error {
	rows, _, err := c.occupancy(r)
	if err != nil {
		return err
	}
	type item struct {
		Key             string `json:"key"`
		SoldMinutes     int    `json:"soldMinutes"`
		SellableMinutes int    `json:"sellableMinutes"`
		Amount          int    `json:"amount"`
	}
	list := make([]item, 0, len(rows))
	for _, row := range rows {
		list = append(list, item(row))
	}
	return wire.WriteData(w, map[string]any{"rows": list})
}

var occupancyColumns = []string{"구분", "판매(분)", "판매 가능(분)", "가동률(%)", "매출(원)"}

// occupancySheet reads the query of an occupancy report and makes it for a spreadsheet.
func (c *Console) occupancySheet(r *http.Request) (sheet, error) {
	rows, name, err := c.occupancy(r)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{file: "occupancy-" + name + "-" + r.URL.Query().Get("from"), title: "가동률", columns: occupancyColumns}
	for _, row := range rows {
		var rate any
		if row.SellableMinutes > 0 {
			rate = math.Round(1000*float64(row.SoldMinutes)/float64(row.SellableMinutes)) / 10
		}
		s.rows = append(s.rows, []any{row.Key, row.SoldMinutes, row.SellableMinutes, rate, won(row.Amount)})
	}
	return s, nil
}

// OccupancyCSV serves GET /v2/admin/reports/occupancy.csv: the same report for a spreadsheet.
func (c *Console) OccupancyCSV(w http.ResponseWriter, r *http.Request) error {
	s, err := c.occupancySheet(r)
	if err != nil {
		return err
	}
	return s.writeCSV(w)
}

// OccupancyXLSX serves GET /v2/admin/reports/occupancy.xlsx: the same report as a workbook.
func (c *Console) OccupancyXLSX(w http.ResponseWriter, r *http.Request) error {
	s, err := c.occupancySheet(r)
	if err != nil {
		return err
	}
	return s.writeXLSX(w)
}
