package e2e

import (
	"fmt"
	"testing"
)

// TestConsoleRollout updates the connected agents in waves while that of one branch is away, and stops by hand: the previous version
// returns. Resumed, it continues with the same agents. A version that does worse stops at the first wave by itself. The last one
// ends without the branch that is away.
func TestConsoleRollout(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam", "hongdae")
	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/rollout")
	hq.see("아직 배포한 적이 없어요.")
	begin := func(version string) {
		hq.press("배포 시작")
		hq.fill("버전", version)
		hq.fill("지켜보는 시간(분)", "0.1")
		hq.press("배포 시작")
	}
	agents := func(n int, state string) {
		t.Helper()
		hq.wait(fmt.Sprintf("%d agents %s", n, state),
			fmt.Sprintf(`[...document.querySelectorAll("td .chip")].filter(e => e.innerText === %q).length === %d`, state, n))
	}
	begin("2.0.0")
	hq.see("버전 2.0.0", "배포 중", "1 (1%)")
	agents(2, "정상")
	agents(1, "대기")
	hq.survey("console-rollout")
	hq.on(desktop).press("배포 중지")
	hq.see("이전 버전으로 되돌릴까요?")
	hq.press("배포 중지")
	hq.see("배포를 멈췄어요", "중지됨")
	agents(2, "되돌림")
	hq.press("이어서 배포")
	hq.see("멈춘 단계부터 이어서 배포할까요?")
	hq.press("이어서 배포")
	hq.see("배포를 이어서 하고 있어요.", "배포 중")
	agents(2, "정상")
	hq.press("배포 중지")
	hq.press("배포 중지")
	hq.see("중지됨")
	agents(2, "되돌림")

	begin("2.1.0+broken")
	hq.see("버전 2.1.0+broken", "중지됨", "1 failed self-tests, before 0")
	agents(1, "되돌림")
	agents(2, "대기")

	begin("2.2.0")
	agents(2, "정상")
	hq.press("연결 끊긴 장치 빼기")
	hq.see("뺀 장치는 지금 버전을 그대로 쓰고")
	hq.press("연결 끊긴 장치 빼기")
	hq.see("버전 2.2.0", "완료")
	agents(1, "제외")
}
