package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// settlement is the settlement of a month that a request asks for.
type settlement struct {
	month    string
	rows     []money.SettlementRow
	complete bool // the provider's list was read now
}

// settlement reads branch (default: all branches of the administrator) and month from the query.
func (c *Console) settlement(r *http.Request) (found settlement, err error) {
	text, err := wire.Query(r, "month")
	if err != nil {
		return found, err
	}
	month, ok := wire.ParseExact("2006-01", text, time.UTC)
	if !ok {
		return found, wire.Malformed("month")
	}
	var codes []string
	if branch := r.URL.Query().Get("branch"); branch != "" {
		if err := wire.Scope(r, branch); err != nil {
			return found, err
		}
		if _, err := c.Backoffice.Branch(r.Context(), branch); err != nil {
			return found, err
		}
		codes = []string{branch}
	} else {
		all, err := c.Backoffice.Branches(r.Context())
		if err != nil {
			return found, err
		}
		for _, b := range all {
			if wire.Principal(r).Reaches(b.Code) {
				codes = append(codes, b.Code)
			}
		}
	}
	found.month = text
	found.rows, found.complete, err = c.Reserve.Settlement(r.Context(), codes, month)
	return found, err
}

type wireSettlementSums struct {
	Paid     int `json:"paid"`
	Refunded int `json:"refunded"`
	Outside  int `json:"outside"`
	Fee      int `json:"fee"`
	VAT      int `json:"vat"`
	Net      int `json:"net"`
}

func settlementSums(r money.SettlementRow) wireSettlementSums {
	return wireSettlementSums{r.Paid, r.Refunded, r.Outside, r.Fee, r.VAT, r.Net()}
}

// totals sums the rows.
func (s settlement) totals() (t money.SettlementRow) {
	for _, r := range s.rows {
		t.Paid, t.Refunded, t.Outside = t.Paid+r.Paid, t.Refunded+r.Refunded, t.Outside+r.Outside
		t.Fee, t.VAT = t.Fee+r.Fee, t.VAT+r.VAT
	}
	return t
}

// ShowSettlement is GET /v2/admin/settlement?branch=&month=YYYY-MM.
func (c *Console) ShowSettlement(w http.ResponseWriter, r *http.Request) error {
	found, err := c.settlement(r)
	if err != nil {
		return err
	}
	type row struct {
		Branch string `json:"branch"`
		Date   string `json:"date"`
		Method string `json:"method"`
		wireSettlementSums
		PayoutDate *string `json:"payoutDate"`
	}
	rows := make([]row, 0, len(found.rows))
	for _, one := range found.rows {
		rows = append(rows, row{one.Branch, one.Date, one.Method, settlementSums(one), wire.Nullable(one.PayoutDay)})
	}
	return wire.WriteData(w, struct {
		Rows     []row              `json:"rows"`
		Totals   wireSettlementSums `json:"totals"`
		Complete bool               `json:"complete"`
	}{rows, settlementSums(found.totals()), found.complete})
}

var settlementColumns = []string{"지점", "일자", "결제수단", "결제금액", "환불금액", "외부 환불", "수수료", "수수료 부가세", "정산금액", "지급일"}

const settlementTotal = "합계"

func settlementNumbers(r money.SettlementRow) []int {
	return []int{r.Paid, r.Refunded, r.Outside, r.Fee, r.VAT, r.Net()}
}

// SettlementCSV is GET /v2/admin/settlement.csv: the same for a spreadsheet. The download is audited.
func (c *Console) SettlementCSV(w http.ResponseWriter, r *http.Request) error {
	found, err := c.settlementFile(r)
	if err != nil {
		return err
	}
	attach(w, "text/csv; charset=utf-8", "settlement-"+found.month+".csv")
	if _, err := w.Write([]byte("\uFEFF")); err != nil { // Excel reads UTF-8 only with a byte order mark
		return err
	}
	file := csv.NewWriter(w)
	file.UseCRLF = true
	line := func(first []string, r money.SettlementRow) {
		for _, n := range settlementNumbers(r) {
			first = append(first, strconv.Itoa(n))
		}
		_ = file.Write(append(first, r.PayoutDay)) // Error reports it
	}
	_ = file.Write(settlementColumns)
	for _, one := range found.rows {
		line([]string{one.Branch, one.Date, one.Method}, one)
	}
	line([]string{settlementTotal, "", ""}, found.totals())
	file.Flush()
	return file.Error()
}

// SettlementXLSX is GET /v2/admin/settlement.xlsx: the same as a workbook, dates as dates and amounts as numbers. The
// download is audited.
func (c *Console) SettlementXLSX(w http.ResponseWriter, r *http.Request) error {
	found, err := c.settlementFile(r)
	if err != nil {
		return err
	}
	book, err := found.workbook()
	if err != nil {
		return fmt.Errorf("settlement workbook: %w", err)
	}
	defer func() { _ = book.Close() }() // it has no temporary files
	attach(w, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "settlement-"+found.month+".xlsx")
	return book.Write(w)
}

// settlementFile is settlement for a download, which is audited.
func (c *Console) settlementFile(r *http.Request) (settlement, error) {
	found, err := c.settlement(r)
	if err != nil {
		return found, err
	}
	branch := r.URL.Query().Get("branch")
	return found, c.Backoffice.Exported(r.Context(), branch, "settlement", map[string]string{"month": found.month}, actor(r))
}

func attach(w http.ResponseWriter, contentType, name string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
}

// workbook returns the settlement as a workbook with one sheet.
func (s settlement) workbook() (*excelize.File, error) {
	book := excelize.NewFile()
	const sheet = "정산"
	if err := book.SetSheetName("Sheet1", sheet); err != nil {
		return nil, err
	}
	dateFormat, moneyFormat := "yyyy-mm-dd", "#,##0"
	date, err := book.NewStyle(&excelize.Style{CustomNumFmt: &dateFormat})
	if err != nil {
		return nil, err
	}
	won, err := book.NewStyle(&excelize.Style{CustomNumFmt: &moneyFormat})
	if err != nil {
		return nil, err
	}
	out, err := book.NewStreamWriter(sheet)
	if err != nil {
		return nil, err
	}
	if err := out.SetColWidth(1, len(settlementColumns), 14); err != nil {
		return nil, err
	}
	header := make([]any, len(settlementColumns))
	for i, name := range settlementColumns {
		header[i] = name
	}
	lines := [][]any{header}
	for _, r := range append(s.rows, s.totals()) {
		lines = append(lines, sheetRow(r, date, won))
	}
	lines[len(lines)-1][0] = settlementTotal
	for i, line := range lines {
		if err := out.SetRow("A"+strconv.Itoa(i+1), line); err != nil {
			return nil, err
		}
	}
	return book, out.Flush()
}

func sheetRow(r money.SettlementRow, date, won int) []any {
	day := func(text string) any {
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil
		}
		return excelize.Cell{StyleID: date, Value: t}
	}
	line := []any{r.Branch, day(r.Date), r.Method}
	for _, n := range settlementNumbers(r) {
		line = append(line, excelize.Cell{StyleID: won, Value: n})
	}
	return append(line, day(r.PayoutDay))
}
