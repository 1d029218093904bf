package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// E3: callbacks without a secret are bounded per address. Those with a secret are not: the provider sends all of them.
func TestUnsignedCallbacksPerAddress(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	const limit = 120 // in a minute
	refused := 0
	for i := range 2*limit + 1 { // a minute may begin meanwhile
		answer := c.Post("/virtualaccount/webhook", map[string]any{
			"eventType": "PAYMENT_STATUS_CHANGED", "createdAt": fmt.Sprint(i), "data": map[string]any{"orderId": fmt.Sprint("ord-unknown-", i), "status": "DONE"},
		})
		switch answer.HTTP {
		case http.StatusTooManyRequests:
			refused++
		case http.StatusNotFound:
		default:
			t.Fatalf("callback %d: %d %s", i, answer.HTTP, answer.Raw)
		}
	}
	if refused == 0 {
		t.Errorf("none of %d callbacks was refused", 2*limit+1)
	}
	signed := c.Post("/virtualaccount/webhook", map[string]any{"createdAt": "2026-11-23T00:00:00", "secret": "guess", "status": "DONE", "transactionKey": "1", "orderId": "ord-unknown"})
	if signed.HTTP != http.StatusNotFound {
		t.Errorf("a callback with a secret: %d %s", signed.HTTP, signed.Raw)
	}
}
