package toss

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// ConfirmRequest identifies the payment to charge. The caller must have compared Amount
// with the amount that it stored for the order.
type ConfirmRequest struct {
	PaymentKey string
	OrderID    string
	Amount     int // won
}

// Confirm charges an authenticated payment, or issues its virtual account.
//
// The caller must compare OrderID and TotalAmount of the result with its own. A payment
// by virtual account has the status WAITING_FOR_DEPOSIT.
func (c *Client) Confirm(ctx context.Context, keys KeySet, idempotencyKey string, r ConfirmRequest) (Payment, error) {
	if err := checkName(confirm, r.PaymentKey); err != nil {
		return Payment{}, err
	}
	return c.payment(ctx, call{
		op: confirm, keys: keys, method: http.MethodPost, path: "/v1/payments/confirm",
		idempotencyKey: idempotencyKey, orderID: r.OrderID,
		body: struct {
			PaymentKey string `json:"paymentKey"`
			OrderID    string `json:"orderId"`
			Amount     int    `json:"amount"`
		}{r.PaymentKey, r.OrderID, r.Amount},
	})
}

// Payment returns a payment by the provider's payment key.
func (c *Client) Payment(ctx context.Context, keys KeySet, paymentKey string) (Payment, error) {
	if err := checkName(read, paymentKey); err != nil {
		return Payment{}, err
	}
	return c.payment(ctx, call{
		op: read, keys: keys, method: http.MethodGet, path: "/v1/payments/" + paymentKey,
	})
}

// PaymentByOrder returns a payment by the order id. It determines the outcome of a
// confirmation that received no response.
func (c *Client) PaymentByOrder(ctx context.Context, keys KeySet, orderID string) (Payment, error) {
	if err := checkName(read, orderID); err != nil {
		return Payment{}, err
	}
	return c.payment(ctx, call{
		op: read, keys: keys, method: http.MethodGet, path: "/v1/payments/orders/" + orderID,
		orderID: orderID,
	})
}

// maxPaymentKey is the provider's limit. It exceeds the limit for order ids.
const maxPaymentKey = 200

// checkName rejects a payment key or an order id that is not valid. A payment key comes
// from the browser and becomes part of a request path.
func checkName(op operation, name string) error {
	ok := name != "" && len(name) <= maxPaymentKey && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_=.", r)
	})
	if !ok {
		return notSent(op, codeNotFoundPayment, errors.New("no payment can have this key or order id"))
	}
	return nil
}

func (c *Client) payment(ctx context.Context, call call) (Payment, error) {
	var p Payment
	err := c.do(ctx, call, func(body []byte) (err error) {
		p, err = decodePayment(body)
		return err
	})
	if err != nil {
		return Payment{}, err
	}
	return p, nil
}
