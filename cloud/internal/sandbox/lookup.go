package sandbox

import (
	"slices"
	"strconv"
	"time"
)

// getPayment handles GET /v1/payments/{paymentKey}.
func (s *Sandbox) getPayment(c *tossCall) (any, error) {
	return show(s.state.payment(c.PathValue("paymentKey"), c.now), c.keys)
}

// getOrder handles GET /v1/payments/orders/{orderId}. If an order has several payments, it returns the newest, also if the provider has
// processed another one: which one the provider returns is not documented.
func (s *Sandbox) getOrder(c *tossCall) (any, error) {
	return show(s.state.newest(c.PathValue("orderId"), c.now), c.keys)
}

func show(r *record, keys keySet) (any, error) {
	switch {
	case r == nil, r.foreignTo(keys):
		return nil, refuse("NOT_FOUND_PAYMENT")
	case r.Keys != keys:
		return nil, refuse("INVALID_API_KEY")
	}
	return &r.Payment, nil
}

// listTransactions handles GET /v1/transactions: the movements from startDate to endDate (Korean time, inclusive)
// of the caller's merchant, oldest first.
func (s *Sandbox) listTransactions(c *tossCall) (any, error) {
	q := c.URL.Query()
	from, okFrom := parseKoreanTime(q.Get("startDate"), false)
	to, okTo := parseKoreanTime(q.Get("endDate"), true)
	if !okFrom || !okTo || to.Before(from) {
		return nil, refuseRequest("startDate와 endDate는 yyyy-MM-dd'T'HH:mm:ss 형식이어야 합니다.")
	}
	limit := 100
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return nil, refuseRequest("limit은 1 이상 10000 이하여야 합니다.")
		}
		limit = n
	}
	found := []Transaction{}
	for _, t := range s.state.Transactions {
		if c.keys.lists(t.MID) && !t.TransactionAt.Before(from) && !t.TransactionAt.After(to) {
			found = append(found, t)
		}
	}
	if after := q.Get("startingAfter"); after != "" {
		i := slices.IndexFunc(found, func(t Transaction) bool { return t.TransactionKey == after })
		if i < 0 {
			return nil, refuseRequest("startingAfter에 해당하는 거래가 없습니다.")
		}
		found = found[i+1:]
	}
	return found[:min(limit, len(found))], nil
}

// parseKoreanTime parses a local date-time or a date. A date means its first instant, or its last second if end is true.
func parseKoreanTime(text string, end bool) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04:05.999"} {
		if t, err := time.ParseInLocation(layout, text, kst); err == nil {
			return t, true
		}
	}
	t, err := time.ParseInLocation(time.DateOnly, text, kst)
	if err == nil && end {
		t = t.Add(24*time.Hour - time.Second)
	}
	return t, err == nil
}
