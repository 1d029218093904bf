package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// The screens of a purchase, in their order, and what guests do there instead of continuing.
var (
	purchaseScreens = []string{"contact", "pay", "provider", "confirm", "receipt"}
	purchaseDetours = []string{"back", "forward", "reload", "second tab", "duplicate tab", "language", "brand"}
)

// A buyer is a guest who buys one room in a browser of their own.
type buyer struct {
	*page
	s      *world.Stack
	choice string // address of the summary of the chosen room and time
	mobile string
	named  string // room and time that the last screen before the payment named

	correction string // a phone number that the guest types on the receipt without sending it
}

// detours runs each pair of a screen and a detour. After it, the guest presses the first button that leads on, until the receipt:
// the receipt names the room and time that the screen before the payment named, nothing else is sold, and nothing has to be
// typed twice.
func detours(t *testing.T, s *world.Stack, first *page) {
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	day := currentSlot().In(seoul).AddDate(0, 0, 2).Format("2006-01-02") // also if midnight passes
	for i, screen := range purchaseScreens {
		for j, detour := range purchaseDetours {
			ownHold := screen == "confirm" && detour == "brand" // the room is still held when the guest chooses it again
			if os.Getenv("E2E_DETOURS") != "all" && j%len(purchaseScreens) != i && !ownHold {
				continue
			}
			n := i*len(purchaseDetours) + j
			t.Run(detour+" on "+screen, func(t *testing.T) {
				t.Parallel()
				room, hour := 1+n%6, 6+2*(n/6)
				b := &buyer{page: first.another(t), s: s, mobile: fmt.Sprintf("010300000%02d", n),
					choice: fmt.Sprintf("/b/gangnam/%s/%d/%02d00-%02d00", day, room, hour, hour+1)}
				b.expect("401 (Unauthorized)", "409 (Conflict)", "400 (Bad Request)", "503 (Service Unavailable)", "ERR_INTERNET_DISCONNECTED")
				b.reach(screen)
				b.detour(detour, fmt.Sprintf("/b/gangnam/%s/%d/2000-2100", day, room))
				b.offline(false)
				b.finish()

				var sold struct {
					Reservations []struct{ RoomNo, Start, State string }
				}
				own := &browser{t, hq.http, hq.api}
				own.must("GET", "/v2/admin/reservations?query="+b.mobile, nil, &sold)
				var paid []string
				for _, r := range sold.Reservations {
					if r.State == "DONE" {
						paid = append(paid, fmt.Sprintf("%s %s:%s", r.RoomNo, r.Start[8:10], r.Start[10:]))
					}
				}
				if len(paid) != 1 || !strings.HasPrefix(b.named, paid[0]) {
					t.Errorf("sold %v, the screen before the payment named %q", paid, b.named)
				}
			})
		}
	}
}

// reach continues to a screen of the purchase. On the screen "confirm", the network fails.
func (b *buyer) reach(screen string) {
	b.t.Helper()
	b.open(b.choice)
	b.arrive("summary")
	b.act()
	b.arrive("contact")
	b.fill("이름", "홍길동")
	b.fill("휴대폰 번호", b.mobile)
	b.press("모두 동의해요")
	for _, next := range purchaseScreens {
		if next == "confirm" && screen == "receipt" {
			continue // the receipt follows without a press
		}
		b.arrive(next)
		if next == screen {
			break
		}
		if screen == "confirm" && next == "provider" {
			b.offline(true, b.s.API+"/payment/confirm")
		}
		b.act()
	}
	if screen == "receipt" {
		b.correction = "01040000000"
		b.press("고치기")
		b.fill("휴대폰 번호", b.correction)
	}
}

func (b *buyer) detour(detour, other string) {
	b.t.Helper()
	switch detour {
	case "back":
		b.leave("back")
	case "forward":
		b.leave("back")
		b.leave("forward")
	case "reload":
		b.do("reload", chromedp.Reload())
	case "second tab": // the guest looks at another room there, which takes the place of the first
		tab := b.tab("")
		tab.open(other)
		tab.arrive("summary")
		tab.act()
		tab.arrive("contact")
		asks := slices.Contains([]string{"contact", "pay"}, b.screen())
		value[bool](b.page, `document.dispatchEvent(new Event("visibilitychange"))`)
		if asks {
			b.arrive("notice")
		}
	case "duplicate tab":
		opened := chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
		value[bool](b.page, `Boolean(window.open(location.href))`)
		tab := b.tab(<-opened)
		tab.finish()
		follows := slices.Contains([]string{"contact", "pay"}, b.screen())
		value[bool](b.page, `document.dispatchEvent(new Event("visibilitychange"))`)
		if follows {
			b.at("/book/receipt")
		}
	case "language":
		page := b
		if value[bool](b.page, `!document.querySelector("header nav button")`) {
			page = b.tab("")
			page.open("/terms")
		}
		page.press("English")
		page.wait("the other language", `document.documentElement.lang === "en"`)
	case "brand":
		if value[bool](b.page, `location.origin !== `+quoted(b.base)) {
			b.open("/")
			break
		}
		b.away(`(window.confirm = () => true, document.querySelector("a.brand").click())`)
		b.at("/")
	}
}

