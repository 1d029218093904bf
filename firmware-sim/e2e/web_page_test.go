package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// A page is one user's tab in a real browser. It finds elements by their visible texts, as users do. It fails the test if an
// element does not appear in time or is covered, or if the browser reports an error.
type page struct {
	t    testing.TB
	ctx  context.Context
	base string

	patience   time.Duration // limit of each wait
	unscripted bool          // the page runs no scripts, so it cannot tell what was clicked
	mu         sync.Mutex
	complaints []string
	expected   []string // parts of the browser's errors that the test expects
}

// patience is how long a page or another program may take until what a test waits for is there. It decides nothing but how long a
// failure takes, so it is long enough for a machine that runs other tests beside the browser.
const patience = 2 * time.Minute

// sharedBrowser starts the browser of all pages, in Korean. Its start costs more processor time than a short test, and users of
// one browser share nothing if each has a browser context of its own.
var sharedBrowser = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium.Path()), chromedp.NoSandbox,
		chromedp.Flag("lang", "ko-KR"), chromedp.Flag("accept-lang", "ko-KR,ko"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stopBrowser = func() { cancel(); stop() }
	return ctx, chromedp.Do(ctx)
})

// stopBrowser stops the shared browser, if it was started.
var stopBrowser = func() {}

// newPage opens a tab for a user, on a phone's screen.
func newPage(t testing.TB, base string) *page {
	t.Helper()
	chromium.Need(t)
	shared, err := sharedBrowser()
	if err != nil {
		t.Fatal(err)
	}
	return newUser(t, shared, base)
}

// another opens a tab for another user.
func (p *page) another(t testing.TB) *page {
	t.Helper()
	return newUser(t, p.ctx, p.base)
}

// newUser opens a tab that shares neither cookies nor storage with any other.
func newUser(t testing.TB, browser context.Context, base string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return watched(t, ctx, base)
}

func watched(t testing.TB, ctx context.Context, base string) *page {
	t.Helper()
	p := &page{t: t, ctx: ctx, base: base, patience: patience}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	console := chromedp.Console(ctx)
	go func() {
		for message, err := range console {
			if err != nil {
				return
			}
			text := fmt.Sprintf("%s: %s (%s)", message.Type, message.Text, message.URL)
			if (message.Type == "error" || message.Type == chromedp.ConsoleException) && strings.Contains(text, p.base) {
				p.mu.Lock()
				p.complaints = append(p.complaints, text)
				p.mu.Unlock()
			}
		}
	}()
	t.Cleanup(p.complain)
	return p
}

// expect names browser errors that the test causes intentionally, such as an answer of 409.
func (p *page) expect(parts ...string) { p.expected = append(p.expected, parts...) }

func (p *page) complain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, complaint := range p.complaints {
		known := false
		for _, part := range p.expected {
			known = known || strings.Contains(complaint, part)
		}
		if !known {
			p.t.Errorf("the browser reports: %s", complaint)
		}
	}
	if p.t.Failed() {
		p.shotOfFailure()
	}
}

// shotOfFailure stores a screenshot of the page of a failed test.
func (p *page) shotOfFailure() {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return
	}
	name := filepath.Join(os.TempDir(), strings.ReplaceAll(p.t.Name(), "/", "-")+".png")
	if os.WriteFile(name, picture, 0o644) == nil {
		p.t.Logf("what the page looked like: %s", name)
	}
	if text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`)); err == nil {
		p.t.Log(text)
	}
}

func (p *page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// open navigates to an address of the site.
func (p *page) open(path string) {
	p.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = p.base + path
	}
	p.do("open "+path, chromedp.Navigate(path))
}

// value evaluates an expression in the page.
func value[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.80s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true in the page. It ignores errors, because evaluation fails during a navigation.
func (p *page) wait(what, expression string) {
	p.t.Helper()
	deadline := time.Now().Add(p.patience)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`))
		cancel()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %s (%v)", what, p.patience, err)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func quoted(s string) string {
	q, _ := json.Marshal(s) // a string can always be encoded
	return string(q)
}

