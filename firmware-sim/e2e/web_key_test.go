package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// kept is true once the service worker has stored the key page.
const kept = `navigator.serviceWorker.controller && caches.match(location.pathname).then(r => window.kept = Boolean(r)) && window.kept`

func TestWebKeyPage(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01011112222")
	address := "/k/" + key
	story := func(name string, tell func(t *testing.T, p *page)) {
		t.Run(name, func(t *testing.T) { tell(t, first.another(t)) })
	}

	story("a lock that does not obey", func(t *testing.T, p *page) {
		fault(t, s, "gangnam", "room_2", "stuck")
		p.open(address)
		p.see("지금 열 수 있어요")
		p.press("2번 룸 열기")
		p.see("2번 룸 문은 이 일회용 번호로 열어 주세요")
		code := value[string](p, `document.querySelector('[data-result="code"] .pin').innerText.replace(/\s/g, "")`)
		if len(code) != 8 {
			t.Errorf("code %q", code)
		}
		said := value[string](p, `document.querySelector('[data-result="code"] .pin').getAttribute("aria-label")`)
		if strings.ReplaceAll(said, " ", "") != code || len(said) != 15 {
			t.Errorf("a screen reader says %q", said)
		}
		p.look("key-pin", phone, desktop, narrow)
		p.on(phone)
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		p.press("2번 룸 열기")
		p.see("문이 열렸어요")
		if p.sees("이 일회용 번호로") {
			t.Error("the code is still shown")
		}
	})

	story("a press that is announced when the finger touches the button", func(t *testing.T, p *page) {
		announced := func() string {
			return regexp.MustCompile(`(?m)^yeolda_door_announced_grants_total (\d+)`).FindString(body(t, s.MetricsAt+"/metrics"))
		}
		p.open("/k/" + keyOfAdminReservation(t, s, "gangnam", 4, "01044445555"))
		p.wait("the announcements", `!document.querySelector("#parts").hidden`)
		value[bool](p, `(window.announcements = 0, (ask => { window.fetch = async (...a) => { const r = await ask(...a); if (String(a[0]).endsWith("/announcements")) window.announcements++; return r } })(fetch), true)`)
		opened := func() {
			p.wait("be answered", `!document.querySelector("#key button[aria-busy]") && !document.querySelector('[data-result="waiting"]:not([hidden])')`)
			p.see("문이 열렸어요")
		}
		before := announced()
		for n := 1; announced() == before; n++ { // the claim may come later than the press
			if n > 8 {
				t.Fatal("no announced press was granted at once")
			}
			at := p.find("4번 룸 열기")
			p.mouse(input.DispatchMouseEventTypeMousePressed, point{at.X, at.Y})
			p.wait("announce the press", fmt.Sprintf(`window.announcements === %d`, n))
			p.mouse(input.DispatchMouseEventTypeMouseReleased, point{at.X, at.Y})
			opened()
		}
		before = announced()
		value[bool](p, `(window.announcements = 0, document.querySelector("#key button[value=room]").focus(), true)`)
		p.keys(kb.Enter)
		opened()
		if n := value[int](p, `window.announcements`); n != 0 || announced() != before {
			t.Errorf("a press with the keyboard was announced %d times", n)
		}
	})

	story("a branch whose agent is away", func(t *testing.T, p *page) {
		other := keyOfAdminReservation(t, s, "jamsil", 1, "01033334444")
		p.open("/k/" + other)
		p.see("연결이 끊겨") // before any button is pressed
		p.look("key-offline", phone, desktop, narrow)
		p.on(phone).press("현관문 열기")
		p.see("현관문은 이 비밀번호로 열어 주세요")
		p.look("key-offline-pin")
	})

	// A browser that translates a page for a guest from abroad changes its language.
	story("translated by the browser", func(t *testing.T, p *page) {
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		hq.must("POST", "/v2/admin/branches/jamsil/arrival", map[string]any{"text": map[string]string{"ko": "편의점 옆 계단으로 내려와요.", "en": "Take the stairs beside the shop."}}, nil)
		p.early(`addEventListener("DOMContentLoaded", () => { document.documentElement.lang = "ja" })`)
		p.open("/k/" + keyOfAdminReservation(t, s, "jamsil", 2, "01033335555"))
		p.press("들어오는 길", "현관문 열기")
		p.see("편의점 옆 계단으로 내려와요.", "남았어요")
		p.wait("the reason", `document.querySelector("#why").innerText`)
	})

	story("without scripts", func(t *testing.T, p *page) {
		p.withoutScripts()
		p.open(address)
		p.do("press the entrance", chromedp.Click(chromedp.CSS(`button[value=front]`)))
		p.do("see the result", chromedp.WaitVisible(chromedp.CSS(`.good`)))
		p.keep("key-without-scripts-phone")
		driven := len(actuations(t, s, "gangnam"))
		p.do("reload", chromedp.Reload())
		p.do("see the same result", chromedp.WaitVisible(chromedp.CSS(`.good`)))
		if again := len(actuations(t, s, "gangnam")); again != driven {
			t.Errorf("a reload drove %d locks more", again-driven)
		}
		fault(t, s, "gangnam", "room_2", "relay-dead")
		p.do("press the room", chromedp.Click(chromedp.CSS(`button[value=room]`)))
		p.do("see the code", chromedp.WaitVisible(chromedp.CSS(`[data-result="code"] .pin`)))
		code, err := chromedp.Run(p.ctx, chromedp.Text(chromedp.CSS(`[data-result="code"] .pin`)))
		if err != nil || len(strings.Join(strings.Fields(code), "")) != 8 {
			t.Errorf("code %q, %v", code, err)
		}
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	})

	story("an agent that says nothing", func(t *testing.T, p *page) {
		fault(t, s, "gangnam", "", "network-cut")
		p.open(address)
		p.press("2번 룸 열기")
		p.see("2번 룸 문은 이 일회용 번호로 열어 주세요")
		value[bool](p, `(now => { Date.now = () => now() + 120e3; return true })(Date.now)`)
		p.see("번호가 만료됐어요")
		p.look("key-code-expired", phone)
		if panel := value[bool](p, `document.querySelector("[data-result=code]").checkVisibility()`); panel {
			t.Error("the expired code is still shown")
		}
		p.find("2번 룸 열기") // another press gives another code
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		awaitAgents(t, s, "gangnam")
	})

	story("a one-time code without a press", func(t *testing.T, p *page) {
		p.open(address)
		p.press("일회용 번호로 열기")
		value[bool](p, `(() => { const ask = fetch; window.fetch = async (...a) => { const r = await ask(...a); if (String(a[0]).endsWith("/codes")) window.qr = (await r.clone().json()).data?.qr ?? window.qr; return r }; return true })()`)
		value[bool](p, `(document.querySelector("#codes button").focus(), true)`)
		p.keys(kb.Enter)
		p.see("현관문 번호예요", "초 안에 한 번 쓸 수 있어요")
		if at := value[string](p, `document.activeElement.innerText`); at != "현관문" {
			t.Errorf("the focus is on %q, want the pressed button", at)
		}
		p.wait("the count of seconds, which screen readers do not announce", `document.querySelector("#codes [aria-live=off]")`)
		p.look("key-one-time-code", phone, desktop, narrow)
		if drawn := value[bool](p, `(() => {
			const want = window.qr.split("\n").map(row => [...row].map(() => "0"));
			for (const [, x, y] of document.querySelector("#codes .qr path").getAttribute("d").matchAll(/M(\d+) (\d+)h1v1h-1z/g)) want[y][x] = "1";
			return want.map(row => row.join("")).join("\n") === window.qr && want.length >= 21;
		})()`); !drawn {
			t.Error("the page does not draw the QR code of the answer")
		}
		code := value[string](p, `document.querySelector("#codes .pin").innerText.replace(/\s/g, "")`)
		var entry struct {
			Accepted bool
			Reason   string
		}
		postJSON(t, s.SimAt+"/sim/branches/gangnam/keypads/front_1", map[string]string{"digits": code + "#"}, &entry)
		if !entry.Accepted {
			t.Errorf("the keypad refuses the code: %s", entry.Reason)
		}
		p.expect("503 (Service Unavailable)", "429 (Too Many Requests)")
		for range 3 { // three codes at once are the limit, and the first one is used
			p.press("현관문")
			p.wait("an answer", `!document.querySelector("#codes [aria-busy]")`)
		}
		p.see("잠시 후 다시 시도해 주세요")
		if value[bool](p, `document.querySelector("#codes .pin").checkVisibility()`) {
			t.Error("an earlier code is still shown")
		}
	})

	story("a refund while the page is open", func(t *testing.T, p *page) {
		p.open(address)
		p.wait("the parts", `!document.querySelector("#parts").hidden`)
		value[bool](p, `(ask => { window.fetch = async (...a) => {
			const r = await ask(...a);
			if (String(a[0]) !== "/api/v2/keys/" + location.pathname.split("/")[2]) return r;
			const answer = await r.json();
			answer.data.compensation = {kind: "refunded", minutes: 0, amount: 3000, at: answer.data.serverTime};
			return new Response(JSON.stringify(answer), {status: r.status});
		}; document.dispatchEvent(new Event("visibilitychange")); return true })(fetch)`)
		p.see("문이 열리지 않은 것을 확인해 3,000원을 환불해 드려요.")
		if !value[bool](p, `Boolean(document.querySelector("#refund").closest("[aria-live]"))`) {
			t.Error("screen readers do not announce the refund")
		}
	})

	story("a companion's link that is revoked", func(t *testing.T, p *page) {
		p.open(address)
		p.press("함께 오는 분")
		for _, name := range []string{"하늘", "바다"} {
			value[bool](p, `(document.querySelector("#guests input").focus(), true)`)
			p.keys(name)
			p.pressTwice("동행 링크 만들기")
			p.see(name)
		}
		if names := value[string](p, `[...document.querySelectorAll("#guests li b")].map(b => b.innerText).join()`); names != "하늘,바다" {
			t.Errorf("the companions after double presses are %s, want 하늘,바다", names)
		}
		// An app's own browser may have nothing to share with, and refuse the clipboard.
		value[bool](p, `(Object.defineProperty(navigator, "share", { value: undefined }), Object.defineProperty(navigator, "clipboard",
			{ value: { writeText: () => Promise.reject(new DOMException("denied", "NotAllowedError")) } }), window.prompt = (_, text) => { window.byHand = text; }, true)`)
		p.press("보내기 하늘")
		p.wait("the link to copy by hand", `/\/k\/[0-9a-f-]{36}$/.test(window.byHand)`)
		p.pressTwice("취소하기 하늘")
		p.wait("the companion after a double press", `document.querySelector("#guests li b").innerText === "하늘"`)
		p.press("취소하기 하늘")
		p.see("하늘: 링크를 취소할까요?")
		p.look("key-companion", phone, narrow)
		p.on(phone).press("그대로 두기")
		p.press("취소하기 하늘")
		p.press("취소하기 하늘")
		p.wait("the other companion", `[...document.querySelectorAll("#guests li b")].map(b => b.innerText).join() === "바다"`)
		p.wait("the focus in this part", `document.querySelector("#guests").contains(document.activeElement)`)
	})

	story("in the dark", func(t *testing.T, p *page) {
		p.media("prefers-color-scheme", "dark")
		tablet := screen{"tablet", 820, 1180}
		fault(t, s, "gangnam", "room_3", "stuck")
		p.open("/k/" + keyOfAdminReservation(t, s, "gangnam", 3, "01055556666"))
		p.see("지금 열 수 있어요")
		// Browsers forgive shifts within half a second of a press. A guest with one bar of signal sees the later ones.
		p.slow(700*time.Millisecond, -1)
		p.press("함께 오는 분")
		value[bool](p, `(document.querySelector("#guests input").focus(), true)`)
		p.keys("하늘")
		p.press("동행 링크 만들기")
		p.see("하늘")
		p.press("3번 룸 열기")
		p.see("3번 룸 문은 이 일회용 번호로 열어 주세요")
		p.wait("the reason", `document.querySelector("#why").innerText`) // it moves what follows
		p.press("일회용 번호로 열기")
		p.wait("the choice of a door", `document.querySelector("#codes").open`)
		p.press("현관문")
		p.see("현관문 번호예요")
		p.slow(0, -1)
		for _, s := range []screen{narrow, phone} {
			p.on(s)
			if value[bool](p, `(() => {
				const box = q => document.querySelector(q).getBoundingClientRect(), call = box(".call"), digits = [...document.querySelectorAll("#codes .pin i")];
				return call.bottom > box("[data-result=code]").bottom || call.bottom > box("#why").top || digits.some(d => d.getBoundingClientRect().top !== digits[0].getBoundingClientRect().top);
			})()`) {
				t.Errorf("on %s the call button covers the reason, or the code takes two lines", s.name)
			}
		}
		p.look("key-dark", narrow, phone, tablet, desktop)
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		p.on(phone).press("3번 룸 열기")
		p.see("문이 열렸어요")
		p.look("key-dark-opened", phone)
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.offline(true)
		p.press("현관문 열기")
		p.see("와이파이나 데이터를 켜고 다시 눌러 주세요")
		p.look("key-dark-offline", phone)
		p.offline(false)
	})

	// The phone's clock is three hours ahead.
	const ahead = `{ const now = Date.now; Date.now = () => now() + 3 * 3600e3 }`
	story("with a clock that is hours off and no answer", func(t *testing.T, p *page) {
		p.expect("ERR_FAILED")
		p.early(ahead + `; { const ask = fetch; window.fetch = (a, b) => String(a).includes("/v2/keys/") ? Promise.reject(new TypeError("no network")) : ask(a, b) }`)
		p.open(address)
		p.see("이용 시간이 끝났어요") // by the phone's clock
		p.press("2번 룸 열기")
		p.see("문이 열렸어요")
		p.wait("the doors again", `[...document.querySelectorAll("#key button[name=door]")].every(b => !b.disabled)`)
	})

	story("when it is over", func(t *testing.T, p *page) {
		p.early(ahead + `; { const ask = fetch; window.fetch = async (a, b) => {
			const r = await ask(a, b);
			if (String(a) !== "/api/v2/keys/" + location.pathname.split("/")[2]) return r;
			const answer = await r.json();
			answer.data.serverTime = new Date(Date.parse(answer.data.serverTime) + 3 * 3600e3).toISOString();
			return new Response(JSON.stringify(answer));
		} }`)
		p.open(address)
		p.see("이용 시간이 끝났어요")
		p.look("key-over")
		p.wait("no door", `[...document.querySelectorAll("#key button[name=door]")].every(b => b.disabled)`)
		if enabled := p.enabled("*"); enabled != "" {
			t.Errorf("%q can be pressed after the end, want nothing", enabled)
		}
		if value[bool](p, `document.querySelector("#guests").checkVisibility()`) {
			t.Error("the page offers companion links after the end")
		}
		p.press("다시 예약하기")
		p.at("/b/gangnam")
	})

	story("unknown", func(t *testing.T, p *page) {
		p.expect("404 (Not Found)")
		p.open("/k/00000000-0000-4000-8000-000000000000")
		p.see("쓸 수 없는 열쇠예요")
		p.look("key-unknown")
	})

	story("a PIN that is disclosed while the page is shown", func(t *testing.T, p *page) {
		p.open(address)
		p.wait("the PIN", `document.querySelector("#pass .pin").textContent.length >= 6`)
		pin := value[string](p, `document.querySelector("#pass .pin").textContent`)
		p.wait("the page is kept", kept)
		// As before the disclosure: neither the page nor the stored page has the PIN.
		value[bool](p, `(async () => {
			const cache = await caches.open("keys-1"), stored = await cache.match(location.pathname);
			await cache.put(location.pathname, new Response("no PIN", {headers: stored.headers}));
			document.querySelector("#pass .pin").textContent = "";
			document.dispatchEvent(new Event("visibilitychange"));
			return true;
		})()`)
		p.wait("the PIN again", `document.querySelector("#pass .pin").textContent === "`+pin+`"`)
		p.wait("the stored page has the PIN", `caches.match(location.pathname).then(r => r.text()).then(text => window.stored = text) && window.stored?.includes('aria-label="`+strings.Join(strings.Split(pin, ""), " ")+`"')`)
	})

	story("read without a network", func(t *testing.T, p *page) {
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.open(address)
		p.see("지금 열 수 있어요")
		p.wait("the page is kept", kept)
		p.wait("the PIN", `document.querySelector("#pass .pin").textContent.length >= 6`)
		pin := value[string](p, `document.querySelector("#pass .pin").textContent`)
		p.offline(true)
		p.do("reload", chromedp.Reload())
		p.see("열다 강남점 2번 룸", "인터넷에 연결되어 있지 않아요", "키패드 비밀번호")
		p.wait("the PIN without a network", `document.querySelector("#pass .pin").textContent === "`+pin+`"`)
		p.look("key-no-network")
		p.press("현관문 열기")
		p.see("와이파이나 데이터를 켜고 다시 눌러 주세요")
		p.offline(false)
		p.wait("the notice is gone", `!document.getElementById("key").dataset.net`)
		p.press("현관문 열기")
		p.see("문이 열렸어요")
	})

	// A first visit: nothing is stored on the phone. The doors can be pressed as soon as the page has arrived, because it
	// waits for nothing else, so its size bounds the time. The bytes are those of the page and of all its requests, which end with the
	// offer of an extension. The service worker stores the page for later visits on its own.
	story("on one bar of signal", func(t *testing.T, p *page) {
		const slow3G = 400 * 1024 / 8 // bytes per second
		received := p.count()
		p.slow(400*time.Millisecond, slow3G)
		_, err := chromedp.Call(p.ctx, protocol.AddScriptToEvaluateOnNewDocument, protocol.AddScriptToEvaluateOnNewDocumentParams{
			Source: `document.addEventListener("DOMContentLoaded", () => { window.live = performance.now() - performance.getEntriesByType("navigation")[0].responseStart })`,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.open(address)
		p.see("지금 열 수 있어요")
		if value[bool](p, `[...document.querySelectorAll("button[name=door]")].some(b => b.disabled)`) {
			t.Error("a door cannot be pressed when the page is shown")
		}
		p.wait("all that it asks for", `document.readyState === "complete" && performance.getEntriesByType("resource").some(e => e.name.includes("/extension") && e.responseEnd > 0)`)
		if parts := value[string](p, `performance.getEntriesByType("resource").filter(e => e.renderBlockingStatus !== "non-blocking").map(e => e.name).join()`); parts != "" {
			t.Errorf("the page waits for %s", parts)
		}
		t.Logf("live %.0f ms after the first byte; %d bytes in all", value[float64](p, `live`), received())
		if bytes := received(); bytes > 15<<10 {
			t.Errorf("%d bytes, want at most %d", bytes, 15<<10)
		}
	})

	t.Run("tells nobody the address", func(t *testing.T) {
		response, err := http.Get(s.Pages + address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// early has each document run a script before its own.
func (p *page) early(script string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, protocol.AddScriptToEvaluateOnNewDocument, protocol.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		p.t.Fatal(err)
	}
}

// TestWebKeyKeepsTheLanguage: a guest who has chosen English sees the key page in English when the link of the message is opened again,
// although the worker answers with the stored page.
func TestWebKeyKeepsTheLanguage(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	address := "/k/" + newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01044441111")
	p.open(address)
	p.wait("the worker has stored the page", kept)
	p.press("English")
	p.wait("the page in English", `document.documentElement.lang === "en"`)
	p.wait("the page stored in English", `caches.match(location.pathname).then(r => r.text()).then(text => window.stored = text) && window.stored?.includes('<html lang="en"')`)
	p.open(address)
	if lang := value[string](p, `document.documentElement.lang`); lang != "en" {
		t.Errorf("got the page in %q, want English", lang)
	}
}
