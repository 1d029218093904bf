package httpapi_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The settlement has what was paid, refunded and deducted; the screen, both files and the provider agree.
func TestSettlement(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	c := s.Client(t)
	confirm := order(t, s, c, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")
	c.Post("/payment/confirm", confirm).OK(t)
	manager.Post("/v2/admin/reservations/"+live(t, s, 1)+"/refunds", map[string]any{"amount": 10000, "reason": "소음"}).OK(t)
	month := s.Clock.Now().In(seoul).Format("2006-01")
	type row struct {
		Branch, Date, Method, PayoutDate string
		Paid, Refunded, Fee, VAT, Net    int
	}
	var got struct {
		Rows     []row
		Totals   row
		Complete bool
	}
	manager.Get("/v2/admin/settlement?month="+month).OK(t).Into(t, &got)
	if len(got.Rows) != 1 || !got.Complete {
		t.Fatalf("got %+v", got)
	}
	r := got.Rows[0]
	if r.Branch != "gangnam" || r.Method != "카드" || r.Paid != 30000 || r.Refunded != 10000 || r.Fee != 640 || r.VAT != 64 || r.Net != 20000-704 || r.PayoutDate <= r.Date {
		t.Errorf("row %+v", r)
	}
	if got.Totals.Net != r.Net {
		t.Errorf("totals %+v", got.Totals)
	}
	if answer := manager.Get("/v2/admin/settlement?branch=hongdae&month=" + month); answer.HTTP != 403 {
		t.Errorf("another branch: %d, want 403", answer.HTTP)
	}
	file := hq.Send(http.MethodGet, "/v2/admin/settlement.csv?branch=gangnam&month="+month, nil, nil)
	if text := string(file.Raw); !strings.Contains(text, "지점,일자,결제수단") || !strings.Contains(text, "gangnam,"+r.Date+",카드,30000,10000,0,640,64,19296,") {
		t.Errorf("csv %s", text)
	}
	book, err := excelize.OpenReader(bytes.NewReader(hq.Send(http.MethodGet, "/v2/admin/settlement.xlsx?month="+month, nil, nil).Raw))
	if err != nil {
		t.Fatal(err)
	}
	kind, err := book.GetCellType("정산", "B2")
	raw, rawErr := book.GetCellValue("정산", "B2", excelize.Options{RawCellValue: true})
	shown, shownErr := book.GetCellValue("정산", "B2")
	if err != nil || rawErr != nil || shownErr != nil || kind == excelize.CellTypeSharedString || strings.Contains(raw, "-") || shown != r.Date {
		t.Errorf("date %q, shown as %q, type %v; want a number shown as %s", raw, shown, kind, r.Date)
	}
	if net, err := book.GetCellValue("정산", "I2", excelize.Options{RawCellValue: true}); err != nil || net != "19296" {
		t.Errorf("net %q, %v", net, err)
	}
}

// The provider's days are Korean. In a branch elsewhere a fee has the day, and so the month, of its payment.
func TestSettlementOutsideKorea(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	stop(s, time.Date(2027, 1, 31, 20, 0, 0, 0, zone)) // the first of February in Korea
	c := s.Client(t)
	c.Post("/payment/confirm", order(t, s, c, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")).OK(t)
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set time_zone = $1 where code = 'gangnam'`, zone.String()); err != nil {
		t.Fatal(err)
	}
	hq := s.Admin(t, "hq", "hq-demo")
	for month, want := range map[string]int{"2027-01": 1, "2027-02": 0} {
		var got struct {
			Rows []struct {
				Date      string
				Paid, Fee int
			}
		}
		hq.Get("/v2/admin/settlement?branch=gangnam&month="+month).OK(t).Into(t, &got)
		if len(got.Rows) != want || want == 1 && (got.Rows[0].Date != "2027-01-31" || got.Rows[0].Paid != 30000 || got.Rows[0].Fee == 0) {
			t.Errorf("%s: %+v", month, got.Rows)
		}
	}
}
