package toss

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	transactionPage  = 500 // number of transactions per request
	transactionPages = 1000
)

// Transactions returns every movement of money of a key set between from and to, for the
// reconciliation. It returns the complete list or an error, because payments would appear
// to be missing from an incomplete list.
func (c *Client) Transactions(ctx context.Context, keys KeySet, from, to time.Time) ([]Transaction, error) {
	query := url.Values{
		"startDate": {localTime(from)},
		"endDate":   {localTime(to)},
		"limit":     {strconv.Itoa(transactionPage)},
	}
	var all []Transaction
	for range transactionPages {
		var page []Transaction
		err := c.do(ctx, call{
			op: transactions, keys: keys, method: http.MethodGet, path: "/v1/transactions", query: query,
		}, func(body []byte) (err error) {
			page, err = decodeTransactions(body)
			return err
		})
		if err != nil {
			return nil, err
		}
		// Continue until a page is empty: a short page may only mean that the provider's
		// page limit is lower than ours.
		if len(page) == 0 {
			return all, nil
		}
		all = append(all, page...)
		next := page[len(page)-1].TransactionKey
		if next == query.Get("startingAfter") {
			break
		}
		query.Set("startingAfter", next)
	}
	return nil, &Error{op: transactions, Err: errors.New("the list does not end")}
}
