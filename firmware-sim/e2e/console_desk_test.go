package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// pressIn presses a button in the row of a table that contains a text.
func (p *page) pressIn(row, label string) {
	p.t.Helper()
	find := `[...document.querySelectorAll("tr")].find(r => r.innerText.includes(` + quoted(row) + `))?.querySelectorAll("button")`
	p.wait("the button "+label+" beside "+row, `[...(`+find+` ?? [])].some(b => b.innerText.includes(`+quoted(label)+`))`)
	value[bool](p, `([...`+find+`].find(b => b.innerText.includes(`+quoted(label)+`)).click(), true)`)
}

// chargeWithoutOrder pays an order that the service does not have.
func chargeWithoutOrder(t *testing.T, s *world.Stack, order string, amount int) {
	t.Helper()
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	postJSON(t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order, "amount": amount, "method": "카드"}, &payment)
	askProvider(t, s, http.MethodPost, "/v1/payments/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": order, "amount": amount}, nil)
}

// askProvider sends a request to the sandbox's payment provider with the secret key of the widget.
func askProvider(t *testing.T, s *world.Stack, method, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.SandboxAt+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("test_gsk_yeolda_demo", "")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	decode(t, response, into)
}

// TestConsoleDesk ends money that got stuck in each way at the money desk alone: a refund that the bank rejects, one that the
// provider declines for good, one to a stranger's account, and a payment without a reservation.
func TestConsoleDesk(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	guest, hq := newBrowser(t, s), newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	type payment struct{ ID, OrderID, State string }
	payments := func() []payment {
		var month struct{ Payments []payment }
		hq.must("GET", "/v2/admin/branches/gangnam/payments?yearMonth="+time.Now().In(seoul).Format("2006-01"), nil, &month)
		return month.Payments
	}
	state := func(order string) string {
		for _, p := range payments() {
			if p.OrderID == order {
				return p.State
			}
		}
		return ""
	}
	of := func(order string) string {
		t.Helper()
		for _, p := range payments() {
			if p.OrderID == order {
				return p.ID
			}
		}
		t.Fatalf("no payment of order %s", order)
		return ""
	}
	cancel := func(order string) int {
		t.Helper()
		status, _ := hq.call("DELETE", "/admin/reservation/"+of(order)+"?bookingStatus=paid", map[string]string{
			"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "윤서아",
		}, nil)
		return status
	}
	failed := guest.deposited(s, 1, 30000, "01077770001", midnight.Add(12*time.Hour))
	foreign := guest.deposited(s, 3, 22000, "01077770003", midnight.Add(12*time.Hour))
	refused := guest.deposited(s, 2, 25000, "01077770002", midnight.Add(12*time.Hour))
	for _, order := range []string{failed, foreign, refused} {
		until(t, "the deposit is known", func() bool { return state(order) == "DONE" })
	}
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "refund", "kind": "error", "times": 1}, nil)
	if status := cancel(failed); status != http.StatusOK {
		t.Fatalf("cancelled: %d", status)
	}
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "cancel", "kind": "error", "times": 1, "status": 403, "code": "EXCEED_MAX_REFUND_DUE", "message": "환불 가능한 기간이 지났습니다."}, nil)
	if status := cancel(refused); status != http.StatusBadRequest {
		t.Fatalf("declined for good: %d", status)
	}
	chargeWithoutOrder(t, s, "order-of-nobody", 77000)

	manager := console(t, s, "gangnam-manager", "gangnam-demo") // whose accounts for other holders wait for the headquarters
	manager.open("/console/gangnam/day/" + date + "?r=" + of(foreign))
	manager.press("취소·환불")
	manager.choose("환불 은행", "우리")
	manager.fill("환불 계좌번호", "1002123456789")
	manager.fill("예금주", "다른사람")
	manager.press("취소하고 환불하기")
	manager.see("다른 관리자의 승인을 기다려요")

	p := console(t, s, "hq", "hq-demo")
	until(t, "the books compared", func() bool {
		hq.must("POST", "/v2/admin/reconciliation", nil, nil)
		p.open("/console/desk")
		p.see("처리할 돈", "예금주가 다름")
		return p.sees("order-of-nobody")
	})
	p.see("환불 실패", "환불 거절됨", "예약 없는 결제")
	p.survey("console-desk")
	p.on(desktop)

	p.pressIn("환불 실패", "환불 다시 시도")
	p.see("돌려드리지 못했어요")
	p.press("환불 다시 시도")
	p.see("환불을 시작했어요")

	p.pressIn("환불 거절됨", "직접 환불함")
	p.fill("환불 방법", "계좌 이체")
	p.fill("증빙(이체 번호 등)", "4711")
	p.press("기록하기")
	p.see("직접 환불을 기록했어요")

	p.pressIn("예약 없는 결제", "환불하기")
	p.see("예약이 없는 결제 금액을 모두 돌려줘요")
	p.survey("console-desk-orphan")
	p.on(desktop).press("환불하기")
	p.see("환불을 시작했어요")

	p.pressIn("예금주가 다름", "계좌 승인")
	p.see("다른 이름의 계좌예요")
	p.press("계좌 승인")
	p.see("환불을 시작했어요")

	until(t, "the bank has transferred everything", func() bool {
		for _, one := range payments() {
			hq.call("POST", "/v2/admin/reservations/"+one.ID+"/check", nil, nil)
		}
		var desk struct{ Items []struct{ Kind string } }
		hq.must("GET", "/v2/admin/money-desk", nil, &desk)
		return len(desk.Items) == 0
	})
	p.open("/console/desk")
	p.see("처리할 돈이 없어요")
}
