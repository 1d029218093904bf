package toss

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Limits of the provider, which the API adopts (docs/specification.md, Limits 12 and 13).
const (
	maxCancelReason        = 200
	maxRefundAccountNumber = 20
	maxRefundAccountHolder = 60
)

// CancelRequest is the amount to refund and the account that receives it.
type CancelRequest struct {
	Reason string // 1 to 200 characters
	Amount *int   // won; nil: the whole balance
	// RefundAccount is required for a virtual account whose deposit has arrived and
	// must be nil otherwise.
	RefundAccount *RefundAccount
}

// RefundAccount is the bank account that receives the refund of a virtual-account payment.
type RefundAccount struct {
	Bank   string // two-character bank code
	Number string // digits, at most 20; dashes and spaces are dropped
	Holder string // at most 60 characters
}

var (
	errCancelReason  = errors.New("a cancellation needs a reason of 1 to 200 characters")
	errAmount        = errors.New("the amount must be above 0")
	errRefundAccount = errors.New("a refund account needs a bank, a number of at most 20 digits and a holder of at most 60 characters")
)

// Cancel refunds a payment, or closes a virtual account that waits for its deposit.
// It returns the payment after the cancellation.
func (c *Client) Cancel(ctx context.Context, keys KeySet, idempotencyKey, paymentKey string, r CancelRequest) (Payment, error) {
	type refundAccount struct {
		Bank          string `json:"bank"` // not bankCode
		AccountNumber string `json:"accountNumber"`
		HolderName    string `json:"holderName"`
	}
	body := struct {
		CancelReason         string         `json:"cancelReason"`
		CancelAmount         *int           `json:"cancelAmount,omitempty"`
		RefundReceiveAccount *refundAccount `json:"refundReceiveAccount,omitempty"`
	}{CancelReason: r.Reason, CancelAmount: r.Amount}

	if err := checkName(cancel, paymentKey); err != nil {
		return Payment{}, err
	}
	switch {
	case r.Reason == "" || utf8.RuneCountInString(r.Reason) > maxCancelReason:
		return Payment{}, notSent(cancel, codeInvalidRequest, errCancelReason)
	case r.Amount != nil && *r.Amount <= 0:
		return Payment{}, notSent(cancel, codeInvalidRequest, errAmount)
	}
	if a := r.RefundAccount; a != nil {
		number := strings.NewReplacer("-", "", " ", "").Replace(a.Number)
		if a.Bank == "" || !digits(number) || len(number) > maxRefundAccountNumber ||
			strings.TrimSpace(a.Holder) == "" || utf8.RuneCountInString(a.Holder) > maxRefundAccountHolder {
			return Payment{}, notSent(cancel, codeInvalidRefundAccount, errRefundAccount)
		}
		body.RefundReceiveAccount = &refundAccount{a.Bank, number, a.Holder}
	}
	return c.payment(ctx, call{
		op: cancel, keys: keys, method: http.MethodPost,
		path:           "/v1/payments/" + paymentKey + "/cancel",
		idempotencyKey: idempotencyKey, body: body,
	})
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
