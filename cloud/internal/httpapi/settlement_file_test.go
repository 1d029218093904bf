package httpapi_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// settlementLine is a row of the settlement as the screen shows it.
type settlementLine struct {
	Branch, Entity, Date, Method, PayoutDate string
	Paid, Refunded, Outside, Fee, VAT, Net   int
}

// settlementMonth is the settlement of a month as the screen shows it. The entity of the settings has no code.
type settlementMonth struct {
	Rows    []settlementLine
	Sellers []struct {
		Entity, Name string
		settlementLine
	}
	Totals settlementLine
}

// TestSettlementFiles buys, refunds and settles by hand over two months, for two legal entities. For each month, every cell of
// the workbook and of the CSV file equals the screen, dates are dates, and the sums equal our books and the settlement list of
// each entity at the provider.
func TestSettlementFiles(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	noon := time.Date(2036, 11, 30, 3, 0, 0, 0, time.UTC) // in Seoul
	s.Clock.Stop(noon)
	s.Provider.Stop(noon)
	hq := s.Admin(t, "hq", "hq-demo")
	buy := func(room, won int, method string) (id string) {
		t.Helper()
		c := s.Client(t)
		confirm := order(t, s, c, room, slot(s, 3*time.Hour), time.Hour, won, method)
		c.Post("/payment/confirm", confirm).OK(t)
		if method == "가상계좌" {
			d, err := s.Sandbox.Deposit(confirm["orderId"].(string))
			delivered(t, d, err)
		}
		return live(t, s, room)
	}
	refund := func(id string, body map[string]any) {
		t.Helper()
		hq.Post("/v2/admin/reservations/"+id+"/refunds", body).OK(t)
	}
	refund(buy(1, 30000, "카드"), map[string]any{"amount": 10000, "reason": "소음"})
	s.Sandbox.UseClientKey(s.AddEntity(t, "seoul", 2, "gangnam"))
	buy(3, 22000, "간편결제")
	s.Clock.Advance(13 * time.Hour)
	s.Provider.Advance(13 * time.Hour) // the first of December in Seoul, while it is November in UTC
	refund(buy(2, 25000, "가상계좌"), map[string]any{"settledOutside": map[string]string{"how": "계좌 이체", "reference": "1"}})
	buy(4, 20000, "카드")

	paid := 0
	for _, month := range []string{"2036-11", "2036-12"} {
		var screen settlementMonth
		hq.Get("/v2/admin/settlement?month="+month).OK(t).Into(t, &screen)
		paid += screen.Totals.Paid
		checkWorkbook(t, hq, month, screen.Rows, screen.Totals)
		checkCSV(t, hq, "month="+month, screen.Rows, screen.Totals)
		checkSellers(t, s, hq, month, screen)
		for what, want := range map[string]int{
			"paid":     booked(t, s, month, "kind = 'paid'"),
			"refunded": -booked(t, s, month, "kind <> 'paid'"),
		} {
			if got := map[string]int{"paid": screen.Totals.Paid, "refunded": screen.Totals.Refunded}[what]; got != want {
				t.Errorf("%s: %d %s on the screen, %d in the books", month, got, what, want)
			}
		}
	}
	if paid != 97000 {
		t.Errorf("%d won are paid, want 97000", paid)
	}
	hq.Get("/v2/admin/settlement?month=2036-11&entity=nobody").Fails(t, http.StatusNotFound, "ResourceNotFoundException", "")
}

// checkSellers compares the sums of each legal entity with its rows, its file and its fees at the provider.
func checkSellers(t *testing.T, s *servicetest.Stack, hq *servicetest.Client, month string, screen settlementMonth) {
	t.Helper()
	first, err := time.Parse("2006-01", month)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	net := 0
	for _, one := range screen.Sellers {
		names[one.Entity] = one.Name
		net += one.Net
		query := url.Values{"month": {month}, "entity": {one.Entity}}.Encode()
		var own settlementMonth
		hq.Get("/v2/admin/settlement?"+query).OK(t).Into(t, &own)
		if !slices.Equal(own.Totals.numbers(), one.numbers()) || !reflect.DeepEqual(own.Sellers, screen.Sellers) {
			t.Errorf("%s: totals %+v, want those of %+v", query, own.Totals, one)
		}
		if others := slices.ContainsFunc(own.Rows, func(l settlementLine) bool { return l.Entity != one.Entity }); others || len(own.Rows) == 0 {
			t.Errorf("%s: rows %+v", query, own.Rows)
		}
		checkCSV(t, hq, query, own.Rows, own.Totals)
		fees := 0
		list, err := s.Replica(t).Payments.Settlements(t.Context(), toss.Widget.Of(one.Entity), first, first.AddDate(0, 1, -1))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range list {
			fees += at.Fee + at.VAT
		}
		if fees == 0 || one.Fee+one.VAT != fees {
			t.Errorf("%s: %d won of fees on the screen, %d at the provider", query, one.Fee+one.VAT, fees)
		}
	}
	if net != screen.Totals.Net {
		t.Errorf("%s: the entities have %d won net, all together %d", month, net, screen.Totals.Net)
	}
	want := map[string]map[string]string{"2036-11": {"": names[""], "seoul": "주식회사 seoul"}, "2036-12": {"seoul": "주식회사 seoul"}}[month]
	if !maps.Equal(names, want) {
		t.Errorf("%s: entities %v, want %v", month, names, want)
	}
}

