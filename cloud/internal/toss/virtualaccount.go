package toss

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"
)

// VirtualAccountRequest is a request for an account into which a customer can pay.
type VirtualAccountRequest struct {
	Amount       int    // won, at least 1
	OrderID      string // 6 to 64 of A-Z a-z 0-9 - _
	OrderName    string // 1 to 100 characters
	CustomerName string // 1 to 100 characters
	Email        string // optional
	Mobile       string // optional, digits; the provider sends the account to it by text message
	Bank         string // two-character bank code
	DueDate      time.Time
}

// IssueVirtualAccount issues a virtual account without the widget, with an API key set.
// It returns a payment that waits for its deposit.
//
// The provider does not document its earliest due date. If it refuses the requested one,
// the account is issued for one hour. The returned due date may then be later than
// requested; the caller must use the earlier of the two and cancel at its own deadline.
func (c *Client) IssueVirtualAccount(ctx context.Context, keys KeySet, idempotencyKey string, r VirtualAccountRequest) (Payment, error) {
	switch {
	case r.Amount < 1:
		return Payment{}, notSent(issue, codeInvalidRequest, errAmount)
	case !within(r.OrderName, 100) || !within(r.CustomerName, 100):
		return Payment{}, notSent(issue, codeInvalidRequest, errors.New("order name and customer name need 1 to 100 characters"))
	case r.DueDate.IsZero():
		return Payment{}, notSent(issue, codeInvalidRequest, errors.New("no due date"))
	}
	due, oneHour := localTime(r.DueDate), 1
	p, err := c.issue(ctx, keys, idempotencyKey, r, &due, nil)
	var e *Error
	if errors.As(err, &e) && e.HTTPStatus == http.StatusBadRequest && e.Code == codeInvalidRequest {
		// The second request needs another idempotency key, because the provider replays
		// the refusal for the first. It is derived, so repeating the call repeats both.
		p, err = c.issue(ctx, keys, idempotencyKey+"-1h", r, nil, &oneHour)
	}
	return p, err
}

func (c *Client) issue(ctx context.Context, keys KeySet, idempotencyKey string, r VirtualAccountRequest, dueDate *string, validHours *int) (Payment, error) {
	return c.payment(ctx, call{
		op: issue, keys: keys, method: http.MethodPost, path: "/v1/virtual-accounts",
		idempotencyKey: idempotencyKey, orderID: r.OrderID,
		body: struct {
			Amount              int     `json:"amount"`
			OrderID             string  `json:"orderId"`
			OrderName           string  `json:"orderName"`
			CustomerName        string  `json:"customerName"`
			CustomerEmail       string  `json:"customerEmail,omitempty"`
			CustomerMobilePhone string  `json:"customerMobilePhone,omitempty"`
			Bank                string  `json:"bank"`
			DueDate             *string `json:"dueDate,omitempty"`
			ValidHours          *int    `json:"validHours,omitempty"`
		}{r.Amount, r.OrderID, r.OrderName, r.CustomerName, r.Email, r.Mobile, r.Bank, dueDate, validHours},
	})
}

func within(s string, limit int) bool {
	n := utf8.RuneCountInString(s)
	return n >= 1 && n <= limit
}
