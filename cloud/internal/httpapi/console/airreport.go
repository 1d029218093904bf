package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"

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

// ShowAir is GET /v2/admin/reports/climate?branch=&from=&to=.
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

// airLine returns the cells of a row; an unknown value is nil.
func airLine(r backoffice.AirRow) []any {
	line := []any{r.RoomNo, r.Unit, r.Date.At(0, time.UTC), r.RunMinutes, r.IdleMinutes}
	if r.Cost == nil {
		line = append(line, nil)
	} else {
		line = append(line, *r.Cost)
	}
	for _, celsius := range []*float64{r.Low, r.Mean, r.High} {
		if celsius == nil {
			line = append(line, nil)
		} else {
			line = append(line, *celsius)
		}
	}
	return append(line, r.NoEffect)
}

// AirCSV is GET /v2/admin/reports/climate.csv: the same report for a spreadsheet.
func (c *Console) AirCSV(w http.ResponseWriter, r *http.Request) error {
	rows, name, err := c.air(r)
	if err != nil {
		return err
	}
	attach(w, "text/csv; charset=utf-8", name+".csv")
	_, _ = w.Write([]byte("\uFEFF")) // Excel reads UTF-8 only with a byte order mark; the client may have disconnected
	file := csv.NewWriter(w)
	file.UseCRLF = true
	lines := [][]string{airColumns}
	for _, row := range rows {
		var line []string
		for _, cell := range airLine(row) {
			switch cell := cell.(type) {
			case nil:
				line = append(line, "")
			case time.Time:
				line = append(line, cell.Format(time.DateOnly))
			default:
				line = append(line, fmt.Sprint(cell))
			}
		}
		lines = append(lines, line)
	}
	_ = file.WriteAll(lines) // the client may have disconnected
	return nil
}

// AirXLSX is GET /v2/admin/reports/climate.xlsx: the same report as a workbook, dates as dates and values as numbers.
func (c *Console) AirXLSX(w http.ResponseWriter, r *http.Request) error {
	rows, name, err := c.air(r)
	if err != nil {
		return err
	}
	book, err := airWorkbook(rows)
	if err != nil {
		return fmt.Errorf("workbook of the air: %w", err)
	}
	defer func() { _ = book.Close() }() // it has no temporary files
	attach(w, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", name+".xlsx")
	return book.Write(w)
}

func airWorkbook(rows []backoffice.AirRow) (*excelize.File, error) {
	book := excelize.NewFile()
	const sheet = "냉난방"
	if err := book.SetSheetName("Sheet1", sheet); err != nil {
		return nil, err
	}
	format := "yyyy-mm-dd"
	date, err := book.NewStyle(&excelize.Style{CustomNumFmt: &format})
	if err != nil {
		return nil, err
	}
	out, err := book.NewStreamWriter(sheet)
	if err != nil {
		return nil, err
	}
	if err := out.SetColWidth(1, len(airColumns), 14); err != nil {
		return nil, err
	}
	header := make([]any, len(airColumns))
	for i, name := range airColumns {
		header[i] = name
	}
	if err := out.SetRow("A1", header); err != nil {
		return nil, err
	}
	for i, row := range rows {
		line := airLine(row)
		line[2] = excelize.Cell{StyleID: date, Value: line[2]}
		if err := out.SetRow("A"+strconv.Itoa(i+2), line); err != nil {
			return nil, err
		}
	}
	return book, out.Flush()
}
