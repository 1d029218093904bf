package console

import (
	"net/http"
	"time"

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

// SettlementCSV is GET /v2/admin/settlement.csv: the same for a spreadsheet. The download is audited.
func (c *Console) SettlementCSV(w http.ResponseWriter, r *http.Request) error {
	s, err := c.settlementSheet(r)
	if err != nil {
		return err
	}
	return s.writeCSV(w)
}

// SettlementXLSX is GET /v2/admin/settlement.xlsx: the same as a workbook. The download is audited.
func (c *Console) SettlementXLSX(w http.ResponseWriter, r *http.Request) error {
	s, err := c.settlementSheet(r)
	if err != nil {
		return err
	}
	return s.writeXLSX(w)
}

// settlementSheet is settlement for a download, which is audited.
func (c *Console) settlementSheet(r *http.Request) (sheet, error) {
	found, err := c.settlement(r)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{file: "settlement-" + found.month, title: "정산", columns: settlementColumns}
	for _, r := range found.rows {
		s.rows = append(s.rows, settlementRow(r.Branch, r))
	}
	s.rows = append(s.rows, settlementRow(settlementTotal, found.totals()))
	branch := r.URL.Query().Get("branch")
	return s, c.Backoffice.Exported(r.Context(), branch, "settlement", map[string]string{"month": found.month}, actor(r))
}

func settlementRow(first string, r money.SettlementRow) []any {
	return []any{first, dateCell(r.Date), r.Method, won(r.Paid), won(r.Refunded), won(r.Outside), won(r.Fee), won(r.VAT), won(r.Net()), dateCell(r.PayoutDay)}
}
