package sandbox

import (
	"slices"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Settlement is one movement of money in the provider's settlement list, GET /v1/settlements: what the provider deducts, and
// when it pays out. A cancellation has negative amounts.
type Settlement struct {
	MID            string    `json:"mId"`
	PaymentKey     string    `json:"paymentKey"`
	TransactionKey string    `json:"transactionKey"`
	OrderID        string    `json:"orderId"`
	Currency       string    `json:"currency"`
	Method         string    `json:"method"`
	Amount         int       `json:"amount"`
	InterestFee    int       `json:"interestFee"`
	Fees           []Fee     `json:"fees"`
	SupplyAmount   int       `json:"supplyAmount"` // the fee without its VAT
	VAT            int       `json:"vat"`          // of the fee
	PayOutAmount   int       `json:"payOutAmount"`
	ApprovedAt     time.Time `json:"approvedAt"`
	SoldDate       string    `json:"soldDate"`
	PaidOutDate    string    `json:"paidOutDate"`
}

// Fee is one part of the provider's fee, VAT included.
type Fee struct {
	Type string `json:"type"` // BASE
	Fee  int    `json:"fee"`
}

// feePerMille is the fee without VAT, in thousandths of the amount; a deposit to a virtual account costs depositFee instead.
var feePerMille = map[string]int{MethodCard: 32, MethodEasyPay: 33, MethodMobilePhone: 35}

const depositFee = 300

// payOutDays are the business days from a sale to its pay-out.
const payOutDays = 2

// fee returns the fee, without VAT, of a payment of which the provider holds an amount.
func fee(method string, held int) int {
	if method == MethodVirtualAccount {
		return depositFee // not returned with a refund
	}
	return held * feePerMille[method] / 1000
}

// settle returns the settlement of a transaction of a payment of which the provider held an amount before. The fee is that of the
// rest, so that parts return what the whole would.
func (t Transaction) settle(held int) Settlement {
	amount, before := t.Amount, fee(t.Method, held)
	if t.Status == StatusDone {
		before = 0
	} else {
		amount = -amount
	}
	after := fee(t.Method, held+amount)
	supply, tax := after-before, after/10-before/10
	sold := t.TransactionAt.In(kst)
	return Settlement{
		MID: t.MID, PaymentKey: t.PaymentKey, TransactionKey: t.TransactionKey, OrderID: t.OrderID, Currency: t.Currency, Method: t.Method,
		Amount: amount, Fees: []Fee{{"BASE", supply + tax}}, SupplyAmount: supply, VAT: tax, PayOutAmount: amount - supply - tax,
		ApprovedAt: t.TransactionAt, SoldDate: sold.Format(time.DateOnly), PaidOutDate: payOutDay(sold),
	}
}

// payOutDay returns the day of the pay-out for a sale; banks make none on weekends and public holidays.
func payOutDay(sold time.Time) string {
	dayAfter := booking.BusinessDaysAfter(sold, payOutDays)
	return dayAfter.AddDate(0, 0, -1).In(kst).Format(time.DateOnly)
}

// maxSettlements bounds a page of settlements.
const maxSettlements = 5000

// listSettlements handles GET /v1/settlements: the settlements of the caller's key set whose sale, or with
// dateType=paidOutDate whose pay-out, lies between startDate and endDate, page by page from page 1.
func (s *Sandbox) listSettlements(c *tossCall) (any, error) {
	q := c.URL.Query()
	from, errFrom := time.ParseInLocation(time.DateOnly, q.Get("startDate"), kst)
	to, errTo := time.ParseInLocation(time.DateOnly, q.Get("endDate"), kst)
	if errFrom != nil || errTo != nil || to.Before(from) {
		return nil, refuseRequest("startDate와 endDate는 yyyy-MM-dd 형식이어야 합니다.")
	}
	page, size := 1, 100
	for name, into := range map[string]*int{"page": &page, "size": &size} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return nil, refuseRequest("page와 size는 1 이상이어야 합니다.")
			}
			*into = n
		}
	}
	if size > maxSettlements {
		return nil, refuseRequest("size는 5000 이하여야 합니다.")
	}
	found := []Settlement{}
	held := map[string]int{} // by payment
	for _, t := range s.state.Transactions {
		one := t.settle(held[t.PaymentKey])
		held[t.PaymentKey] += one.Amount
		date := one.SoldDate
		if q.Get("dateType") == "paidOutDate" {
			date = one.PaidOutDate
		}
		if c.keys.lists(t.MID) && date >= q.Get("startDate") && date <= q.Get("endDate") {
			found = append(found, one)
		}
	}
	found = slices.Clip(found[min((page-1)*size, len(found)):])
	return found[:min(size, len(found))], nil
}
