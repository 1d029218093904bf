package e2e

import "testing"

// The headquarters creates and revokes a token, and adds and removes a receiver of events. Each secret is shown once.
func TestConsoleIntegrations(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_WEBHOOK_ALLOW": "127.0.0.0/8"})
	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/integrations")
	hq.see("토큰 만들기", "받는 주소 추가")
	hq.survey("console-integrations")
	hq.on(desktop).press("토큰 만들기")
	hq.fill("프로그램 이름", "erp")
	hq.survey("console-token-add")
	hq.on(desktop).press("저장")
	hq.see("이 토큰은 지금만 볼 수 있어요.")
	hq.press("돌아가기")
	hq.see("erp", "조회")
	hq.press("해제 erp")
	hq.see("이 프로그램은 바로 접근할 수 없게 돼요.")
	hq.press("삭제")
	hq.wait("the token to disappear", `![...document.querySelectorAll("td")].some(e => e.innerText === "erp")`)

	hq.press("받는 주소 추가")
	hq.fill("주소", "http://127.0.0.1:1/hook")
	hq.survey("console-webhook-add")
	hq.on(desktop).press("저장")
	hq.see("이 값은 지금만 볼 수 있어요.")
	hq.press("돌아가기")
	hq.see("http://127.0.0.1:1/hook")
	hq.press("정지 http://127.0.0.1:1/hook")
	hq.see("정지됨")
	hq.press("삭제 http://127.0.0.1:1/hook")
	hq.press("삭제")
	hq.wait("the receiver to disappear", `![...document.querySelectorAll("td")].some(e => e.innerText.includes("127.0.0.1"))`)
}