// tab opens a tab that shares the cookies, or takes over one that a page has opened.
func (b *buyer) tab(id target.ID) *buyer {
	b.t.Helper()
	var options []chromedp.ContextOption
	if id != "" {
		options = append(options, chromedp.WithTargetID(id))
	}
	ctx, cancel := chromedp.NewContext(b.ctx, options...)
	b.t.Cleanup(cancel)
	other := *b
	other.page = watched(b.t, ctx, b.base)
	other.expected = b.expected
	return &other
}

// leave goes back or forward in the history and waits until the address has changed.
func (b *buyer) leave(direction string) {
	b.t.Helper()
	before := value[string](b.page, `location.href`)
	b.away(`history.` + direction + `()`)
	b.wait("go "+direction, `location.href !== `+quoted(before))
	value[bool](b.page, `delete document.querySelector("main h1")?.dataset.acted`) // the browser may have kept the page as it was
}

// screenOf names the screen that a page shows: one of the purchase, "summary", "choice" of a branch, day or room, or "notice" with
// buttons. It is empty while the page loads, and until something has changed since the last press.
const screenOf = `(base => {
	const main = document.querySelector("main"), title = main?.querySelector("h1"), can = q => Boolean(main.querySelector(q + ":not(:disabled):not([aria-busy])"));
	if (!title || title.dataset.acted || document.readyState !== "complete") return "";
	if (location.origin !== base) return can("button[value=pay]") ? "provider" : "";
	if (document.querySelector("main .loading")) return "";
	if (main.querySelector("#payment-methods")) return can(".actions .button") ? "pay" : "";
	if (main.querySelector("#name")) return "contact";
	if (main.querySelector(".stack")) return can(".stack .button") ? "notice" : "";
	if (location.pathname === "/book/confirm") return "confirm";
	if (location.pathname === "/book/receipt") return main.querySelector(".facts") ? "receipt" : "";
	if (/\/\d{4}-\d{4}$/.test(location.pathname)) return can(".actions .button") ? "summary" : "";
	return /^\/(b\/|$)/.test(location.pathname) ? "choice" : "";
})`

// mainButton is the button that leads on from each screen.
var mainButton = map[string]string{
	"summary": ".actions .button", "contact": ".actions .button", "pay": ".actions .button", "provider": "button[value=pay]", "notice": ".stack .button",
}

func (b *buyer) screen() string { return value[string](b.page, screenOf+`(`+quoted(b.base)+`)`) }

func (b *buyer) arrive(screen string) {
	b.t.Helper()
	b.wait("the screen "+screen, screenOf+`(`+quoted(b.base)+`) === `+quoted(screen))
}

// act presses the main button of the screen.
func (b *buyer) act() {
	b.t.Helper()
	name := value[string](b.page, `(q => {
		document.querySelector("main h1").dataset.acted = "yes";
		return document.querySelector("main " + q).innerText.trim();
	})(`+quoted(mainButton[b.screen()])+`)`)
	b.press(name)
}

// what returns room and time that the screen names, such as "3 10:00".
func (b *buyer) what() string {
	b.t.Helper()
	return value[string](b.page, `(text => (text.match(/(\d+)번 룸|Room (\d+)/) ?? []).slice(1).join("") + " " + text.match(/\d\d:\d\d/))(document.querySelector("main").innerText)`)
}

// finish acts as a guest would, until the receipt.
func (b *buyer) finish() {
	b.t.Helper()
	const steps = 14
	for range steps {
		b.wait("a screen", screenOf+`(`+quoted(b.base)+`).replace("confirm", "")`)
		switch screen := b.screen(); screen {
		case "receipt":
			if got := b.what(); b.named != "" && got != b.named {
				b.t.Errorf("the receipt names %q, the screen before the payment %q", got, b.named)
			}
			b.named = b.what()
			if b.correction != "" {
				b.wait("the typed correction is kept", `document.querySelector("details.correction").open && document.getElementById("mobile").value.replace(/\D/g, "") === `+quoted(b.correction))
			}
			return
		case "choice":
			if value[bool](b.page, `Boolean(document.querySelector("a[href='/book/receipt']"))`) {
				b.open("/book/receipt")
			} else {
				b.open(b.choice) // the guest chooses again
			}
			continue
		case "contact":
			b.wait("the input is kept", `document.getElementById("name").value === "홍길동" && document.getElementById("mobile").value.replace(/\D/g, "") === `+quoted(b.mobile)+` && document.getElementById("consent-all").checked`)
		case "pay":
			b.named = b.what()
		}
		b.act()
	}
	b.t.Fatalf("no receipt after %d steps", steps)
}