// see waits until the page shows each of the texts.
func (p *page) see(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.wait("see "+text, `document.body.innerText.replace(/\s+/g, " ").includes(`+quoted(text)+`)`)
	}
}

// sees reports whether the page currently shows a text.
func (p *page) sees(text string) bool {
	p.t.Helper()
	return value[bool](p, `document.body.innerText.replace(/\s+/g, " ").includes(`+quoted(text)+`)`)
}

// enabled returns the names of the visible buttons that match a selector and can be pressed.
func (p *page) enabled(selector string) string {
	p.t.Helper()
	return value[string](p, `[...document.querySelectorAll("button")].filter(b => b.matches(`+quoted(selector)+`) && !b.disabled && b.checkVisibility()).map(b => b.innerText.trim()).join(", ")`)
}

// at waits until the page has the given address.
func (p *page) at(path string) {
	p.t.Helper()
	p.wait("be at "+path, `location.pathname === `+quoted(path))
}

// finder finds a clickable element by its name, or by a part of it if no name matches in full, in the open dialog or
// otherwise in the page. It scrolls to the element and returns its position, or the element that covers it; window.aim tells
// whether one of that name was clicked since: data that arrive may replace the element by another one at its place.
const finder = `(want => {
	const clickable = "a[href], button, summary, label, td[data-at]";
	const tidy = s => s.replace(/\s+/g, " ").trim();
	const named = e => tidy(e.getAttribute("aria-label") || e.innerText || e.value || "");
	const scope = [...document.querySelectorAll("dialog[open]")].pop() || document;
	const seen = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 && getComputedStyle(e).visibility !== "hidden" };
	const all = [...scope.querySelectorAll(clickable)].filter(e => seen(e) && !e.disabled && !e.ariaBusy && !e.closest("[inert]"));
	const found = all.find(e => named(e) === want) || all.find(e => named(e).includes(want));
	if (!found) return null;
	found.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
	const r = found.getBoundingClientRect();
	const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
	const hit = document.elementFromPoint(x, y);
	if (!window.aim) document.addEventListener("click", e => {
		for (let c = e.target; c; c = c.parentElement) if (c.matches(clickable) && named(c).includes(window.aim.name)) window.aim.clicked = true;
	}, true);
	window.aim = {name: want, clicked: false};
	return hit && (found.contains(hit) || hit.contains(found)) ? {x, y} : {covered: hit ? hit.outerHTML.slice(0, 120) : "outside the window"};
})`

type spot struct {
	X, Y    float64
	Covered string
}

