package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A screen is the name and size of a simulated screen.
type screen struct {
	name          string
	width, height int64
}

var (
	phone   = screen{"phone", 390, 844}
	narrow  = screen{"narrow", 320, 568}
	desktop = screen{"desktop", 1280, 800}
)

// on sets the screen of the page.
func (p *page) on(s screen) *page {
	p.t.Helper()
	p.do("screen "+s.name, chromedp.EmulateViewport(s.width, s.height))
	return p
}

// look checks the page against WCAG 2.2 AA and the project's own rules on each given screen, by default phone and desktop, and
// that its layout has not shifted.
// If SCREENSHOTS names a directory, it stores screenshots there. Afterwards the page is on the first screen.
func (p *page) look(name string, screens ...screen) {
	p.t.Helper()
	if len(screens) == 0 {
		screens = []screen{phone, desktop}
	}
	p.settle()
	p.judgeShift(name)
	for _, s := range screens {
		p.on(s)
		p.settle()
		p.on(p.whole(s))
		p.judge(name + " on " + s.name)
		p.judgeEnglish(name)
		p.keep(name + "-" + s.name)
	}
	p.on(screens[0])
}

// whole returns a screen as high as the page, so that the page is fully visible and sticky elements cover nothing. If a
// dialog is open, it returns the screen unchanged, because the dialog covers only the visible part.
func (p *page) whole(s screen) screen {
	p.t.Helper()
	if !value[bool](p, `Boolean(document.querySelector("dialog[open]"))`) {
		s.height = max(s.height, value[int64](p, `document.documentElement.scrollHeight`))
	}
	return s
}

// settle waits until the page has loaded and all finite animations have ended.
func (p *page) settle() {
	p.t.Helper()
	p.wait("settle", `document.readyState === "complete" && !document.querySelector(".loading") &&
		document.getAnimations().every(a => a.playState !== "running" || a.effect?.getComputedTiming().iterations === Infinity)`)
}

// audit returns the source of axe-core. If it is not installed (npm install), the pages are not checked with it.
var audit = sync.OnceValues(func() (string, error) {
	source, err := os.ReadFile(filepath.Join(root(), "cloud/internal/web/node_modules/axe-core/axe.min.js"))
	return string(source), err
})

type violation struct {
	ID    string
	Help  string
	Nodes []string
}

func (p *page) judge(what string) {
	p.t.Helper()
	p.judgeAccess(what)
	for _, small := range value[[]string](p, smallTargets) {
		p.t.Errorf("%s: smaller than 44 pixels: %s", what, small)
	}
	for _, glued := range value[[]string](p, gluedTexts) {
		p.t.Errorf("%s: no space between the words of %s", what, glued)
	}
}

