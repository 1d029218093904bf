package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// deny lets scripts use no storage on pages for which a condition in JavaScript holds, as in a browser that blocks site data.
func (p *page) deny(condition string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, protocol.AddScriptToEvaluateOnNewDocument, protocol.AddScriptToEvaluateOnNewDocumentParams{Source: `
		if (` + condition + `) for (const name of ["localStorage", "sessionStorage"])
			Object.defineProperty(window, name, { get() { throw new DOMException("Access is denied for this document.", "SecurityError"); } });
	`}); err != nil {
		p.t.Fatal(err)
	}
}

// TestPagesWithoutStorage: browsers that deny storage deny cookies as well, so neither a hold nor a login is possible there.
func TestPagesWithoutStorage(t *testing.T) {
	const needStorage = "이 브라우저는 예약과 로그인에 필요한 사이트 데이터를 저장하지 않아요."
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)

	t.Run("screens", func(t *testing.T) {
		p := first.another(t)
		p.expect("401 (Unauthorized)")
		p.deny("true")
		for _, c := range []struct{ path, text string }{
			{"/", "어느 지점으로 갈까요?"}, {"/b/gangnam", "언제 갈까요?"}, {"/book/receipt", "예약 내역을 찾을 수 없어요"},
			{"/my", needStorage}, {"/terms", "이용약관"}, {"/console", "관리자 로그인"},
		} {
			p.open(c.path)
			p.see(c.text)
		}
		p.on(desktop).enterConsole("hq", "hq-demo")
		p.see("예약")
	})

	// On a phone without space the worker can store nothing. No page may depend on it, least of all that of a key.
	t.Run("a full phone", func(t *testing.T) {
		p := first.another(t)
		full := storage.OverrideQuotaForOriginParams{Origin: s.Pages, QuotaSize: new(100.0)}
		if _, err := chromedp.Call(p.ctx, storage.OverrideQuotaForOrigin, full); err != nil {
			t.Fatal(err)
		}
		key := "/k/" + keyOfAdminReservation(t, s, "gangnam", 4, "01055553331")
		p.open(key)
		p.wait("the worker", `navigator.serviceWorker.controller`)
		p.wait("nothing is stored", `caches.open("full").then(c => c.put("/full", new Response("a".repeat(1000)))).then(() => false, () => window.full = true) && window.full`)
		for _, path := range []string{key, key + "?lang=ko"} {
			p.open(path)
			p.see("지금 열 수 있어요")
		}
		p.open("/terms")
		p.press("English")
		p.see("This is a translation")
	})

	t.Run("a choice ends with an explanation", func(t *testing.T) {
		p := first.another(t)
		p.deny("true")
		p.begin("오늘", "2번 룸")
		p.expect("401 (Unauthorized)")
		p.press("1시간", "원 예약하기")
		p.see("이렇게 예약할까요?")
		p.press("예약하고 결제하기")
		p.see(needStorage)
		p.notHeld()
	})

	// A view within an app may keep storage and refuse cookies.
	t.Run("without cookies", func(t *testing.T) {
		p := first.another(t)
		p.expect("401 (Unauthorized)")
		if _, err := chromedp.Call(p.ctx, emulation.SetDocumentCookieDisabled, emulation.SetDocumentCookieDisabledParams{Disabled: true}); err != nil {
			t.Fatal(err)
		}
		p.open("/my")
		p.see(needStorage)
		p.begin("내일", "5번 룸")
		p.press("1시간", "원 예약하기", "예약하고 결제하기")
		p.see(needStorage)
		p.notHeld()
	})

	t.Run("a confirmed payment leads to the receipt", func(t *testing.T) {
		p := first.another(t)
		p.deny(`location.pathname === "/book/confirm"`)
		p.begin("오늘", "3번 룸")
		p.press("1시간")
		p.reserve()
		p.introduce("010-3456-7890")
		p.pay(s, "카드")
		p.at("/book/receipt")
		p.see("예약이 확정됐어요")
	})
}
