package sandbox

import (
	"slices"
	"unicode/utf8"
)

// confirm handles POST /v1/payments/confirm: the shop captures what the buyer authenticated (docs/specification.md, Payment provider 3).
func (s *Sandbox) confirm(c *tossCall) (any, error) {
	var in struct {
		PaymentKey string `json:"paymentKey"`
		OrderID    string `json:"orderId"`
		Amount     *int   `json:"amount"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.PaymentKey == "" || utf8.RuneCountInString(in.PaymentKey) > 200:
		return nil, refuseRequest("paymentKey는 필수이며 200자 이하여야 합니다.")
	case !validOrderID(in.OrderID):
		return nil, refuseRequest("orderId는 6자 이상 64자 이하의 영문, 숫자, '-', '_', '='이어야 합니다.")
	case in.Amount == nil || *in.Amount <= 0:
		return nil, refuseRequest("amount는 0보다 큰 숫자여야 합니다.")
	}

	r := s.state.payment(in.PaymentKey, c.now)
	switch {
	case r == nil, r.foreignTo(c.keys):
		return nil, refuse("NOT_FOUND_PAYMENT_SESSION")
	case r.Keys != c.keys:
		return nil, refuse("INVALID_API_KEY")
	case r.processed():
		return nil, refuse("ALREADY_PROCESSED_PAYMENT")
	case r.Payment.Status != StatusInProgress, r.Payment.OrderID != in.OrderID:
		return nil, refuse("NOT_FOUND_PAYMENT_SESSION")
	case r.Payment.TotalAmount != *in.Amount:
		return nil, refuseRequest("결제 요청 금액과 승인 금액이 일치하지 않습니다.")
	case slices.ContainsFunc(s.state.byOrder[in.OrderID], (*record).processed):
		return nil, refuse("DUPLICATED_ORDER_ID")
	case *in.Amount < minimumAmount(r.Method):
		return nil, refuse("BELOW_MINIMUM_AMOUNT")
	}
	if r.Decline != "" {
		refusal := refuse(r.Decline)
		r.Payment.Status = StatusAborted
		r.Payment.Failure = &Failure{Code: refusal.Code, Message: refusal.Message}
		s.state.changed(r)
		return nil, refusal
	}
	r.settle(c.now, c.now.Add(widgetAccountLife))
	s.state.changed(r)
	if r.paid() {
		s.state.Ledger.Charged += r.Payment.TotalAmount
		s.state.book(&r.Payment, r.Payment.TotalAmount, c.now)
	}
	return &r.Payment, nil
}

// minimumAmount returns the provider's minimum for a method, in won (docs/specification.md, Payment provider 4).
func minimumAmount(method string) int {
	if method == MethodVirtualAccount {
		return 200
	}
	return 100
}

// validOrderID checks the provider's rule for order ids (docs/specification.md, Payment provider 2 and 7).
func validOrderID(id string) bool {
	if len(id) < 6 || len(id) > 64 {
		return false
	}
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '=':
		default:
			return false
		}
	}
	return true
}