// judgeAccess checks the page against WCAG 2.2 AA.
func (p *page) judgeAccess(what string) {
	p.t.Helper()
	source, err := audit()
	switch {
	case err != nil && os.Getenv("E2E_REQUIRED") == "1":
		p.t.Fatalf("axe-core: %v (npm install --no-save --prefix cloud/internal/web)", err)
	case err != nil:
		p.t.Log("axe-core is not installed: npm install --no-save --prefix cloud/internal/web")
	default:
		value[bool](p, `(() => { `+source+`; return true })()`)
		found := value[[]violation](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
			.then(r => r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? ""))})))`)
		for _, v := range found {
			p.t.Errorf("%s: %s (%s):\n  %s", what, v.ID, v.Help, strings.Join(v.Nodes, "\n  "))
		}
	}
	p.fits(what)
}

// fits checks that the page is no wider than the screen.
func (p *page) fits(what string) {
	p.t.Helper()
	if wide := value[string](p, `document.documentElement.scrollWidth <= innerWidth ? "" :
		[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5).at(-1)?.outerHTML.slice(0, 160) ?? "?"`); wide != "" {
		p.t.Errorf("%s: scrolls sideways because of %s", what, wide)
	}
}

// judgeShift checks that no more than 0.02 of the layout has shifted in any five seconds of this document (Cumulative Layout
// Shift). Shifts within half a second of a press do not count, nor do those of a new size of the window.
func (p *page) judgeShift(what string) {
	p.t.Helper()
	type shift struct {
		Value float64
		Parts []string
	}
	worst := value[shift](p, `new Promise(done => {
		const entries = [];
		new PerformanceObserver(list => entries.push(...list.getEntries())).observe({type: "layout-shift", buffered: true});
		requestAnimationFrame(() => setTimeout(() => {
			let worst = {Value: 0, Parts: []}, window, begin, end;
			const enlarged = document.documentElement.style.fontSize; // which has moved everything
			for (const e of entries.filter(e => !e.hadRecentInput && !enlarged)) {
				if (!window || e.startTime - end > 1000 || e.startTime - begin > 5000) { window = {Value: 0, Parts: []}; begin = e.startTime; }
				end = e.startTime;
				window.Value += e.value;
				window.Parts.push(...e.sources.map(s => Math.round(e.startTime) + " ms, y " + s.previousRect.y + " to " + s.currentRect.y + ": " + ((s.node?.outerHTML ?? s.node?.textContent ?? "").slice(0, 100))));
				if (window.Value > worst.Value) worst = window;
			}
			done(worst);
		}));
	})`)
	if worst.Value >= 0.02 {
		p.t.Errorf("%s: the layout shifted by %.3f:\n  %s", what, worst.Value, strings.Join(worst.Parts, "\n  "))
	}
}

// smallTargets lists the targets that are too small for a thumb. Links within a sentence are exempt (WCAG 2.5.8), and the
// label of a checkbox or radio button counts as its target.
const smallTargets = `[...document.querySelectorAll("a[href], button, input, select, summary, td[data-at]")]
	.filter(e => { const r = e.getBoundingClientRect(), s = getComputedStyle(e);
		if (r.width === 0 || r.height === 0 || s.visibility === "hidden" || e.closest(".widget, .hidden, .skip, [inert]")) return false;
		if (e.matches("a") && e.closest("p, dd, .company")) return false;
		const target = e.matches("[type=checkbox], [type=radio]") && e.closest("label") || e;
		const t = target.getBoundingClientRect();
		return t.width < 43.5 || t.height < 43.5 })
	.map(e => e.outerHTML.slice(0, 140) + " " + JSON.stringify(e.getBoundingClientRect()))`

// gluedTexts lists the flex containers that show no space between their text and the element after it: the space of the source
// is dropped there.
const gluedTexts = `[...document.querySelectorAll("body *")].filter(e => getComputedStyle(e).display.endsWith("flex"))
	.filter(e => [...e.childNodes].some(text => {
		if (text.nodeType !== Node.TEXT_NODE || !/\S\s+$/.test(text.data) || !text.nextElementSibling) return false;
		const range = document.createRange();
		range.selectNodeContents(text);
		const before = range.getBoundingClientRect(), after = text.nextElementSibling.getBoundingClientRect();
		return before.width > 0 && after.width > 0 && after.top < before.bottom && after.left >= before.left && after.left - before.right < 2 }))
	.map(e => e.outerHTML.slice(0, 140))`

// keep stores a screenshot if SCREENSHOTS names a directory.
func (p *page) keep(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// enlarge sets the font size of the page in percent, like the setting of a browser.
func (p *page) enlarge(percent int) {
	p.t.Helper()
	value[bool](p, fmt.Sprintf(`(document.documentElement.style.fontSize = "%d%%", true)`, percent))
}

// media sets a preference of the user, such as prefers-reduced-motion.
func (p *page) media(name, value string) {
	p.t.Helper()
	params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, params); err != nil {
		p.t.Fatal(err)
	}
}

// paper shows the page as it is printed if medium is "print"; an empty medium is the screen again.
func (p *page) paper(medium string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium}); err != nil {
		p.t.Fatal(err)
	}
}
