package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebPurchaseIdentity checks that the pages sell exactly the room and time that they show and lose no input if the guest
// uses several tabs, the back button or reloads.
func TestWebPurchaseIdentity(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)

	t.Run("another tab holds another time", func(t *testing.T) {
		p := first.another(t)
		p.expect("409 (Conflict)", "400 (Bad Request)")
		p.begin("내일", "5번 룸")
		p.reserve()
		shown := value[string](p, `document.querySelector(".what").innerText.replace(/\s+/g, " ")`)
		// The other tab shares the cookies, so its hold replaces the hold of this tab.
		date := strings.ReplaceAll(tomorrow(), "-", "")
		status := value[int](p, `fetch("/api/reservation", {method: "POST", headers: {"Content-Type": "application/json"},
			body: JSON.stringify({branch: "gangnam", room: 6, startDateTime: "`+date+`1400", endDateTime: "`+date+`1500"})}).then((r) => r.status)`)
		if status != 200 {
			t.Fatalf("the other tab got %d, want 200", status)
		}
		p.fill("이름", "홍길동")
		p.fill("휴대폰 번호", "01022220001")
		p.press("모두 동의해요", "결제 수단 고르기")
		p.see("어느 예약으로 할까요?", "6번 룸")
		p.look("other-hold", phone)
		p.press("6번 룸")
		p.see("누구 이름으로 예약할까요?", "6번 룸", "14:00–15:00")
		if name := value[string](p, `document.getElementById("name").value`); name != "홍길동" {
			t.Errorf("the name was lost: got %q", name)
		}
		if now := value[string](p, `document.querySelector(".what").innerText.replace(/\s+/g, " ")`); now == shown {
			t.Errorf("the form still shows %q", now)
		}
		p.press("예약 그만두기")
	})

	t.Run("back from the payment window", func(t *testing.T) {
		p := first.another(t)
		p.begin("내일", "4번 룸")
		p.reserve()
		p.introduce("01022220002")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.back()
		p.at("/book/pay")
		p.see("가상계좌", "010-2222-0002")
		p.pay(s, "카드")
		p.see("예약이 확정됐어요", "4번 룸")
		p.back()
		p.wait("no form of a finished purchase", `!document.querySelector("#name, #payment-methods")`)
	})

	t.Run("the form survives reloads and another language", func(t *testing.T) {
		p := first.another(t)
		p.begin("내일", "3번 룸")
		p.reserve()
		p.fill("이름", "김기억")
		p.fill("휴대폰 번호", "01022220003")
		p.press("모두 동의해요")
		for _, step := range []func(){
			func() { p.do("reload", chromedp.Reload()) },
			func() { p.press("English"); p.see("Your details") },
			func() { p.press("한국어"); p.see("누구 이름으로 예약할까요?") },
		} {
			step()
			p.wait("the form is kept", `document.getElementById("name")?.value === "김기억" && document.getElementById("mobile").value.startsWith("010") && document.getElementById("consent-all").checked`)
		}
		p.offline(true, s.SandboxAt+"/*")
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.press("결제 수단 고르기")
		p.at("/book/pay")
		p.see("다시 시도")
		const top = `document.querySelector(".sent-to a").getBoundingClientRect().top + scrollY`
		before := value[float64](p, top)
		p.offline(false)
		p.press("다시 시도")
		p.wait("the payment methods", `document.querySelector(".actions .button.primary")?.disabled === false`)
		if after := value[float64](p, top); after != before {
			t.Errorf("the link 고치기 moved from %v to %v px when the payment methods appeared: a press would miss it", before, after)
		}
		p.press("고치기")
		p.at("/book/contact")
		p.press("예약 그만두기")
	})

	t.Run("detours", func(t *testing.T) { detours(t, s, first) })
}
