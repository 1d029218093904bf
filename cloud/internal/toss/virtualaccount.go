package toss

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"
)

// VirtualAccountRequest asks for an account a customer can pay into.
type VirtualAccountRequest struct {
	Amount       int    // won, at least 1
	OrderID      string // 6 to 64 of A-Z a-z 0-9 - _
	OrderName    string // 1 to 100 characters
	CustomerName string // 1 to 100 characters
	Email        string // optional
	Mobile       string // optional, digits; the provider texts the account to it
	Bank         string // two-character bank code
	DueDate      time.Time
}

// IssueVirtualAccount opens a virtual account without the widget, with the API key set.
// The answer is a payment that waits for its deposit.
//
// The provider does not say how near a due date may be. If it refuses the one asked
// for, the account is issued for one hour, the provider's shortest round length: the
// due date of the answer may then be later than asked, and the caller, who cancels
// at its own deadline anyway, keeps the earlier of the two.
func (c *Client) IssueVirtualAccount(ctx context.Context, idempotencyKey string, r VirtualAccountRequest) (Payment, error) {
	switch {
	case r.Amount < 1:
		return Payment{}, notSent(issue, codeInvalidRequest, errAmount)
	case !within(r.OrderName, 100) || !within(r.CustomerName, 100):
		return Payment{}, notSent(issue, codeInvalidRequest, errors.New("order name and customer name need 1 to 100 characters"))
	case r.DueDate.IsZero():
		return Payment{}, notSent(issue, codeInvalidRequest, errors.New("no due date"))
	}
	due, oneHour := localTime(r.DueDate), 1
	p, err := c.issue(ctx, idempotencyKey, r, &due, nil)
	var e *Error
	if errors.As(err, &e) && e.HTTPStatus == http.StatusBadRequest && e.Code == codeInvalidRequest {
		// A key of its own: the first one replays the refusal. It is derived, so that
		// the whole exchange repeats itself under the caller's one key.
		p, err = c.issue(ctx, idempotencyKey+"-1h", r, nil, &oneHour)
	}
	return p, err
}

func (c *Client) issue(ctx context.Context, idempotencyKey string, r VirtualAccountRequest, dueDate *string, validHours *int) (Payment, error) {
	return c.payment(ctx, call{
		op: issue, keys: API, method: http.MethodPost, path: "/v1/virtual-accounts",
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
