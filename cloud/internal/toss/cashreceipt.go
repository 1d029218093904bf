package toss

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The kinds of cash receipts.
const (
	PersonalReceipt = "소득공제" // for the income tax of a person, identified by a phone number
	BusinessReceipt = "지출증빙" // for the expenses of a business, identified by its registration number
)

// Values of [CashReceipt.Status]: the tax office decides one or two days after the request.
const (
	ReceiptInProgress = "IN_PROGRESS"
	ReceiptCompleted  = "COMPLETED"
	ReceiptFailed     = "FAILED"
)

// The number of receipts per request, and of requests per list.
const (
	receiptPage  = 100
	receiptPages = 1000
)

// CashReceipt is the issue or the cancellation of a cash receipt, as the provider reports it to the tax office. The number that
// identifies the guest is not decoded.
type CashReceipt struct {
	Key         string // for its cancellation
	OrderID     string
	Canceled    bool // the entry is a cancellation
	IssueNumber string
	URL         string
	Amount      int // won
	Status      string
	Failure     *Failure // with ReceiptFailed
}

// CashReceiptRequest is a request for a cash receipt. It names no payment: a receipt that is issued after the payment is not
// connected with it at the provider, so the caller has to cancel it when the payment is refunded (docs/specification.md,
// Cash receipts 4).
type CashReceiptRequest struct {
	OrderID   string // of the receipt; used once
	OrderName string // 1 to 100 characters
	Type      string // PersonalReceipt or BusinessReceipt
	Number    string // digits: a phone number or a business registration number
	Amount    int    // won, with VAT
}

// IssueCashReceipt requests a cash receipt for a payment in cash.
func (c *Client) IssueCashReceipt(ctx context.Context, keys KeySet, idempotencyKey string, r CashReceiptRequest) (CashReceipt, error) {
	switch {
	case r.Amount < 1:
		return CashReceipt{}, notSent(issueReceipt, codeInvalidRequest, errAmount)
	case !digits(r.Number) || len(r.Number) > maxReceiptNumber || !within(r.OrderName, 100):
		return CashReceipt{}, notSent(issueReceipt, codeInvalidRequest, errors.New("a cash receipt needs a name of at most 100 characters and a number"))
	}
	return c.cashReceipt(ctx, call{
		op: issueReceipt, keys: keys, method: http.MethodPost, path: "/v1/cash-receipts", idempotencyKey: idempotencyKey, orderID: r.OrderID,
		body: struct {
			Amount    int    `json:"amount"`
			OrderID   string `json:"orderId"`
			OrderName string `json:"orderName"`
			Number    string `json:"customerIdentityNumber"`
			Type      string `json:"type"`
		}{r.Amount, r.OrderID, r.OrderName, r.Number, r.Type},
	})
}

// maxReceiptNumber is the provider's limit on the number that identifies a guest, in digits.
const maxReceiptNumber = 30

// CancelCashReceipt cancels the whole amount of a cash receipt. It returns the cancellation.
func (c *Client) CancelCashReceipt(ctx context.Context, keys KeySet, idempotencyKey, receiptKey string) (CashReceipt, error) {
	if err := checkName(cancelReceipt, receiptKey); err != nil {
		return CashReceipt{}, err
	}
	return c.cashReceipt(ctx, call{
		op: cancelReceipt, keys: keys, method: http.MethodPost, path: "/v1/cash-receipts/" + receiptKey + "/cancel",
		idempotencyKey: idempotencyKey, body: struct{}{},
	})
}

// CashReceipts returns the issues and cancellations that were requested on the Korean day of a time. It returns the complete
// list or an error.
func (c *Client) CashReceipts(ctx context.Context, keys KeySet, day time.Time) ([]CashReceipt, error) {
	query := url.Values{"requestDate": {day.In(kst).Format(time.DateOnly)}, "limit": {strconv.Itoa(receiptPage)}}
	var all []CashReceipt
	for range receiptPages {
		var page struct {
			HasNext    bool              `json:"hasNext"`
			LastCursor int64             `json:"lastCursor"`
			Data       []wireCashReceipt `json:"data"`
		}
		err := c.do(ctx, call{op: listReceipts, keys: keys, method: http.MethodGet, path: "/v1/cash-receipts", query: query},
			func(body []byte) error { return json.Unmarshal(body, &page) })
		if err != nil {
			return nil, err
		}
		for _, w := range page.Data {
			all = append(all, w.receipt())
		}
		if !page.HasNext {
			return all, nil
		}
		query.Set("cursor", strconv.FormatInt(page.LastCursor, 10))
	}
	return nil, &Error{op: listReceipts, Err: errors.New("the list does not end")}
}

type wireCashReceipt struct {
	ReceiptKey      string `json:"receiptKey"`
	OrderID         string `json:"orderId"`
	IssueNumber     string `json:"issueNumber"`
	ReceiptURL      string `json:"receiptUrl"`
	TransactionType string `json:"transactionType"` // CONFIRM or CANCEL
	Amount          won    `json:"amount"`
	IssueStatus     string `json:"issueStatus"`
	Failure         *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"failure"`
}

func (w wireCashReceipt) receipt() CashReceipt {
	r := CashReceipt{
		Key: w.ReceiptKey, OrderID: w.OrderID, Canceled: w.TransactionType == "CANCEL", IssueNumber: w.IssueNumber, URL: w.ReceiptURL,
		Amount: int(w.Amount), Status: w.IssueStatus,
	}
	if w.Failure != nil && w.Failure.Code != "" {
		r.Failure = &Failure{Code: w.Failure.Code, Message: w.Failure.Message}
	}
	return r
}

func (c *Client) cashReceipt(ctx context.Context, call call) (CashReceipt, error) {
	var r CashReceipt
	err := c.do(ctx, call, func(body []byte) error {
		var w wireCashReceipt
		if err := json.Unmarshal(body, &w); err != nil {
			return err
		}
		if w.ReceiptKey == "" || w.OrderID == "" || w.IssueStatus == "" {
			return errors.New("answer is not a cash receipt: receiptKey, orderId and issueStatus are required")
		}
		r = w.receipt()
		return nil
	})
	if err != nil {
		return CashReceipt{}, err
	}
	return r, nil
}
