package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// PaymentFile serves GET /v2/admin/branches/{branch}/payments.csv?yearMonth=: all payments of a month for a spreadsheet, in
// Korean and in local times. Rows are streamed, so that their number is not
// limited, and no connection to the database waits for a slow client.
func (c *Console) PaymentFile(w http.ResponseWriter, r *http.Request) error {
	branch, month, err := c.branchMonth(r)
	if err != nil {
		return err
	}
	contacts := wire.Principal(r).SeesContacts()
	file := csv.NewWriter(w)
	file.UseCRLF = true
	begun := false
	begin := func() error {
		begun = true
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.csv"`, branch.Code, month.Start.In(branch.Zone).Format("2006-01")))
		if _, err := w.Write([]byte("\uFEFF")); err != nil { // Excel reads UTF-8 only with a byte order mark
			return err
		}
		return file.Write(paymentColumns)
	}
	err = c.Backoffice.ExportPayments(r.Context(), branch, month, actor(r), func(p backoffice.PaidReservation) error {
		if !begun {
			if err := begin(); err != nil {
				return err
			}
		}
		if !contacts {
			p.Mobile = ""
		}
		return file.Write(paymentRow(branch, p))
	})
	if err == nil && !begun {
		err = begin()
	}
	file.Flush()
	if err != nil && begun {
		panic(http.ErrAbortHandler) // the status is sent: a broken connection shows the client that the file is incomplete
	}
	return err
}

var paymentColumns = []string{
	"지점", "예약번호", "결제일시", "예약자", "휴대폰", "룸", "이용일", "시작", "종료", "결제수단", "결제금액", "공급가액", "부가세", "상태", "취소일시", "취소금액", "주문번호",
}

// paymentStates are the states of payments in the file.
var paymentStates = map[booking.State]string{
	booking.Done: "결제 완료", booking.WaitingForDeposit: "입금 대기", booking.Canceling: "환불 중", booking.Canceled: "취소",
}

// paymentRow counts the money that came in and went out, not what was issued: sums of its columns are those of the books.
func paymentRow(branch booking.Branch, p backoffice.PaidReservation) []string {
	start, end := p.Start.In(branch.Zone), p.End.In(branch.Zone)
	vat := (p.Received + 5) / 11 // a tenth of the supply value is an eleventh of the price, rounded
	returned := ""
	if p.Returned > 0 {
		returned = strconv.Itoa(p.Returned)
	}
	return []string{
		sheetText(branch.NameKo), strconv.FormatInt(int64(p.ID), 10), sheetTime(p.PaidAt, branch.Zone), sheetText(p.Name), maskedMobile(p.Mobile),
		strconv.Itoa(p.RoomNo), start.Format(time.DateOnly), start.Format("15:04"), end.Format("15:04"), string(p.Method),
		strconv.Itoa(p.Received), strconv.Itoa(p.Received - vat), strconv.Itoa(vat), paymentStates[p.State],
		sheetTime(p.CanceledAt, branch.Zone), returned, sheetText(p.OrderID),
	}
}

func sheetTime(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format(time.DateTime)
}

// sheetText escapes text that a spreadsheet would evaluate as a formula (OWASP, CSV Injection). In Korean, Japanese and Chinese settings
// the full-width signs begin one, too.
func sheetText(text string) string {
	if strings.IndexAny(text, "=+-@\t\r\n＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}
