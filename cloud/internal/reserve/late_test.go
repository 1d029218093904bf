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

// The provider refuses one request of an attempt while another, slower one is still on its way, and charges when that
// arrives. Nobody asks for the money any more, and there is no callback for cards: the sweep must find it. (Seed 1363 of
// moneysim.)
func TestChargedAfterRefusalIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"})
	s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	s.wantState(t, order.OrderID, "HOLD")
	s.exec(t, `delete from river_job where kind = $1`, "settle") // the watchdog has looked, and it was too early

	s.chargeBehindOurBack(t, order)
	s.await(t, order.OrderID, "DONE")
}

// chargeBehindOurBack has an earlier, slower request of an order's attempt arrive at the provider.
func (s *shop) chargeBehindOurBack(t *testing.T, order moneytest.Confirm) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"paymentKey": order.PaymentKey, "orderId": order.OrderID, "amount": order.Amount})
	if err != nil {
		t.Fatal(err)
	}
	slow := httptest.NewRequest(http.MethodPost, "/v1/payments/confirm", bytes.NewReader(body))
	slow.SetBasicAuth(sandbox.DemoWidgetSecretKey, "")
	slow.Header.Set("Idempotency-Key", "the attempt's earlier one")
	answer := httptest.NewRecorder()
	s.Sandbox.ServeHTTP(answer, slow)
	if answer.Code != http.StatusOK {
		t.Fatalf("the provider answers %d %s", answer.Code, answer.Body)
	}
}
