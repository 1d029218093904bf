package e2e

import (
	"testing"
	"time"
)

// The answer to a refund is lost and the administrator closes the dialog. The same draft sent again is the same refund.
func TestConsoleRefundOfALostAnswer(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	p := console(t, s, "hq", "hq-demo")
	order := newBrowser(t, s).purchase(s, "gangnam", 1, 30000, "01077779999", "카드", midnight.Add(12*time.Hour))
	p.open("/console/gangnam/day/" + date)
	const block = `[...document.querySelectorAll(".lane")][0].querySelector(".block.paid")`
	p.wait("the paid reservation", block)
	value[bool](p, `(`+block+`.click(), true)`)
	p.press("부분 환불")
	p.fill("환불 금액(원)", "5,000")
	p.fill("환불 사유", "소음")
	value[bool](p, `(() => {
		const real = fetch;
		window.fetch = async (...call) => {
			const answer = await real(...call);
			if (!String(call[0]).includes("/refunds")) return answer;
			window.fetch = real;
			throw new TypeError("lost");
		};
		return true;
	})()`)
	p.press("환불하기")
	p.see("연결")
	p.press("돌아가기", "부분 환불")
	p.see("저장하지 않은 내용을 다시 불러왔어요")
	p.press("환불하기")
	p.see("환불을 시작했어요")
	for _, payment := range payments(t, s, order) {
		if payment.BalanceAmount != 25000 {
			t.Errorf("balance at the provider %d, want 25000: one refund of 5000", payment.BalanceAmount)
		}
	}
}

// An administrator refunds a part in the console, and the stay remains; then he records a refund by hand, and the stay ends.
func TestConsoleRefunds(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	p := console(t, s, "hq", "hq-demo")
	newBrowser(t, s).deposited(s, 1, 30000, "01077778888", midnight.Add(12*time.Hour))
	p.open("/console/gangnam/day/" + date)
	const block = `[...document.querySelectorAll(".lane")][0].querySelector(".block.paid")`
	p.wait("the paid reservation", block)
	value[bool](p, `(`+block+`.click(), true)`)
	p.press("부분 환불")
	p.see("예약과 열쇠는 그대로예요")
	p.fill("환불 금액(원)", "5,000")
	p.fill("환불 사유", "소음")
	p.choose("환불 은행", "우리")
	p.fill("환불 계좌번호", "1002-123-456789")
	p.fill("예금주", "윤서아")
	p.press("환불하기")
	p.see("환불을 시작했어요")
	var payments struct {
		Payments []struct{ BalanceAmount, TotalAmount int }
	}
	getJSON(t, s.SandboxAt+"/sandbox/payments", &payments)
	if len(payments.Payments) != 1 || payments.Payments[0].BalanceAmount != 25000 {
		t.Errorf("at the provider: %+v, want a balance of 25000", payments)
	}
	p.see("환불 · 완료")
	p.press("직접 환불함")
	p.see("예약은 취소되고 룸이 비워져요")
	p.fill("환불 방법", "계좌 이체")
	p.fill("증빙(이체 번호 등)", "4711")
	p.press("기록하기")
	p.see("직접 환불을 기록했어요")
}

// The dialogs name the sum that is returned: with the extension, without the part that was refunded before. The share that the provider
// refunds is not to be returned by hand.
func TestConsoleNamesTheSumReturned(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	guest := newBrowser(t, s)
	order := guest.purchase(s, "gangnam", 1, 30000, "01077779999", "카드", midnight.Add(12*time.Hour))
	var extension struct {
		OrderID string
		Amount  int
	}
	guest.must("POST", "/v2/keys/"+keyFor(t, s, "01077779999")+"/extension", map[string]string{"endDateTime": wireTime(midnight.Add(13*time.Hour + 10*time.Minute))}, &extension)
	var payment struct{ PaymentKey string }
	postJSON(t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": extension.OrderID, "amount": extension.Amount, "method": "카드", "bank": "20"}, &payment)
	guest.must("POST", "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": extension.OrderID, "amount": extension.Amount}, nil)

	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	const block = `[...document.querySelectorAll(".lane")][0].querySelector(".block.paid")`
	p.wait("the paid reservation", block)
	value[bool](p, `(`+block+`.click(), true)`)
	p.see("36,000원 (연장 6,000원 포함)")
	p.press("취소·환불")
	p.see("예약을 취소하고 36,000원을 돌려드려요")
	p.press("돌아가기", "부분 환불")
	p.fill("환불 금액(원)", "12,000")
	p.fill("환불 사유", "소음")
	p.press("환불하기")
	p.see("24,000원 (연장 6,000원 포함)")
	p.wait("the card of the stay with its balance", `(() => {
		`+block+`.dispatchEvent(new PointerEvent("pointerover", {bubbles: true, pointerType: "mouse"}));
		return document.querySelector(".blockcard:not([hidden])")?.innerText.includes("24,000원") })()`)
	p.press("시간·룸 변경")
	p.choose("시작", "15:00")
	p.see("새 시간의 가격은 36,000원이고, 차액 12,000원은 받지 않아요")
	p.press("돌아가기", "직접 환불함")
	p.see("남은 18,000원을", "연장한 금액 6,000원은 결제사를 통해 따로 환불돼요")
	p.press("돌아가기", "취소·환불")
	p.see("예약을 취소하고 24,000원을 돌려드려요")
	p.press("취소하고 환불하기")
	p.see("환불을 시작했어요")
	until(t, "the provider has returned all", func() bool { return returnedBy(t, s, order) == 30000 && returnedBy(t, s, extension.OrderID) == 6000 })
}
