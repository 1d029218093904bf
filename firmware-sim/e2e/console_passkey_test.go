package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// authenticate gives the browser an authenticator that verifies its user, as a laptop with a fingerprint reader does.
func (p *page) authenticate() {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	_, err := chromedp.Call(p.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true,
		HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestConsolePasskeys adds a passkey in a browser, logs in with it, confirms the identity with it, and removes it.
func TestConsolePasskeys(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_STEP_UP_AFTER": "1h"})
	address, err := url.Parse(s.Pages)
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, "http://localhost:"+address.Port()).on(desktop) // browsers make no passkey for an IP address
	p.expect("401", "403")
	p.authenticate()
	p.enterConsole("gangnam-manager", "gangnam-demo")

	p.open("/console/account")
	p.see("패스키", "지문, 얼굴, 기기 암호로")
	p.fill("패스키 이름", "매장 노트북")
	value[bool](p, `([...document.querySelectorAll("input[type=password]")].at(-1).focus(), true)`)
	p.keys("gangnam-demo")
	p.press("패스키 추가")
	p.see("패스키를 추가했어요")
	p.wait("the list", `document.querySelector("main").innerText.includes("매장 노트북")`)
	p.survey("console-passkeys")

	// The form for another one stays as it is while the list changes: what is typed meanwhile is not lost.
	p.on(desktop).fill("패스키 이름", "매장 노트북")
	value[bool](p, `(document.activeElement.dataset.stays = "yes", true)`)

	// The password alone is not enough to remove it, and there is no authenticator app.
	p.press("삭제 매장 노트북")
	p.see("패스키 삭제")
	value[bool](p, `(document.querySelector("dialog input[type=password]").focus(), true)`)
	p.keys("gangnam-demo")
	value[bool](p, `(document.querySelector("dialog button[type=submit]").click(), true)`)
	p.see("복구 코드도 쓸 수 있어요")
	p.wait("the focus on the code", `document.activeElement.autocomplete === "one-time-code"`)
	p.press("패스키로 확인")
	p.see("패스키를 지웠어요")
	p.see("내용이 없어요")
	if typed := value[string](p, `document.querySelector("[data-stays]")?.value ?? "another field"`); typed != "매장 노트북" {
		t.Errorf("the field for a name holds %q after the list has changed", typed)
	}
	value[bool](p, `([...document.querySelectorAll("input[type=password]")].at(-1).focus(), true)`)
	p.keys("gangnam-demo")
	p.press("패스키 추가")
	p.wait("the list again", `document.querySelector("main").innerText.includes("매장 노트북")`)

	p.press("로그아웃")
	p.logInto("gangnam-manager", "gangnam-demo") // the password alone is not enough any more
	p.see("2단계 인증이 켜져 있어요")
	p.press("패스키로 로그인")
	p.see("예약 현황")

	ageSessions(t, s)
	p.open("/console/settlement")
	p.press("CSV 내려받기")
	p.see("본인 확인")
	if name, content := p.download("패스키로 확인"); !strings.HasSuffix(name, ".csv") || content == "" {
		t.Errorf("the file %s holds %q", name, content)
	}

	p.open("/console/account")
	p.press("삭제 매장 노트북")
	p.see("패스키 삭제")
	value[bool](p, `(document.querySelector("dialog input[type=password]").focus(), true)`)
	p.keys("gangnam-demo")
	value[bool](p, `(document.querySelector("dialog button[type=submit]").click(), true)`)
	p.see("패스키를 지웠어요")
	p.press("로그아웃")
	p.logInto("gangnam-manager", "gangnam-demo")
	p.see("예약 현황")
}
