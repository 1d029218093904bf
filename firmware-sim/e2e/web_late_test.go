package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// late withholds the answers to the given requests, written as method and path, until arrive is called.
func (p *page) late(requests ...string) (arrive func()) {
	p.t.Helper()
	value[bool](p, `(real => {
		window.withheld = 0;
		const may = new Promise(done => { window.arrive = done });
		window.fetch = async (address, init) => {
			const answer = await real(address, init);
			if (`+quoted(strings.Join(requests, ","))+`.split(",").includes((init?.method ?? "GET") + " " + address)) {
				window.withheld++;
				await may;
			}
			return answer;
		};
		return true;
	})(window.fetch)`)
	return func() {
		p.t.Helper()
		p.wait("the withheld answer", `window.withheld > 0`)
		// The page handles the answer as soon as it has read the body.
		value[bool](p, `(window.arrive(), new Promise(done => setTimeout(() => done(true), 500)))`)
	}
}

// TestWebLateAnswers: an answer arrives after the guest has left the screen that asked for it. It must not lead the guest away from the
// screen that is shown, nor keep a room that the guest no longer chooses.
func TestWebLateAnswers(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	day := inTwoDays()
	// The last screen before the one that asks is in the same document, as it is for a guest.
	at := func(t *testing.T, room string) *buyer {
		b := &buyer{page: first.another(t), s: s, mobile: "0105555111" + room, choice: "/b/gangnam/" + day + "/" + room + "/1000-1100"}
		b.expect("401 (Unauthorized)", "404 (Not Found)", "409 (Conflict)")
		b.open("/b/gangnam/" + day)
		b.see("어느 룸에서 쉴까요?")
		value[bool](b.page, `(document.querySelector("main").append(Object.assign(document.createElement("a"), {href: `+quoted(b.choice)+`, textContent: "고른 시간"})), true)`)
		b.press("고른 시간")
		b.arrive("summary")
		return b
	}

	t.Run("hold", func(t *testing.T) {
		b := at(t, "1")
		arrive := b.late("POST /api/reservation")
		b.act()
		b.wait("the room is held", `window.withheld > 0`)
		b.leave("back")
		b.see("어느 룸에서 쉴까요?")
		arrive()
		if path := value[string](b.page, `location.pathname`); path != "/b/gangnam/"+day {
			t.Fatalf("the guest was led from the rooms to %s", path)
		}
		b.wait("the room is released", `fetch("/api/v2/hold").then(r => window.free = r.status === 401) && window.free`)
	})

	t.Run("contact", func(t *testing.T) {
		b := at(t, "2")
		b.act()
		b.arrive("contact")
		b.fill("이름", "홍길동")
		b.fill("휴대폰 번호", b.mobile)
		b.press("모두 동의해요")
		arrive := b.late("POST /api/payment")
		b.act()
		b.wait("the payer is registered", `window.withheld > 0`)
		b.leave("back")
		arrive()
		b.arrive("summary")
	})

	t.Run("reservations", func(t *testing.T) {
		p := first.another(t)
		p.expect("401 (Unauthorized)")
		p.open("/terms")
		p.see("지점별 환불 규정")
		arrive := p.late("GET /api/my-reservations", "GET /api/v2/my-keys")
		p.press("내 예약")
		p.wait("the session is refused", `window.withheld > 0`)
		p.back()
		p.see("지점별 환불 규정")
		arrive()
		if path := value[string](p, `location.pathname + location.search`); path != "/terms" {
			t.Errorf("the guest was led from the terms to %s", path)
		}
	})

	t.Run("login", func(t *testing.T) {
		newBrowser(t, s).purchase(s, "gangnam", 1, 30000, "01055551119", "카드", dayAfterAt(14))
		p := first.another(t)
		p.open("/terms")
		p.see("지점별 환불 규정")
		p.expect("401 (Unauthorized)")
		p.press("내 예약")
		p.see("예약을 확인해 볼게요")
		p.fill("휴대폰 번호", "01055551119")
		p.press("인증번호 받기")
		p.see("안에 적어 주세요")
		code := sentAfter(t, s, "01055551119", codeVariable, 0)

		// Reading the message may take the memory that the tab had: the browser loads it again.
		p.do("reload", chromedp.Reload())
		p.see("인증번호를 적어 주세요", "안에 적어 주세요")
		p.press("English")
		p.see("6-digit")
		p.press("한국어")
		p.see("인증번호를 적어 주세요")
		p.fill("인증번호 6자리", code)
		arrive := p.late("POST /api/account/login")
		p.press("확인")
		p.wait("the login", `window.withheld > 0`)
		p.press("이용약관")
		p.see("지점별 환불 규정")
		arrive()
		p.at("/terms")
		p.press("내 예약")
		p.see("결제 완료")

		// The exchange asks what was paid.
		arrive = p.late(value[string](p, `fetch("/api/my-reservations").then(r => r.json()).then(a => "GET /api/v2/my-reservations/" + a.data[0].id + "/refund")`))
		p.press("시간·룸 바꾸기")
		p.wait("the quote", `window.withheld > 0`)
		p.press("이용약관")
		p.see("지점별 환불 규정")
		arrive()
		p.at("/terms")
	})
}
