package toss

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// transactionPage is how many transactions are asked for at once.
const transactionPage = 500

// Transactions lists every movement of money of a key set's shop between from and to,
// for the nightly comparison with our own books. It pages by itself. The first error
// ends the sequence; a list cut short by one must not be compared.
func (c *Client) Transactions(ctx context.Context, keys KeySet, from, to time.Time) iter.Seq2[Transaction, error] {
	return func(yield func(Transaction, error) bool) {
		query := url.Values{
			"startDate": {localTime(from)},
			"endDate":   {localTime(to)},
			"limit":     {strconv.Itoa(transactionPage)},
		}
		// Go on until a page is empty: a page shorter than asked for may only mean
		// that the provider's own limit is lower than ours.
		for last := ""; ; {
			var page []Transaction
			err := c.do(ctx, call{
				op: transactions, keys: keys, method: http.MethodGet, path: "/v1/transactions", query: query,
			}, func(body []byte) (err error) {
				page, err = decodeTransactions(body)
				return err
			})
			if err != nil {
				yield(Transaction{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			next := page[len(page)-1].TransactionKey
			if next == last {
				yield(Transaction{}, &Error{op: transactions, Err: errors.New("the list does not advance")})
				return
			}
			last = next
			query.Set("startingAfter", last)
		}
	}
}
