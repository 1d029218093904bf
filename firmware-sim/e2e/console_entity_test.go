package e2e

import (
	"strings"
	"testing"
)

// The head quarters add a legal entity and make it sell at a branch. The guest's payment page names it, and the payment is made
// with its key.
func TestConsoleEntities(t *testing.T) {
	t.Parallel()
	s := startStack(t, company)
	hq := console(t, s, "hq", "hq-demo")
	hq.on(desktop).open("/console/company")
	hq.press("사업자 추가")
	hq.fill("사업자 코드", "seoul")
	hq.fill("상호", "주식회사 서울")
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
	guest.reserve()
	guest.introduce("01012345678")
	guest.see("판매 사업자: 주식회사 서울")
	guest.judge("payment to another entity")
	guest.pay(s, "카드")
	guest.see("예약이 확정됐어요")
	var found struct {
		Payments []struct{ MID string }
		Foreign  []any
	}
	getJSON(t, s.SandboxAt+"/sandbox/payments", &found)
	getJSON(t, s.SandboxAt+"/sandbox/ledger", &found)
	if len(found.Payments) != 1 || !strings.HasSuffix(found.Payments[0].MID, "02") || len(found.Foreign) != 0 {
		t.Errorf("at the provider: %+v, want one payment of merchant 2", found)
	}
}
