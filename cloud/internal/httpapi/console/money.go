package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// monthOf returns the local month of yearMonth.
func monthOf(text string, zone *time.Location) (booking.Interval, error) {
	first, ok := wire.ParseExact("2006-01", text, time.UTC)
	if !ok {
		return booking.Interval{}, wire.Malformed("yearMonth")
	}
	start, end := booking.DateOf(first, time.UTC), booking.DateOf(first.AddDate(0, 1, 0), time.UTC)
	return booking.Interval{Start: start.At(0, zone), End: end.At(0, zone)}, nil
}

// ShowMoney serves GET /v2/admin/branches/{branch}/money?yearMonth=YYYY-MM: the month's payments, the unfinished refunds, and
// the discrepancies between the provider's books and ours.
func (c *Console) ShowMoney(w http.ResponseWriter, r *http.Request) error {
	branch, month, err := c.branchMonth(r)
	if err != nil {
		return err
	}
	books, err := c.Backoffice.Money(r.Context(), branch, month, paymentsShown, wire.Principal(r).Role == account.HQ)
	if err != nil {
		return err
	}
	if err := c.viewedMonth(r, branch, month); err != nil {
		return err
	}
	open := make([]booking.ReservationID, len(books.Refunds))
	for i, f := range books.Refunds {
		open[i] = f.Reservation
	}
	balances, err := c.Reserve.BalancesByID(r.Context(), open...)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Sums          []wireSum        `json:"sums"`
		Payments      []wirePaid       `json:"payments"`
		Totals        wireTotals       `json:"totals"`
		Refunds       []wireRefund     `json:"refunds"`
		Refunded      []wireRefund     `json:"refunded"`
		Discrepancies []wireDifference `json:"differences"`
	}{wireSums(books), wirePaidList(books.Paid, branch.Zone), wireMoneyTotals(books.Totals), wireRefunds(books.Refunds, balances), wireRefunds(books.Refunded, nil), wireDifferences(books)})
}

// paymentsShown is the number of payments in the overview; ListPayments returns the others.
const paymentsShown = 50

// branchMonth returns the branch of the path and the month of the query.
func (c *Console) branchMonth(r *http.Request) (booking.Branch, booking.Interval, error) {
	branch, err := c.branch(r)
	if err != nil {
		return branch, booking.Interval{}, err
	}
	text, err := wire.Query(r, "yearMonth")
	if err != nil {
		return branch, booking.Interval{}, err
	}
	month, err := monthOf(text, branch.Zone)
	return branch, month, err
}

// ListPayments serves GET /v2/admin/branches/{branch}/payments?yearMonth=&before=&limit=, newest payment first. before is the field next of the
// page before, or the id of a payment, whose place is the present one.
func (c *Console) ListPayments(w http.ResponseWriter, r *http.Request) error {
	branch, month, err := c.branchMonth(r)
	if err != nil {
		return err
	}
	limit, err := wire.PageLimit(r)
	if err != nil {
		return err
	}
	after, err := paymentCursor(r, month)
	if err != nil {
		return err
	}
	paid, err := c.Backoffice.Payments(r.Context(), branch.ID, month, after, limit+1)
	if err != nil {
		return err
	}
	if err := c.viewedMonth(r, branch, month); err != nil {
		return err
	}
	var next *string
	if len(paid) > limit {
		paid = paid[:limit]
		last := backoffice.PlaceOf(paid[limit-1])
		next = wire.Nullable(fmt.Sprintf("%d-%d", last.At.UnixMicro(), last.ID))
	}
	return wire.WriteData(w, struct {
		Payments []wirePaid `json:"payments"`
		Next     *string    `json:"next"`
	}{wirePaidList(paid, branch.Zone), next})
}

