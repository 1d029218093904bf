package reserve_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestChargedAfterRefusalIsFound: the provider refuses one request of an attempt, and later charges another, slower one. No
// client asks about the payment again and there is no callback for cards, so the sweep must find it. (Seed 1363 of
// moneysim.)
func TestChargedAfterRefusalIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"})
	s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	s.wantState(t, order.OrderID, "HOLD")
	s.exec(t, `delete from river_job where kind = $1`, "settle") // as if the watchdog had already run, before the charge

	s.chargeBehindOurBack(t, order)
	s.await(t, order.OrderID, "DONE")
}

// chargeBehindOurBack sends an earlier, delayed request of an order's attempt to the provider.
func (s *shop) chargeBehindOurBack(t *testing.T, order moneytest.Confirm) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"paymentKey": order.PaymentKey, "orderId": order.OrderID, "amount": order.Amount})
	if err != nil {
		t.Fatal(err)
	}
	slow := httptest.NewRequest(http.MethodPost, "/v1/payments/confirm", bytes.NewReader(body))
	slow.SetBasicAuth(sandbox.DemoWidgetSecretKey+"_2", "")
	slow.Header.Set("Idempotency-Key", "the attempt's earlier one")
	answer := httptest.NewRecorder()
	s.Sandbox.ServeHTTP(answer, slow)
	if answer.Code != http.StatusOK {
		t.Fatalf("the provider answers %d %s", answer.Code, answer.Body)
	}
}
