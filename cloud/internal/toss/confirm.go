package toss

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// ConfirmRequest names the payment to be charged. The caller has compared Amount with
// the amount it stored for the order.
type ConfirmRequest struct {
	PaymentKey string
	OrderID    string
	Amount     int // won
}

// Confirm charges an authenticated payment, or issues its virtual account.
//
// The caller checks OrderID and TotalAmount of the answer against its own. A payment
// by virtual account comes back as WAITING_FOR_DEPOSIT.
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

// Payment reads a payment by the provider's key.
func (c *Client) Payment(ctx context.Context, keys KeySet, paymentKey string) (Payment, error) {
	if err := checkName(read, paymentKey); err != nil {
		return Payment{}, err
	}
	return c.payment(ctx, call{
		op: read, keys: keys, method: http.MethodGet, path: "/v1/payments/" + paymentKey,
	})
}

// PaymentByOrder reads a payment by our order id: the way to learn the outcome of a
// confirmation that got no answer.
func (c *Client) PaymentByOrder(ctx context.Context, keys KeySet, orderID string) (Payment, error) {
	if err := checkName(read, orderID); err != nil {
		return Payment{}, err
	}
	return c.payment(ctx, call{
		op: read, keys: keys, method: http.MethodGet, path: "/v1/payments/orders/" + orderID,
		orderID: orderID,
	})
}

// maxPaymentKey is the provider's limit, and above its limit for order ids.
const maxPaymentKey = 200

// checkName declines a payment key or an order id that no payment can have. A payment
// key comes from the browser and becomes part of a path later.
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
