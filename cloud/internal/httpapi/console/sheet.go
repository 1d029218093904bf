package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"
)

// sheet is a table for a spreadsheet. Its cells are texts, whole numbers, won, decimals (float64), dates (time.Time), or nil
// where a value is not known.
type sheet struct {
	file    string // name without its ending
	title   string
	columns []string
	rows    [][]any
}

// won is an amount of money.
type won int

// writeCSV sends the sheet as CSV.
func (s sheet) writeCSV(w http.ResponseWriter) error {
	attach(w, "text/csv; charset=utf-8", s.file+".csv")
	_, _ = w.Write([]byte("\uFEFF")) // Excel reads UTF-8 only with a byte order mark; the client may have disconnected
	file := csv.NewWriter(w)
	file.UseCRLF = true
	lines := [][]string{s.columns}
	for _, row := range s.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = cellText(cell)
		}
		lines = append(lines, line)
	}
	_ = file.WriteAll(lines) // the client may have disconnected
	return nil
}

func cellText(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return ""
	case string:
		return sheetText(cell)
	case time.Time:
		return cell.Format(time.DateOnly)
	case float64:
		return strconv.FormatFloat(cell, 'f', 1, 64)
	}
	return fmt.Sprint(cell)
}

// writeXLSX sends the sheet as a workbook, with dates as dates and numbers as numbers.
func (s sheet) writeXLSX(w http.ResponseWriter) error {
	book, err := s.workbook()
	if err != nil {
		return fmt.Errorf("workbook %s: %w", s.file, err)
	}
	defer func() { _ = book.Close() }() // it has no temporary files
	attach(w, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", s.file+".xlsx")
	return book.Write(w)
}

func (s sheet) workbook() (*excelize.File, error) {
	book := excelize.NewFile()
	if err := book.SetSheetName("Sheet1", s.title); err != nil {
		return nil, err
	}
	styles, err := newCellStyles(book)
	if err != nil {
		return nil, err
	}
	out, err := book.NewStreamWriter(s.title)
	if err != nil {
		return nil, err
	}
	if err := out.SetColWidth(1, len(s.columns), 14); err != nil {
		return nil, err
	}
	header := make([]any, len(s.columns))
	for i, name := range s.columns {
		header[i] = name
	}
	for i, row := range append([][]any{header}, s.rows...) {
		if err := out.SetRow("A"+strconv.Itoa(i+1), styles.row(row)); err != nil {
			return nil, err
		}
	}
	return book, out.Flush()
}

// cellStyles are the formats of a workbook's cells.
type cellStyles struct{ date, won, decimal int }

func newCellStyles(book *excelize.File) (styles cellStyles, err error) {
	for _, style := range []struct {
		id     *int
		format string
	}{{&styles.date, "yyyy-mm-dd"}, {&styles.won, "#,##0"}, {&styles.decimal, "0.0"}} {
		if *style.id, err = book.NewStyle(&excelize.Style{CustomNumFmt: &style.format}); err != nil {
			return styles, err
		}
	}
	return styles, nil
}

func (s cellStyles) row(cells []any) []any {
	row := make([]any, len(cells))
	for i, cell := range cells {
		switch cell := cell.(type) {
		case time.Time:
			row[i] = excelize.Cell{StyleID: s.date, Value: cell}
		case won:
			row[i] = excelize.Cell{StyleID: s.won, Value: int(cell)}
		case float64:
			row[i] = excelize.Cell{StyleID: s.decimal, Value: cell}
		default:
			row[i] = cell
		}
	}
	return row
}

// orUnknown returns the value of a pointer as a cell, or nil.
func orUnknown[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// dateCell returns a date as a cell, or nil if the text is empty.
func dateCell(text string) any {
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return nil
	}
	return date
}

func attach(w http.ResponseWriter, contentType, name string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
}
