package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// settlement is the settlement of a month that a request asks for.
type settlement struct {
	month    string
	rows     []money.SettlementRow
	sellers  []seller
	complete bool // the provider's list was read now
}

// seller is a legal entity with its sums at the branches of a settlement, whichever entity the request asks for.
type seller struct {
	name    string // empty: not entered
	retired bool   // its fees are those that were read before
	sums    money.SettlementRow
}

// settlement reads branch (default: all branches of the administrator), entity (default: all legal entities; empty: that of the
// settings) and month from the query.
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
	if err != nil {
		return found, err
	}
	if found.sellers, err = c.sellers(r.Context(), found.rows); err != nil || !r.URL.Query().Has("entity") {
		return found, err
	}
	entity, err := c.Entities.Entity(r.Context(), r.URL.Query().Get("entity"))
	found.rows = slices.DeleteFunc(found.rows, func(row money.SettlementRow) bool { return row.Entity != entity.Code })
	return found, err
}

// sellers sums the rows of each legal entity, by its code.
func (c *Console) sellers(ctx context.Context, rows []money.SettlementRow) ([]seller, error) {
	of := map[string][]money.SettlementRow{}
	for _, r := range rows {
		of[r.Entity] = append(of[r.Entity], r)
	}
	sellers := make([]seller, 0, len(of))
	for _, code := range slices.Sorted(maps.Keys(of)) {
		entity, err := c.Entities.Entity(ctx, code)
		if err != nil {
			return nil, err
		}
		sums := total(of[code])
		sums.Entity = code
		sellers = append(sellers, seller{entity.Facts.Name, !entity.RetiredAt.IsZero(), sums})
	}
	return sellers, nil
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

// total sums rows.
func total(rows []money.SettlementRow) (t money.SettlementRow) {
	for _, r := range rows {
		t.Paid, t.Refunded, t.Outside = t.Paid+r.Paid, t.Refunded+r.Refunded, t.Outside+r.Outside
		t.Fee, t.VAT = t.Fee+r.Fee, t.VAT+r.VAT
	}
	return t
}

// ShowSettlement serves GET /v2/admin/settlement?branch=&entity=&month=YYYY-MM.
func (c *Console) ShowSettlement(w http.ResponseWriter, r *http.Request) error {
	found, err := c.settlement(r)
	if err != nil {
		return err
	}
	type row struct {
		Branch string  `json:"branch"`
		Entity *string `json:"entity"` // null: that of the settings
		Date   string  `json:"date"`
		Method string  `json:"method"`
		wireSettlementSums
		PayoutDate *string `json:"payoutDate"`
	}
	type sums struct {
		Entity  *string `json:"entity"`
		Name    *string `json:"name"`
		Retired bool    `json:"retired"`
		wireSettlementSums
	}
	rows := make([]row, 0, len(found.rows))
	for _, one := range found.rows {
		rows = append(rows, row{one.Branch, wire.Nullable(one.Entity), one.Date, one.Method, settlementSums(one), wire.Nullable(one.PayoutDay)})
	}
	sellers := make([]sums, 0, len(found.sellers))
	for _, one := range found.sellers {
		sellers = append(sellers, sums{wire.Nullable(one.sums.Entity), wire.Nullable(one.name), one.retired, settlementSums(one.sums)})
	}
	return wire.WriteData(w, struct {
		Rows     []row              `json:"rows"`
		Sellers  []sums             `json:"sellers"`
		Totals   wireSettlementSums `json:"totals"`
		Complete bool               `json:"complete"`
	}{rows, sellers, settlementSums(total(found.rows)), found.complete})
}

var settlementColumns = []string{"지점", "일자", "결제수단", "결제금액", "환불금액", "외부 환불", "수수료", "수수료 부가세", "정산금액", "지급일", "사업자"}

const settlementTotal = "합계"

// SettlementCSV serves GET /v2/admin/settlement.csv: the same for a spreadsheet. The download is audited.
func (c *Console) SettlementCSV(w http.ResponseWriter, r *http.Request) error {
	s, err := c.settlementSheet(r)
	if err != nil {
		return err
	}
	return s.writeCSV(w)
}

// SettlementXLSX serves GET /v2/admin/settlement.xlsx: the same as a workbook. The download is audited.
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
	s.rows = append(s.rows, settlementRow(settlementTotal, total(found.rows)))
	branch := r.URL.Query().Get("branch")
	return s, c.Backoffice.Exported(r.Context(), branch, "settlement", map[string]string{"month": found.month}, actor(r))
}

func settlementRow(first string, r money.SettlementRow) []any {
	return []any{first, dateCell(r.Date), r.Method, won(r.Paid), won(r.Refunded), won(r.Outside), won(r.Fee), won(r.VAT), won(r.Net()), dateCell(r.PayoutDay), r.Entity}
}
