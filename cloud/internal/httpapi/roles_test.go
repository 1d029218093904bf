package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// contactsOfGuests matches what an accountant must not see of the guest of newCast, also in part, and any other address. The last digits alone
// are no part of a longer number, such as the fraction of a second.
var contactsOfGuests = regexp.MustCompile(`(^|[^0-9a-f.])5678($|[^0-9a-f])|1234-|01012|010-|hong@|[a-z0-9]@[a-z]`)

// TestAccountantSeesNoContact: no answer to an accountant contains a phone number or an e-mail address of a guest. A manager
// sees it where there is one to see.
func TestAccountantSeesNoContact(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	month := c.s.Clock.Now().In(seoul).Format("2006-01")
	now := strings.NewReplacer("yearMonth=2026-11", "yearMonth="+month, "month=2026-11", "month="+month,
		"yearMonth=2026", "yearMonth="+month, "month=2026", "month="+month)
	seen := 0
	table := probes(t, c)
	for _, o := range contract.Operations() {
		if o.Method != http.MethodGet || o.Access() == "public" || o.Access() == "customer" || o.OperationID == "liveEvents" || o.OperationID == "adminAwaitDoor" {
			continue
		}
		path := now.Replace(table[o.OperationID].path)
		answer := c.Accountant.Send(o.Method, path, nil, nil)
		if found := contactsOfGuests.Find(readable(t, answer.Raw)); found != nil {
			t.Errorf("%s shows %q", o.OperationID, found)
		}
		if answer.HTTP == http.StatusOK && contactsOfGuests.Match(readable(t, c.Manager.Send(o.Method, path, nil, nil).Raw)) {
			seen++
		}
	}
	if seen == 0 {
		t.Error("no answer that an accountant may read contains a contact for a manager: the test has nothing to find")
	}
}

// readable returns the text of an answer: of a workbook its cells, because compressed bytes contain anything by chance.
func readable(t *testing.T, raw []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(raw, []byte("PK")) {
		return raw
	}
	book, err := excelize.OpenReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	var cells bytes.Buffer
	for _, sheet := range book.GetSheetList() {
		rows, err := book.GetRows(sheet)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			fmt.Fprintln(&cells, strings.Join(row, "\t"))
		}
	}
	return cells.Bytes()
}

// TestFrontDeskRefundsNothing: the front desk cancels what was not paid, but not what would be refunded.
func TestFrontDeskRefundsNothing(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	start := c.start
	paid := "/admin/reservation/" + reservationAt(t, c.s, 1, start)
	// The record offers to each role what the service lets it do.
	offered := func(what, id string, desk, manager bool) {
		t.Helper()
		for name, by := range map[string]struct {
			client *servicetest.Client
			want   bool
		}{"front desk": {c.FrontDesk, desk}, "manager": {c.Manager, manager}} {
			var record struct{ Cancelable bool }
			if by.client.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record); record.Cancelable != by.want {
				t.Errorf("%s: the %s's record has cancelable %t, want %t", what, name, record.Cancelable, by.want)
			}
		}
	}
	offered("a paid stay", reservationAt(t, c.s, 1, start), false, true)
	for _, status := range []string{"paid", "DONE"} {
		says(t, "a paid stay", c.FrontDesk.Delete(paid+"?bookingStatus="+status, nil), notAuthorized)
	}
	says(t, "a refund", c.FrontDesk.Post("/v2/admin/reservations/"+reservationAt(t, c.s, 1, start)+"/refunds", map[string]any{"amount": 1000, "reason": "a"}), notAuthorized)
	c.FrontDesk.Get(paid).OK(t)

	body := holdBody(3, start, time.Hour)
	c.FrontDesk.Post("/admin/reservation", body).OK(t)
	c.FrontDesk.Post("/admin/payment", map[string]any{"name": "김영희", "mobileNum": "010-9999-8888"}).OK(t)
	offered("a stay without a payment", reservationAt(t, c.s, 3, start), true, true)
	c.FrontDesk.Delete("/admin/reservation/"+reservationAt(t, c.s, 3, start)+"?bookingStatus=paid", nil).OK(t)

	c.FrontDesk.Post("/admin/reservation", body).OK(t)
	c.FrontDesk.Post("/admin/payment", map[string]any{"name": "김영희", "mobileNum": "010-9999-8888"}).OK(t)
	registered := reservationAt(t, c.s, 3, start)
	extend(t, c.s, c.s.Client(t), ownerKey(t, c.s, registered), start.Add(2*time.Hour))
	offered("a stay with a paid extension", registered, false, true)
	says(t, "a stay with a paid extension", c.FrontDesk.Delete("/admin/reservation/"+registered+"?bookingStatus=paid", nil), notAuthorized)

	var record struct{ Key, DoorlockKey *string }
	c.FrontDesk.Get("/v2/admin/reservations/"+reservationAt(t, c.s, 1, start)).OK(t).Into(t, &record)
	if record.Key != nil || record.DoorlockKey != nil {
		t.Error("the front desk receives the key of a guest")
	}
	body["branch"] = "hongdae"
	says(t, "another branch", c.FrontDesk.Post("/admin/reservation", body), outOfScope)
}
