package e2e

import (
	"path/filepath"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// ageSessions moves the login of every session into the past, as if it had been open for years.
func ageSessions(t *testing.T, s *world.Stack) {
	t.Helper()
	db := database(t, s)
	if _, err := db.Exec(t.Context(), `update session set data = data - 'confirmedAt' || '{"startedAt": "2020-01-01T00:00:00Z"}'`); err != nil {
		t.Fatal(err)
	}
}

// TestConsoleConfirmation exports files long after the login: the console asks for the password and continues.
func TestConsoleConfirmation(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_STEP_UP_AFTER": "1h"})
	p := console(t, s, "hq", "hq-demo")
	p.expect("401", "403")
	ageSessions(t, s)

	p.open("/console/settlement")
	p.press("CSV 내려받기")
	p.see("본인 확인", "환불, 내려받기, 출입 비밀번호 보기는 본인 확인이 필요해요")
	p.survey("console-confirm")
	p.on(desktop).fill("지금 비밀번호", "wrong")
	p.press("확인")
	p.see("아이디 또는 비밀번호가 올바르지 않습니다")
	p.fill("지금 비밀번호", "hq-demo")
	if name, content := p.download("확인"); filepath.Ext(name) != ".csv" || content == "" {
		t.Errorf("the file %s holds %q", name, content)
	}
	p.wait("no dialog", `!document.querySelector("dialog[open]")`)

	ageSessions(t, s)
	p.open("/console/people")
	p.fill("휴대폰 번호 또는 이메일", "01012345678")
	p.press("내보내기")
	p.see("본인 확인")
	p.fill("지금 비밀번호", "hq-demo")
	if name, _ := p.download("확인"); name != "personal-data.json" {
		t.Errorf("the file is %s", name)
	}
}
