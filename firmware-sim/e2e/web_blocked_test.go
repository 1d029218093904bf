package e2e

import (
	"testing"

	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebBlockedPaymentForm: something between the guest and the provider keeps the payment form away. The page says what the guest can do, and
// the next attempt succeeds once nothing is in the way.
func TestWebBlockedPaymentForm(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	for room, c := range map[string]struct{ name, script string }{
		// A filter, or the login page of a network, answers with a page instead of the script.
		"2": {"an answer that is not the script", `Object.defineProperty(window, "TossPayments", {configurable: true, get() {}, set() {}}); window.unblock = () => delete window.TossPayments`},
		// A blocked frame never becomes ready. Its limit passes at once.
		"3": {"a frame that is never ready", `
			let toss, blocked = true;
			const real = setTimeout;
			window.setTimeout = (f, ms, ...more) => real(f, ms === 30000 ? 0 : ms, ...more);
			const never = () => new Promise(() => {});
			Object.defineProperty(window, "TossPayments", {
				get: () => toss && Object.assign((key) => ({widgets: (options) => {
					const widgets = toss(key).widgets(options);
					return blocked ? {...widgets, renderPaymentMethods: never} : widgets;
				}}), toss),
				set: (made) => { toss = made },
			});
			window.unblock = () => { blocked = false; window.setTimeout = real }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := first.another(t)
			source := protocol.AddScriptToEvaluateOnNewDocumentParams{Source: `if (location.pathname === "/book/pay") {` + c.script + `}`}
			if _, err := chromedp.Call(p.ctx, protocol.AddScriptToEvaluateOnNewDocument, source); err != nil {
				t.Fatal(err)
			}
			p.begin("내일", room+"번 룸")
			p.press("1시간")
			p.reserve()
			p.fill("이름", "홍길동")
			p.fill("휴대폰 번호", "010-3456-789"+room)
			p.press("모두 동의해요", "결제 수단 고르기")
			p.see("결제창을 불러오지 못했어요", "다시 시도")
			value[bool](p, `(window.unblock(), true)`)
			p.press("다시 시도")
			p.pay(s, "카드")
			p.at("/book/receipt")
		})
	}
}
