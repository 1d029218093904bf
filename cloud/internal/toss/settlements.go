package toss

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// settlementPage is the number of settlements per request. The provider allows 5000, but a settlement has up to about 1 KiB, and
// a page must fit into maxBody.
const settlementPage = 500

// Settlement is what the provider deducts from one movement of money, and when it pays out. A cancellation has negative
// amounts. Amounts are in won.
type Settlement struct {
	TransactionKey string
	OrderID        string
	Method         string
	Amount         int
	Fee            int // without VAT
	VAT            int // of the fee
	PayOut         int
	SoldOn         string // YYYY-MM-DD, Korean time
	PaidOutOn      string // YYYY-MM-DD; empty: not fixed yet
}

// Settlements returns the settlements of a key set for sales from one day to another, both included. It returns the complete
// list or an error.
func (c *Client) Settlements(ctx context.Context, keys KeySet, from, to time.Time) ([]Settlement, error) {
	var all []Settlement
	for page := 1; page <= transactionPages; page++ {
		var list []Settlement
		err := c.do(ctx, call{
			op: settlements, keys: keys, method: http.MethodGet, path: "/v1/settlements", query: url.Values{
				"startDate": {from.In(kst).Format(time.DateOnly)}, "endDate": {to.In(kst).Format(time.DateOnly)},
				"dateType": {"soldDate"}, "page": {strconv.Itoa(page)}, "size": {strconv.Itoa(settlementPage)},
			},
		}, func(body []byte) (err error) {
			list, err = decodeSettlements(body)
			return err
		})
		if err != nil {
			return nil, err
		}
		// Continue until a page is empty: a short page may only mean that the provider's page limit is lower than ours.
		if len(list) == 0 {
			return all, nil
		}
		all = append(all, list...)
	}
	return nil, &Error{op: settlements, Err: errors.New("the list does not end")}
}

func decodeSettlements(body []byte) ([]Settlement, error) {
	var page []struct {
		TransactionKey string `json:"transactionKey"`
		OrderID        string `json:"orderId"`
		Method         string `json:"method"`
		Amount         won    `json:"amount"`
		SupplyAmount   won    `json:"supplyAmount"`
		VAT            won    `json:"vat"`
		PayOutAmount   won    `json:"payOutAmount"`
		SoldDate       string `json:"soldDate"`
		PaidOutDate    string `json:"paidOutDate"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	list := make([]Settlement, 0, len(page))
	for i, w := range page {
		if w.TransactionKey == "" || w.OrderID == "" || w.SoldDate == "" {
			return nil, fmt.Errorf("settlement %d has no key, no order or no date", i)
		}
		list = append(list, Settlement{
			w.TransactionKey, w.OrderID, w.Method, int(w.Amount), int(w.SupplyAmount), int(w.VAT), int(w.PayOutAmount), w.SoldDate, w.PaidOutDate,
		})
	}
	return list, nil
}
