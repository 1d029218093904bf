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
	transactionPage  = 500 // how many transactions are asked for at once
	transactionPages = 1000
)

// Transactions lists every movement of money of a key set's shop between from and to,
// for the nightly comparison with our own books. The list is whole or there is an
// error: a part of it would make payments look lost.
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
		// Go on until a page is empty: one shorter than asked for may only mean that
		// the provider's own limit is lower than ours.
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