// paymentCursor reads before: the time and the id of the last payment of the previous page, or its id alone.
func paymentCursor(r *http.Request, month booking.Interval) (after backoffice.PaidPlace, err error) {
	cursor := r.URL.Query().Get("before")
	if cursor == "" {
		return after, nil
	}
	at, id, timed := strings.Cut(cursor, "-")
	if timed {
		micros, err := strconv.ParseInt(at, 10, 64)
		after.At = time.UnixMicro(micros)
		if err != nil || after.At.Before(month.Start) || !after.At.Before(month.End) {
			return after, wire.Malformed("before")
		}
	} else {
		id = at
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number < 1 {
		return after, wire.Malformed("before")
	}
	after.ID = booking.ReservationID(number)
	return after, nil
}

// viewedMonth records that an administrator saw the names in a month's payments.
func (c *Console) viewedMonth(r *http.Request, branch booking.Branch, month booking.Interval) error {
	return c.Backoffice.ViewedList(r.Context(), actor(r), "reservation.month", month.Start.In(branch.Zone).Format("2006-01"), branch.ID)
}

type wireSum struct {
	Date   string `json:"date"`
	Method string `json:"method"`
	State  string `json:"state"`
	Count  int    `json:"count"`
	Amount int64  `json:"amount"`
}

func wireSums(books backoffice.Money) []wireSum {
	sums := make([]wireSum, 0, len(books.Sums))
	for _, s := range books.Sums {
		sums = append(sums, wireSum{s.Day, string(s.Method), string(s.State), s.Count, s.Amount})
	}
	return sums
}

// wireTotals are the sums of a month, by the provider's own movements.
type wireTotals struct {
	Paid     int `json:"paid"`
	Refunded int `json:"refunded"`
	Reversed int `json:"reversed"`
	Outside  int `json:"outside"`
	Net      int `json:"net"`
}

func wireMoneyTotals(t backoffice.Totals) wireTotals {
	return wireTotals{t.Paid, t.Refunded, t.Reversed, t.Outside, t.Net()}
}

type wirePaid struct {
	ID      string  `json:"id"`
	PaidAt  *string `json:"paidAt"`
	Name    *string `json:"name"`
	RoomNo  string  `json:"roomNo"`
	Start   string  `json:"start"`
	End     string  `json:"end"`
	Method  string  `json:"method"`
	Amount  int     `json:"amount"`
	State   string  `json:"state"`
	OrderID *string `json:"orderId"`
}

func wirePaidList(list []booking.Reservation, zone *time.Location) []wirePaid {
	payments := make([]wirePaid, 0, len(list))
	for _, p := range list {
		payments = append(payments, wirePaid{
			wire.ReservationID(p.ID), wire.Instant(p.PaidAt), wire.Nullable(p.Name), strconv.Itoa(p.RoomNo), wire.Minute(p.Start, zone), wire.Minute(p.End, zone),
			string(p.Method), p.Amount, string(p.State), wire.Nullable(p.OrderID),
		})
	}
	return payments
}

type wireRefund struct {
	ID            string  `json:"id"`
	ReservationID string  `json:"reservationId"`
	State         string  `json:"state"`
	Amount        int     `json:"amount"`
	RequestedBy   string  `json:"requestedBy"`
	Reason        string  `json:"reason"`
	CreatedAt     string  `json:"createdAt"`
	UpdatedAt     string  `json:"updatedAt"`
	ErrorCode     *string `json:"errorCode"`
	ErrorMessage  *string `json:"errorMessage"`
	DueAt         *string `json:"dueAt"`      // by law, once the bank transfers it
	Account       *string `json:"account"`    // masked
	ApprovalOf    *string `json:"approvalOf"` // who entered an account that another administrator has to approve
	Outside       any     `json:"outside"`    // how it was returned outside the provider; null: at the provider
	wireByHand
}

func wireRefunds(list []backoffice.Refund, balances map[booking.ReservationID]reserve.Balance) []wireRefund {
	refunds := make([]wireRefund, 0, len(list))
	for _, f := range list {
		refunds = append(refunds, wireRefund{
			strconv.FormatInt(f.ID, 10), wire.ReservationID(f.Reservation), string(f.State), f.Amount, f.By, f.Reason,
			*wire.Instant(f.CreatedAt), *wire.Instant(f.UpdatedAt), f.ErrorCode, f.ErrorMessage,
			dueAt(f), f.Account, f.AccountBy, outside(f), byHand(balances, f.Reservation),
		})
	}
	return refunds
}

func dueAt(f backoffice.Refund) *string {
	if f.DueAt == nil {
		return nil
	}
	return wire.Instant(*f.DueAt)
}

func outside(f backoffice.Refund) any {
	if f.Outside == nil {
		return nil
	}
	return f.Outside
}

type wireDifference struct {
	ID         string  `json:"id"`
	FoundAt    string  `json:"foundAt"`
	OrderID    string  `json:"orderId"`
	Kind       string  `json:"kind"`
	Detail     string  `json:"detail"`
	ResolvedAt *string `json:"resolvedAt"`
	Resolution *string `json:"resolution"`
}

func wireDifferences(books backoffice.Money) []wireDifference {
	differences := make([]wireDifference, 0, len(books.Discrepancies))
	for _, d := range books.Discrepancies {
		item := wireDifference{
			strconv.FormatInt(d.ID, 10), *wire.Instant(d.FoundAt), d.OrderID, d.Kind, d.Detail, wire.Instant(d.ResolvedAt), wire.Nullable(d.Resolution),
		}
		differences = append(differences, item)
	}
	return differences
}

// ResolveDiscrepancy serves POST /v2/admin/differences/{id}/resolution (headquarters).
func (c *Console) ResolveDiscrepancy(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Resolution *string `json:"resolution"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	resolution, err := wire.Text("resolution", body.Resolution, 500)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return backoffice.ErrNoDiscrepancy
	}
	if err := c.Backoffice.ResolveDiscrepancy(r.Context(), id, resolution, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// NoteExport serves POST /v2/admin/branches/{branch}/exports: it audits that a list with names was downloaded as a file.
func (c *Console) NoteExport(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		What      *string `json:"what"`
		YearMonth *string `json:"yearMonth"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	what, err := wire.Text("what", body.What, 20)
	if err != nil {
		return err
	}
	if what != "payments" && what != "audit" {
		return wire.UnknownValue("what")
	}
	detail := map[string]string{}
	if body.YearMonth != nil {
		if _, err := monthOf(*body.YearMonth, branch.Zone); err != nil {
			return err
		}
		detail["yearMonth"] = *body.YearMonth
	}
	if err := c.Backoffice.Exported(r.Context(), branch.Code, what, detail, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
