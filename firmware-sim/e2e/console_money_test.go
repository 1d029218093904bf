package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// ordered registers a purchase and authenticates its payment. It returns the body of the confirmation.
func (b *browser) ordered(s *world.Stack, room, amount int, mobile string, start time.Time, method string) map[string]any {
	b.t.Helper()
	b.must("POST", "/reservation", map[string]any{"branch": "gangnam", "room": room, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
	var registered struct {
		OrderID string `json:"orderId"`
	}
	b.must("POST", "/payment", map[string]any{"amount": amount, "name": "윤서아", "mobileNum": mobile}, &registered)
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	postJSON(b.t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": registered.OrderID, "amount": amount, "method": method, "bank": "20"}, &payment)
	return map[string]any{"paymentKey": payment.PaymentKey, "orderId": registered.OrderID, "amount": amount}
}

// issued buys a room by virtual account and returns the order id.
func (b *browser) issued(s *world.Stack, room, amount int, mobile string, start time.Time) (order string) {
	b.t.Helper()
	confirm := b.ordered(s, room, amount, mobile, start, "가상계좌")
	b.must("POST", "/payment/confirm", confirm, nil)
	return confirm["orderId"].(string)
}

// deposited buys a room by virtual account, makes the deposit and returns the order id.
func (b *browser) deposited(s *world.Stack, room, amount int, mobile string, start time.Time) (order string) {
	b.t.Helper()
	order = b.issued(s, room, amount, mobile, start)
	postJSON(b.t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
	return order
}

// TestConsoleMoney checks the money screen of a branch: failed refunds can be retried, with another account if the first was
// wrong; an administrator resolves a payment that exists only at the provider; lists can be downloaded as files.
func TestConsoleMoney(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	p := console(t, s, "hq", "hq-demo")
	guest := newBrowser(t, s)
	for i, room := range []int{1, 2} {
		guest.deposited(s, room, []int{30000, 25000}[i], "01077778888", midnight.Add(12*time.Hour))
	}
	newBrowser(t, s).buy(s, "gangnam", 3, 22000, "01012121212")

	// Both reservations are cancelled, and the bank cannot execute either refund.
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "refund", "kind": "error", "times": 2}, nil)
	p.open("/console/gangnam/day/" + date)
	for _, room := range []string{"1", "2"} {
		block := fmt.Sprintf(`[...[...document.querySelectorAll(".lane")][%s - 1].querySelectorAll(".block.paid")].find(b => b.innerText.includes("윤서아"))`, room)
		p.wait("the paid reservation in room "+room, block)
		value[bool](p, `(`+block+`.click(), true)`)
		p.press("취소·환불")
		p.see("취소하고 환불")
		p.choose("환불 은행", "우리")
		p.fill("환불 계좌번호", map[string]string{"1": "1002 123 456789", "2": "1002-123-456789"}[room])
		p.fill("예금주", "윤서아")
		if room == "1" {
			p.survey("console-refund")
			p.on(desktop)
		}
		p.press("취소하고 환불하기")
		p.see("환불을 시작했어요")
		p.press("닫기")
	}

	p.open("/console/gangnam/money")
	p.see("실패 2건")
	p.survey("console-money-failed")
	p.on(desktop)

	retry := func(amount string) {
		t.Helper()
		value[bool](p, `([...document.querySelectorAll("tr")].find(r => r.innerText.includes(`+quoted(amount)+`) && r.innerText.includes("환불 다시 시도")).querySelector("button").click(), true)`)
		p.see("돌려드리지 못했어요")
	}
	retry("30,000원") // with the same account
	p.press("환불 다시 시도")
	p.see("환불을 시작했어요")
	retry("25,000원") // with another account, at first without its bank
	p.expect("400")
	p.fill("환불 계좌번호", "999-888-777")
	p.fill("예금주", "윤서아")
	p.press("환불 다시 시도")
	p.see("환불 은행(refundReceiveAccountBank) 값은 필수입니다.")
	p.choose("환불 은행", "국민")
	p.survey("console-refund-again")
	p.on(desktop).press("환불 다시 시도")
	p.see("진행 중인 환불이 없어요", "환불 합계 55,000원", "저절로 맞춰짐")
	p.wait("nothing is left to settle", `!document.body.innerText.includes("처리 완료로 표시")`)

	t.Run("a file", func(t *testing.T) {
		p := p.with(t)
		name, content := p.download("CSV 내려받기")
		if !strings.HasPrefix(name, "gangnam-20") || !strings.HasSuffix(name, ".csv") {
			t.Errorf("name %s", name)
		}
		if lines := strings.Split(strings.TrimSpace(content), "\r\n"); !strings.HasPrefix(content, "\ufeff지점,예약번호,결제일시") || len(lines) != 4 || !strings.Contains(content, "홍길동") || !strings.Contains(content, "22000,20000,2000,결제 완료") {
			t.Errorf("%d lines: %s", len(lines), content)
		}
		p.date("달", "2026-01")
		p.see("이 달의 결제가 없어요")
	})

	t.Run("a difference", func(t *testing.T) {
		p := p.with(t)
		// The provider has a payment that the service does not know, as after the restore of an older database.
		const order = "lost-order-20261121"
		chargeWithoutOrder(t, s, order, 77000)
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		until(t, "the books compared", func() bool {
			hq.must("POST", "/v2/admin/reconciliation", nil, nil)
			p.open("/console/gangnam/money")
			p.see("대사 차이")
			p.wait("the money", `!document.querySelector(".loading")`)
			return p.sees(order)
		})
		p.see("우리에게 없는 주문의 돈", "77000 won")
		p.survey("console-difference")
		p.on(desktop).press("처리 완료로 표시")
		p.fill("처리 내용", "상점관리자에서 환불함")
		p.survey("console-difference-resolve")
		p.on(desktop).press("처리 완료로 표시")
		p.see("처리했어요", "상점관리자에서 환불함")
		p.open("/console/gangnam/audit")
		p.see("차이 처리", "환불 재시도", "결제 내역 내려받기")
	})
}
