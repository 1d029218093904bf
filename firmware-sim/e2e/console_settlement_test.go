package e2e

import (
	"strings"
	"testing"
)

// TestConsoleSettlement opens the settlement of the month: sums over all branches, the days of one branch, and both files.
func TestConsoleSettlement(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01012340002")
	newBrowser(t, s).buy(s, "gangnam", 3, 22000, "01012340003")
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/overview")
	p.press("정산")
	p.at("/console/settlement")
	// 3.2 % of each payment, whole won, and a tenth of it as VAT.
	p.see("결제 47,000원", "환불 0원", "수수료 1,504원", "수수료 부가세 150원", "정산 금액 45,346원")
	p.survey("console-settlement")
	p.on(desktop).press("열다 강남점")
	p.see("결제 수단", "지급일")
	p.wait("one line of the day", `document.querySelectorAll("main tbody tr").length === 1 && document.querySelector("main tbody tr").innerText.includes("카드")`)
	p.wait("the focus is on the choice of branches", `document.activeElement.tagName === "SELECT"`)
	p.survey("console-settlement-branch")
	p.on(desktop)
	name, content := p.download("CSV 내려받기")
	if !strings.HasPrefix(name, "settlement-") || !strings.Contains(content, "gangnam,") || !strings.Contains(content, "합계,,,47000,0,0,1504,150,45346,") {
		t.Errorf("%s: %s", name, content)
	}
	if name, content := p.download("엑셀 내려받기"); !strings.HasSuffix(name, ".xlsx") || !strings.HasPrefix(content, "PK") {
		t.Errorf("%s is not a workbook: %.40q", name, content)
	}
	p.date("달", "2020-01")
	p.see("이 달에 정산할 내역이 없어요", "결제 0원")
	p.open("/console/settlement")
	p.wait("the line of a branch", `document.querySelector("main tbody button") !== null`)
	value[bool](p, `(document.querySelector("main tbody button").textContent = "긴".repeat(100), true)`)
	for _, s := range []screen{narrow, desktop} {
		p.on(s).fits("a branch with the longest name on " + s.name)
	}
	// A phone prints the narrow layout, whose bar would cover the same lines of each sheet.
	p.on(narrow).paper("print")
	p.wait("nothing fixed on paper", `[...document.querySelectorAll("body *")].every(e => !e.checkVisibility() || e.offsetHeight === 0 || !/fixed|sticky/.test(getComputedStyle(e).position))`)
	p.paper("")
	p.on(desktop).open("/console/gangnam/audit")
	p.see("정산 내역 내려받기")
}
