package e2e

import (
	"strings"
	"testing"
)

// The headquarters add a legal entity and make it sell at a branch. The branch's pages and the payment page name it, the payment
// is made with its key, and the settlement has its sums.
func TestConsoleEntities(t *testing.T) {
	t.Parallel()
	s := startStack(t, company)
	newBrowser(t, s).buy(s, "gangnam", 3, 22000, "01012340003")
	hq := console(t, s, "hq", "hq-demo")
	hq.on(desktop).open("/console/company")
	hq.press("사업자 추가")
	hq.fill("사업자 코드", "seoul")
	hq.fill("상호", "주식회사 서울")
	hq.fill("사업자등록번호", "123-45-67890")
	hq.fill("클라이언트 키", "test_gck_yeolda_demo_2")
	hq.fill("결제위젯 시크릿 키", "test_gsk_yeolda_demo_2")
	hq.fill("API 개별 연동 시크릿 키", "test_sk_yeolda_demo_2")
	hq.survey("console-entity")
	hq.on(desktop).press("저장")
	hq.see("주식회사 서울", "지점별 판매 사업자")
	hq.choose("열다 강남점", "seoul")
	hq.press("지점별 판매 사업자 저장")
	hq.see("저장했어요")
	hq.survey("console-entities")

	guest := newPage(t, s.Pages)
	guest.begin("내일", "2번 룸")
	guest.wantFooter("주식회사 서울", "123-45-67890")
	guest.settle()
	guest.judge("rooms of another entity")
	guest.reserve()
	guest.wantFooter("주식회사 서울", "123-45-67890")
	guest.introduce("01012345678")
	guest.see("판매 사업자: 주식회사 서울")
	guest.wait("the payment is ready", `!document.querySelector(".actions .button").disabled`)
	guest.settle()
	guest.judge("payment to another entity")
	guest.pay(s, "카드")
	guest.see("예약이 확정됐어요")
	guest.wantFooter("주식회사 서울", "123-45-67890")
	guest.open("/")
	guest.see("주식회사 열다")
	guest.wantFooter("주식회사 열다", "000-00-00000")
	guest.open("/b/hongdae")
	guest.see("언제 갈까요?")
	guest.wantFooter("주식회사 열다", "000-00-00000")
	var found struct {
		Payments []struct{ MID string }
		Foreign  []any
	}
	getJSON(t, s.SandboxAt+"/sandbox/payments", &found)
	getJSON(t, s.SandboxAt+"/sandbox/ledger", &found)
	if len(found.Payments) != 2 || !strings.HasSuffix(found.Payments[0].MID, "01") || !strings.HasSuffix(found.Payments[1].MID, "02") || len(found.Foreign) != 0 {
		t.Errorf("at the provider: %+v, want one payment of each merchant", found)
	}

	hq.on(desktop).press("정산")
	hq.see("결제 47,000원", "판매 사업자", "주식회사 열다", "주식회사 서울")
	hq.survey("console-settlement-entities")
	hq.on(desktop).press("주식회사 서울")
	hq.see("결제 25,000원", "모든 사업자 보기")
	name, content := hq.download("CSV 내려받기")
	if !strings.HasPrefix(name, "settlement-") || !strings.Contains(content, "합계,,,25000,") || strings.Contains(content, "22000") {
		t.Errorf("%s: %s", name, content)
	}
	hq.press("모든 사업자 보기")
	hq.see("결제 47,000원")
}

// wantFooter waits for the footer of a page to name a legal entity and its registration number.
func (p *page) wantFooter(name, number string) {
	p.t.Helper()
	p.wait("the footer names "+name, `((text) => text.includes(`+quoted(name)+`) && text.includes(`+quoted(number)+`))(document.querySelector("footer").innerText)`)
}