// find waits until a clickable element is visible and no longer moves.
func (p *page) find(name string) spot {
	p.t.Helper()
	deadline := time.Now().Add(p.patience)
	var before spot
	for {
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		found, err := chromedp.Run(ctx, chromedp.Evaluate[*spot](finder+`(`+quoted(name)+`)`))
		cancel()
		if err == nil && found != nil {
			if found.Covered == "" && *found == before {
				return *found
			}
			before = *found
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("find %q: not within %s (%v, %+v)", name, p.patience, err, found)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// press clicks the elements with the given names. It clicks again, as a person would, if the element moved away meanwhile.
func (p *page) press(names ...string) {
	p.t.Helper()
	for _, name := range names {
		for deadline := time.Now().Add(p.patience); ; {
			at := p.find(name)
			p.do("press "+name, chromedp.MouseClickXY(at.X, at.Y))
			if !p.missed() {
				break
			}
			p.t.Logf("%q moved before it was clicked", name)
			if time.Now().After(deadline) {
				p.t.Fatalf("%q was never clicked", name)
			}
		}
	}
}

// nameOf returns the name by which press finds an element. A click by a script is no alternative to a press: browsers do not
// forgive what moves after it.
func (p *page) nameOf(element string) string {
	p.t.Helper()
	return value[string](p, `(e => (e.getAttribute("aria-label") || e.innerText).replace(/\s+/g, " ").trim())(`+element+`)`)
}

// pressTwice clicks twice where an element is before the first click, as the double press of a user does.
func (p *page) pressTwice(name string) {
	p.t.Helper()
	at := p.find(name)
	p.do("press "+name+" twice", chromedp.MouseClickXY(at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y))
}

// pressUntil presses a button until an expression is true: the service rejects what takes it too long on a busy machine.
func (p *page) pressUntil(name, what, expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(p.patience); ; {
		p.press(name)
		for again := time.Now().Add(30 * time.Second); time.Now().Before(again); time.Sleep(100 * time.Millisecond) {
			if value[bool](p, `Boolean(`+expression+`)`) {
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %s", what, p.patience)
		}
	}
}

// withoutScripts has the page run no scripts from now on.
func (p *page) withoutScripts() {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		p.t.Fatal(err)
	}
	p.unscripted = true
}

// missed reports whether the page remains and the element that find has returned was not clicked.
func (p *page) missed() bool {
	if p.unscripted {
		return false
	}
	for deadline := time.Now().Add(p.patience); ; {
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		missed, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(window.aim && !window.aim.clicked)`))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(deadline) {
			return err == nil && missed // evaluation fails during a navigation that the click has started
		}
	}
}

// fill replaces the content of the field with the given label, in the open dialog or otherwise in the page.
func (p *page) fill(label, text string) {
	p.t.Helper()
	field := `(() => { const scope = [...document.querySelectorAll("dialog[open]")].pop() || document; const l = [...scope.querySelectorAll("label")].find(l => l.htmlFor && l.innerText.trim() === ` + quoted(label) + `); return l && document.getElementById(l.htmlFor) })()`
	p.wait("field "+label, field)
	value[bool](p, `(() => { const f = `+field+`; f.focus(); f.select?.(); return true })()`)
	p.do("fill "+label, chromedp.KeyEvent(text))
}

// keys types the given keys.
func (p *page) keys(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.do("type", chromedp.KeyEvent(keys, options...))
}

// back goes back in the browser's history.
func (p *page) back() {
	p.t.Helper()
	p.away(`history.back()`)
}

// away evaluates an expression that leaves the page, after the answer: a navigation ends the evaluation with an error.
func (p *page) away(expression string) {
	p.t.Helper()
	value[bool](p, `(setTimeout(() => `+expression+`), true)`)
}

// offline disconnects or reconnects the network. Address patterns limit it to matching requests.
func (p *page) offline(cut bool, patterns ...string) {
	p.t.Helper()
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	var rules []*network.Conditions
	for _, pattern := range patterns {
		rules = append(rules, &network.Conditions{URLPattern: pattern, Offline: cut, DownloadThroughput: -1, UploadThroughput: -1})
	}
	params := network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: rules, EmulateOfflineServiceWorker: &cut}
	_, err := chromedp.Call(p.ctx, network.EmulateNetworkConditionsByRule, params)
	state := network.OverrideNetworkStateParams{Offline: cut && patterns[0] == "", DownloadThroughput: -1, UploadThroughput: -1}
	_, stateErr := chromedp.Call(p.ctx, network.OverrideNetworkState, state)
	if err := errors.Join(err, stateErr); err != nil {
		p.t.Fatal(err)
	}
}

// slow gives the network of the page a latency, and a throughput in bytes per second; -1 means unlimited.
func (p *page) slow(latency time.Duration, throughput float64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{
			Latency: float64(latency.Milliseconds()), DownloadThroughput: throughput, UploadThroughput: throughput,
		}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// count returns a function that returns the bytes received over the network since the call, including headers.
func (p *page) count() func() int64 {
	p.t.Helper()
	var total atomic.Int64
	finished := chromedp.Events(p.ctx, network.LoadingFinished)
	go func() {
		for event, err := range finished {
			if err != nil {
				return
			}
			total.Add(int64(event.EncodedDataLength))
		}
	}()
	return total.Load
}
