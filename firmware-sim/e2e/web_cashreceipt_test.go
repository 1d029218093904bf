package e2e

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebCashReceipt: a guest asks for a cash receipt when paying by deposit. It is issued after the deposit, shown on the pages,
// and canceled with the refund; in English, no text of the form is Korean.
func TestWebCashReceipt(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	issued := func() (types []string) {
		var found struct {
			CashReceipts []struct {
				TransactionType string
				Amount          int
			}
		}
		getJSON(t, s.SandboxAt+"/sandbox/cash-receipts", &found)
		for _, r := range found.CashReceipts {
			if r.Amount == 22000 {
				types = append(types, r.TransactionType)
			}
		}
		return types
	}
	p := newPage(t, s.Pages)
	p.expect("401 (Unauthorized)")
	const mobile = "01023456789"

	p.begin("내일", "3번 룸")
	p.press("1시간")
	p.reserve()
	p.press("English")
	p.see("Cash receipt (for a bank transfer)")
	p.choose("Cash receipt (for a bank transfer)", "Business expense")
	p.see("Number for the cash receipt", "passes it on to the tax office")
	p.fill("Number for the cash receipt", "123")
	p.press("Choose how to pay")
	p.see("Please check the 10 digits of the business registration number.")
	p.look("contact-receipt-en", phone)
	p.on(phone).press("한국어")
	p.see("누구 이름으로 예약할까요?")
	p.choose("현금영수증 (계좌로 입금할 때)", "개인 소득공제")
	p.see("현금영수증을 받을 번호")
	p.fill("현금영수증을 받을 번호", mobile)
	p.look("contact-receipt", phone, narrow)
	p.on(phone).introduce(mobile)
	p.pay(s, "가상계좌")
	p.see("입금하면 예약이 확정돼요", "현금영수증", "발급할 예정이에요")
	if types := issued(); len(types) != 0 {
		t.Errorf("%v before the deposit", types)
	}
	postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": p.lastOrder(s)}, nil)
	p.see("예약이 확정됐어요", "현금영수증", "010****789")
	until(t, "the cash receipt is issued", func() bool { return len(issued()) == 1 })

	p.open("/login")
	p.logIn(s, mobile)
	p.see("결제 완료")
	until(t, "the page shows the cash receipt as issued", func() bool {
		p.press("새로고침")
		return p.sees("발급했")
	})
	p.look("my-receipt", phone, narrow)
	p.on(phone).press("예약 취소")
	p.see("어디로 돌려드릴까요?")
	p.press("기타")
	p.choose("은행", "토스뱅크")
	p.fill("계좌번호", "100012345678")
	p.fill("예금주", "홍길동")
	p.press("취소하기")
	p.see("정말 취소할까요?")
	p.press("취소하기")
	p.see("예약을 취소했어요", "22,000원")
	until(t, "the cash receipt is canceled", func() bool { return len(issued()) == 2 })
	if types := issued(); types[0] != "CONFIRM" || types[1] != "CANCEL" {
		t.Errorf("at the tax office: %v, want an issue and its cancellation", types)
	}
	p.open("/my")
	p.press("지난 예약")
	until(t, "the page shows the cash receipt as canceled", func() bool {
		p.press("새로고침")
		return p.sees("취소했어요")
	})
}
