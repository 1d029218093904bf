package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	downloads "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// console opens the console on a desktop screen and logs in an administrator.
func console(t *testing.T, s *world.Stack, id, password string) *page {
	t.Helper()
	p := newPage(t, s.Pages).on(desktop)
	p.expect("401") // the first request has no session
	p.enterConsole(id, password)
	return p
}

func (p *page) enterConsole(id, password string) {
	p.t.Helper()
	p.open("/console")
	p.see("관리자 로그인")
	p.fill("아이디", id)
	p.fill("비밀번호", password)
	p.press("로그인")
	p.wait("the first page", `/\/(day|overview|cleaning)$/.test(location.pathname)`)
	if value[string](p, `location.pathname`) == "/console/overview" {
		p.open("/console/gangnam/day")
	}
}

// dayAfter returns the next day in the time zone of the demo branches, and its midnight.
func dayAfter() (date string, midnight time.Time) {
	kst := time.FixedZone("KST", 9*3600)
	now := time.Now().In(kst)
	midnight = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, kst)
	return midnight.Format(time.DateOnly), midnight
}

// point is a position in the browser's window, in CSS pixels.
type point struct{ X, Y float64 }

// place returns the position of a room and time on the timeline. It scrolls only if the time is not visible, so the
// positions of two visible times stay valid together.
func (p *page) place(room, minutes int) point {
	p.t.Helper()
	p.wait("the timeline", `document.querySelector(".grid .lane")`)
	return value[point](p, fmt.Sprintf(`(async () => {
		for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame); // it opens at the present
		const grid = document.querySelector(".grid"), slot = parseFloat(grid.style.getPropertyValue("--slot"));
		const row = [...grid.querySelectorAll(".label b")].findIndex(b => b.textContent === "%[1]d"), lane = grid.querySelectorAll(".lane")[row];
		const at = () => lane.getBoundingClientRect().left + (%[2]d / 10 + 0.5) * slot, box = grid.getBoundingClientRect();
		if (at() < box.left + grid.querySelector(".labels").offsetWidth + 20 || at() > box.right - 50) grid.scrollLeft = %[2]d / 10 * slot - 100;
		const r = lane.getBoundingClientRect();
		return {X: at(), Y: r.top + r.height / 2};
	})()`, room, minutes))
}

// drag presses the mouse button, moves in small steps and releases it.
func (p *page) drag(from, to point) {
	p.t.Helper()
	p.mouse(input.DispatchMouseEventTypeMousePressed, from)
	for i := 1; i <= 8; i++ {
		p.mouse(input.DispatchMouseEventTypeMouseMoved, point{from.X + (to.X-from.X)*float64(i)/8, from.Y + (to.Y-from.Y)*float64(i)/8})
	}
	p.mouse(input.DispatchMouseEventTypeMouseReleased, to)
}

// chord presses a key with modifiers.
func (p *page) chord(key string, modifiers int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Code: key, Modifiers: modifiers})
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *page) register(name, mobile string) {
	p.t.Helper()
	p.press("이 시간 잡기")
	p.see("결제 없이 등록")
	p.wait("the phone field has the focus", `document.activeElement?.type === "tel"`)
	p.fill("휴대폰", mobile)
	p.fill("이름", name)
	p.press("예약 등록하기")
	p.see("예약을 등록했어요")
}

// survey checks a screen of the console on desktop and phone, like look. It does not check the size of targets, which may
// be smaller in the console because administrators mostly use a mouse.
func (p *page) survey(name string) {
	p.t.Helper()
	for _, s := range []screen{phone, desktop} {
		p.on(s)
		p.settle()
		p.judgeAccess(name + " on " + s.name)
		for _, narrow := range value[[]string](p, narrowCells) {
			p.t.Errorf("%s on %s: narrower than its card: %s", name, s.name, narrow)
		}
		p.keep(name + "-" + s.name)
	}
}

// narrowCells lists the cells that do not have the width of their card: on a phone, each row of a table is a card.
const narrowCells = `[...document.querySelectorAll(".table td")].filter(td => getComputedStyle(td).display === "flex" &&
	[...td.parentElement.cells].some(other => other.offsetWidth > td.offsetWidth && td.offsetWidth > 0)).map(td => td.outerHTML.slice(0, 140))`

// with makes the page report failures to a subtest until the subtest ends.
func (p *page) with(t *testing.T) *page {
	t.Helper()
	whole := p.t
	t.Cleanup(func() {
		if t.Failed() {
			p.shotOfFailure() // before the next subtest changes the page
		}
		p.t = whole
	})
	p.t = t
	return p
}

// choose selects an option of a drop-down by a part of its text. It finds the drop-down by its label, in the open dialog or
// otherwise in the page.
func (p *page) choose(label, option string) {
	p.t.Helper()
	p.wait("choose "+option+" for "+label, `(() => {
		const scope = [...document.querySelectorAll("dialog[open]")].pop() || document;
		const l = [...scope.querySelectorAll("label")].find(l => l.innerText.trim() === `+quoted(label)+`);
		const s = l ? document.getElementById(l.htmlFor) : [...scope.querySelectorAll("select")].find(s => s.ariaLabel === `+quoted(label)+`);
		const o = s && [...s.options].find(o => !o.disabled && o.text.includes(`+quoted(option)+`));
		if (!o) return false;
		s.value = o.value;
		s.dispatchEvent(new Event("change", {bubbles: true}));
		return true })()`)
}

// date sets a date or month field, like the browser's picker.
func (p *page) date(name, day string) {
	p.t.Helper()
	p.wait("date "+name, `(() => {
		const scope = [...document.querySelectorAll("dialog[open]")].pop() || document;
		const l = [...scope.querySelectorAll("label")].find(l => l.innerText.trim() === `+quoted(name)+`);
		const f = l && document.getElementById(l.htmlFor) || [...scope.querySelectorAll("input")].filter(i => i.ariaLabel === `+quoted(name)+`).pop();
		if (!f) return false;
		f.value = `+quoted(day)+`;
		f.dispatchEvent(new Event("input", {bubbles: true}));
		f.dispatchEvent(new Event("change", {bubbles: true}));
		return true })()`)
}

// download presses a button and returns the downloaded file.
func (p *page) download(button string) (name, content string) {
	p.t.Helper()
	dir := p.t.TempDir()
	_, err := chromedp.CallBrowser(p.ctx, downloads.SetDownloadBehavior, downloads.SetDownloadBehaviorParams{
		Behavior: downloads.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID})
	if err != nil {
		p.t.Fatal(err)
	}
	p.press(button)
	until(p.t, "the file of "+button, func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			if !strings.HasSuffix(file, ".crdownload") {
				body, err := os.ReadFile(file)
				name, content = filepath.Base(file), string(body)
				return err == nil && len(body) > 0
			}
		}
		return false
	})
	return name, content
}

// finger sends a touch event at a point; without a point the finger is lifted.
func (p *page) finger(kind input.DispatchTouchEventType, at ...point) {
	p.t.Helper()
	points := []*input.TouchPoint{}
	for _, a := range at {
		points = append(points, &input.TouchPoint{X: a.X, Y: a.Y})
	}
	if _, err := chromedp.Call(p.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points}); err != nil {
		p.t.Fatal(err)
	}
}

// dialogs returns the number of open dialogs.
func (p *page) dialogs() int {
	p.t.Helper()
	return value[int](p, `document.querySelectorAll("dialog[open]").length`)
}