func (l settlementLine) numbers() []int {
	return []int{l.Paid, l.Refunded, l.Outside, l.Fee, l.VAT, l.Net}
}

// checkWorkbook opens the workbook of a month and compares each cell with the screen.
func checkWorkbook(t *testing.T, hq *servicetest.Client, month string, rows []settlementLine, totals settlementLine) {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(hq.Send(http.MethodGet, "/v2/admin/settlement.xlsx?month="+month, nil, nil).Raw))
	if err != nil {
		t.Fatal(err)
	}
	cell := func(column string, line int, raw bool) string {
		t.Helper()
		text, err := book.GetCellValue("정산", column+strconv.Itoa(line), excelize.Options{RawCellValue: raw})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	date := func(column string, line int, want string) {
		t.Helper()
		raw, shown := cell(column, line, true), cell(column, line, false)
		days, err := strconv.ParseFloat(raw, 64)
		if want == "" && raw == "" {
			return
		}
		day, dayErr := excelize.ExcelDateToTime(days, false)
		if err != nil || dayErr != nil || day.Format(time.DateOnly) != want || shown != want {
			t.Errorf("%s: cell %s%d is %q and shown as %q, want the date %s", month, column, line, raw, shown, want)
		}
	}
	numbers := func(line int, l settlementLine) {
		t.Helper()
		for i, want := range l.numbers() {
			if got := cell(string(rune('D'+i)), line, true); got != strconv.Itoa(want) {
				t.Errorf("%s: cell %c%d is %s, want %d", month, 'D'+i, line, got, want)
			}
		}
	}
	for i, r := range rows {
		line := i + 2
		if got := cell("K", line, true); got != r.Entity {
			t.Errorf("%s: row %d is of entity %q, want %q", month, line, got, r.Entity)
		}
		date("B", line, r.Date)
		date("J", line, r.PayoutDate)
		numbers(line, r)
		if got := cell("A", line, true) + " " + cell("C", line, true); got != r.Branch+" "+r.Method {
			t.Errorf("%s: row %d is of %q, want %q", month, line, got, r.Branch+" "+r.Method)
		}
	}
	numbers(len(rows)+2, totals)
	if lines, err := book.GetRows("정산"); err != nil || len(lines) != len(rows)+2 || lines[0][0] != "지점" {
		t.Errorf("%s: %d lines in the workbook, want %d (%v)", month, len(lines), len(rows)+2, err)
	}
}

// checkCSV compares the lines of a CSV file with the screen.
func checkCSV(t *testing.T, hq *servicetest.Client, query string, rows []settlementLine, totals settlementLine) {
	t.Helper()
	want := []string{"지점,일자,결제수단,결제금액,환불금액,외부 환불,수수료,수수료 부가세,정산금액,지급일,사업자"}
	totals.Branch = "합계"
	for _, l := range append(rows, totals) {
		fields := []string{l.Branch, l.Date, l.Method}
		for _, n := range l.numbers() {
			fields = append(fields, strconv.Itoa(n))
		}
		want = append(want, strings.Join(append(fields, l.PayoutDate, l.Entity), ","))
	}
	text := strings.TrimPrefix(string(hq.Send(http.MethodGet, "/v2/admin/settlement.csv?"+query, nil, nil).Raw), "\uFEFF")
	if got := strings.Split(strings.TrimSpace(text), "\r\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: the file has\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// booked returns the won of our books in a month of Korean time.
func booked(t *testing.T, s *servicetest.Stack, month, kind string) (won int) {
	t.Helper()
	err := s.DB.Pool.QueryRow(t.Context(), `
		select coalesce(sum(won), 0) from money_entry where to_char(at at time zone 'Asia/Seoul', 'YYYY-MM') = $1 and `+kind, month).Scan(&won)
	if err != nil {
		t.Fatal(err)
	}
	return won
}
