package e2e

import "testing"

// The headquarters checks the rules: they hold.
func TestConsoleProof(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/proof")
	hq.see("매일의 증명")
	hq.press("지금 확인")
	hq.see("모든 규칙이 지켜졌어요")
	hq.survey("console-proof")
}
