package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// maxAirReport is the longest report of the air, in days.
const maxAirReport = 62

// air reads branch, from and to from the query and makes the report.
func (c *Console) air(r *http.Request) (rows []backoffice.AirRow, name string, err error) {
	code, err := wire.Query(r, "branch")
	if err != nil {
		return nil, "", err
	}
	if err := wire.Scope(r, code); err != nil {
		return nil, "", err
	}
	branch, err := c.Backoffice.Branch(r.Context(), code)
	if err != nil {
		return nil, "", err
	}
	from, to, err := reportDays(r)
	if err != nil {
		return nil, "", err
	}
	if to.At(0, time.UTC).Sub(from.At(0, time.UTC)) >= maxAirReport*24*time.Hour {
		return nil, "", wire.OutOfRange("to", 1, maxAirReport)
	}
	rows, err = c.Backoffice.Air(r.Context(), branch, from, to)
	return rows, fmt.Sprintf("air-%s-%s", branch.Code, from), err
}

// ShowAir serves GET /v2/admin/reports/climate?branch=&from=&to=.
func (c *Console) ShowAir(w http.ResponseWriter, r *http.Request) error {
	rows, _, err := c.air(r)
	if err != nil {
		return err
	}
	type item struct {
		Room        string   `json:"room"`
		Unit        string   `json:"unit"`
		Date        string   `json:"date"`
		RunMinutes  int      `json:"runMinutes"`
		IdleMinutes int      `json:"idleMinutes"`
		Cost        *int     `json:"cost"`
		Low         *float64 `json:"low"`
		Mean        *float64 `json:"mean"`
		High        *float64 `json:"high"`
		NoEffect    int      `json:"noEffect"`
	}
	list := make([]item, 0, len(rows))
	for _, row := range rows {
		list = append(list, item{strconv.Itoa(row.RoomNo), row.Unit, row.Date.String(), row.RunMinutes, row.IdleMinutes, row.Cost, row.Low, row.Mean, row.High, row.NoEffect})
	}
	return wire.WriteData(w, map[string]any{"rows": list})
}

var airColumns = []string{"룸", "에어컨", "날짜", "가동(분)", "이용 없이 가동(분)", "예상 비용(원)", "최저(°C)", "평균(°C)", "최고(°C)", "효과 없음(회)"}

// airSheet reads the query of a report of the air and makes it for a spreadsheet.
func (c *Console) airSheet(r *http.Request) (sheet, error) {
	rows, name, err := c.air(r)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{file: name, title: "냉난방", columns: airColumns}
	for _, r := range rows {
		var cost any
		if r.Cost != nil {
			cost = won(*r.Cost)
		}
		s.rows = append(s.rows, []any{r.RoomNo, r.Unit, r.Date.At(0, time.UTC), r.RunMinutes, r.IdleMinutes, cost,
			orUnknown(r.Low), orUnknown(r.Mean), orUnknown(r.High), r.NoEffect})
	}
	return s, nil
}

// AirCSV serves GET /v2/admin/reports/climate.csv: the same report for a spreadsheet.
func (c *Console) AirCSV(w http.ResponseWriter, r *http.Request) error {
	s, err := c.airSheet(r)
	if err != nil {
		return err
	}
	return s.writeCSV(w)
}

// AirXLSX serves GET /v2/admin/reports/climate.xlsx: the same report as a workbook.
func (c *Console) AirXLSX(w http.ResponseWriter, r *http.Request) error {
	s, err := c.airSheet(r)
	if err != nil {
		return err
	}
	return s.writeXLSX(w)
}
