package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// cancelAtProvider cancels a deposit in the provider's dashboard, to an account of the guest.
func cancelAtProvider(t *testing.T, s *world.Stack, order string) {
	t.Helper()
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	askProvider(t, s, http.MethodGet, "/v1/payments/orders/"+order, nil, &payment)
	askProvider(t, s, http.MethodPost, "/v1/payments/"+payment.PaymentKey+"/cancel", map[string]any{
		"cancelReason":         "고객 요청",
		"refundReceiveAccount": map[string]string{"bank": "20", "accountNumber": "1002123456789", "holderName": "윤서아"},
	}, nil)
}

// TestConsoleDeskUnclear ends two kinds of money in the console alone: a purchase whose payment the provider does not answer
// for 15 minutes, while the guest waits in front of the page, and a deposit that was canceled in the provider's dashboard and
// whose transfer the bank rejected.
func TestConsoleDeskUnclear(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	_, midnight := dayAfter()
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	fault := func(target, kind string, status, times int) {
		t.Helper()
		postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": target, "kind": kind, "times": times, "status": status}, nil)
	}
	type item struct{ Kind, OrderID, ReservationID string }
	desk := func(kind string) (found []item) {
		t.Helper()
		var list struct{ Items []item }
		hq.must("GET", "/v2/admin/money-desk", nil, &list)
		for _, i := range list.Items {
			if kind == "" || i.Kind == kind {
				found = append(found, i)
			}
		}
		return found
	}

	guest := newPage(t, s.Pages)
	guest.expect("503", "400", "401")
	guest.begin("내일", "2번 룸")
	guest.reserve()
	guest.introduce("01077770021")
	fault("confirm", "drop-after-commit", 0, 1)
	fault("get", "error", http.StatusServiceUnavailable, -1)
	guest.pay(s, "카드")
	guest.see("결제 결과를 확인하고 있어요")
	order := guest.lastOrder(s)
	db := database(t, s)
	// The 15 minutes pass.
	if _, err := db.Exec(t.Context(), `update payment set attempted_at = attempted_at - interval '16 minutes'
		where reservation_id = (select id from reservation where order_id = $1)`, order); err != nil {
		t.Fatal(err)
	}

	p := console(t, s, "hq", "hq-demo")
	until(t, "the purchase is at the money desk", func() bool { return len(desk("unclear")) == 1 })
	reservation := desk("unclear")[0].ReservationID
	p.open("/console/desk")
	p.see("결과를 모름", "25,000원")
	p.survey("console-desk-unclear")
	p.on(desktop)
	p.away(`document.querySelector("tr a[href*='r=` + reservation + `']").click()`)
	p.see("고객이 예약 시작")
	p.press("취소")
	p.see("결제 결과를 결제사가 알려 주지 않고 있어요", "나중에 확인되면 모두 환불하고")
	p.press("예약 취소하기")
	p.see("취소했어요")
	p.open("/console/desk")
	p.see("처리할 돈이 없어요")
	guest.see("결제를 확인하고 있어요")
	if guest.sees("결제는 되지 않았어요") {
		t.Error("the page claims that nothing was charged, and the provider has not answered")
	}
	requestJSON(t, http.MethodDelete, s.SandboxAt+"/sandbox/faults", nil, nil)
	hq.call("POST", "/v2/admin/reservations/"+reservation+"/check", nil, nil)
	until(t, "the money is returned", func() bool { return payments(t, s, order)[0].Status == "CANCELED" })
	guest.see("결제 금액을 돌려드려요", "결제된 금액은 모두 환불되고")
	guest.look("confirm-ended", phone)
	guest.on(phone).press("English")
	guest.see("Your payment is refunded", "Book again")
	if guest.sees("Pay again") {
		t.Error("the guest may pay for a reservation that has ended")
	}
	var list struct{ Messages []struct{ Text string } }
	until(t, "the guest's message", func() bool {
		getJSON(t, s.SandboxAt+"/sandbox/messages?to=01077770021", &list)
		return len(list.Messages) > 0
	})
	if len(list.Messages) != 1 {
		t.Errorf("%d messages to the guest, want 1: %+v", len(list.Messages), list.Messages)
	}

	deposited := newBrowser(t, s).deposited(s, 3, 22000, "01077770022", midnight.Add(12*time.Hour))
	until(t, "the deposit is known", func() bool {
		var month struct {
			Payments []struct{ OrderID, State string }
		}
		hq.must("GET", "/v2/admin/branches/gangnam/payments?yearMonth="+time.Now().In(seoul).Format("2006-01"), nil, &month)
		for _, one := range month.Payments {
			if one.OrderID == deposited && one.State == "DONE" {
				return true
			}
		}
		return false
	})
	fault("refund", "error", 0, 1)
	cancelAtProvider(t, s, deposited)
	until(t, "the rejected transfer is at the money desk", func() bool {
		hq.call("POST", "/v2/admin/reconciliation", nil, nil)
		return len(desk("failed")) == 1
	})
	p.open("/console/desk")
	p.see("환불 실패", "22,000원")
	p.pressIn("환불 실패", "환불 다시 시도")
	p.choose("환불 은행", "국민")
	p.fill("환불 계좌번호", "999-888-777")
	p.fill("예금주", "윤서아")
	p.press("환불 다시 시도")
	p.see("환불을 시작했어요")
	until(t, "nothing waits for a person", func() bool { return len(desk("")) == 0 })
	p.open("/console/desk")
	p.see("처리할 돈이 없어요")
}
