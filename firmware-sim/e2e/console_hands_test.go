package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The modifier keys as bits of the DevTools protocol.
const (
	alt   = 1
	shift = 8
)

// grip scrolls to the right edge of a guest's reservation and returns its position.
func (p *page) grip(name string) point {
	p.t.Helper()
	edge := `[...document.querySelectorAll(".block")].find(b => b.innerText.includes(` + quoted(name) + `))?.querySelector(".edge")`
	p.wait("the edge of "+name, edge)
	return value[point](p, `(async () => { for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame); const e = `+edge+`; e.scrollIntoView({block: "center", inline: "center"}); const r = e.getBoundingClientRect(); return {X: r.left + r.width / 2, Y: r.top + r.height / 2} })()`)
}

// Every change that can be made by dragging works with the mouse, a finger, the keyboard and a form. Escape cancels it.
func TestConsoleHands(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, _ := dayAfter()
	p := console(t, s, "gangnam-manager", "gangnam-demo")
	p.open("/console/gangnam/day/" + date)
	p.see("시간표")
	p.drag(p.place(1, 10*60), p.place(1, 10*60+50))
	p.see("1번 룸 · 10:00–11:00")
	p.register("이도윤", "01020304050")
	p.see("이도윤 10:00–11:00")

	story := func(name string, tell func(t *testing.T, p *page)) {
		t.Run(name, func(t *testing.T) {
			p.with(t).on(desktop).open("/console/gangnam/day/" + date)
			p.see("이도윤")
			tell(t, p)
		})
	}

	story("the edge makes it longer", func(t *testing.T, p *page) {
		from := p.grip("이도윤")
		slot := value[float64](p, `parseFloat(document.querySelector(".grid").style.getPropertyValue("--slot"))`)
		p.drag(from, point{from.X + 3*slot, from.Y})
		p.see("예약 변경", "10:00–11:30")
		p.survey("console-move")
		p.on(desktop).press("변경하기")
		p.see("변경했어요", "이도윤 10:00–11:30")
	})

	story("the margins move along", func(t *testing.T, p *page) {
		from := p.place(1, 10*60+20)
		to := p.place(1, 13*60+20)
		p.mouse(input.DispatchMouseEventTypeMousePressed, from)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, point{from.X + 10, from.Y})
		p.mouse(input.DispatchMouseEventTypeMouseMoved, to)
		p.see("13:00–14:30")
		type look struct {
			Before, After, Slot float64
			Pattern             string
		}
		l := value[look](p, `(() => { const g = document.querySelector(".ghost"), [b, a] = ["::before", "::after"].map(e => getComputedStyle(g, e));
			return {Before: parseFloat(b.width), After: parseFloat(a.width), Slot: parseFloat(document.querySelector(".grid").style.getPropertyValue("--slot")), Pattern: b.backgroundImage} })()`)
		if l.Before != l.Slot || l.After != l.Slot || !strings.Contains(l.Pattern, "gradient") {
			t.Errorf("margins %+v", l)
		}
		p.keep("console-drag-desktop")
		p.keys(kb.Escape)
		p.mouse(input.DispatchMouseEventTypeMouseReleased, to)
		p.wait("nothing is held", `document.querySelector(".ghost").hidden && !document.querySelector(".grid.dragging")`)
		if n := p.dialogs(); n != 0 {
			t.Errorf("%d dialogs after Escape", n)
		}
	})

	story("keys make it longer and move it", func(t *testing.T, p *page) {
		value[bool](p, `(document.querySelector(".block.staff").focus(), true)`)
		p.chord("ArrowRight", alt|shift)
		p.chord("ArrowDown", alt)
		p.wait("it is said", `document.querySelector("[aria-live=assertive]").textContent.includes("2번 룸 10:00–11:40")`)
		p.chord("Escape", 0)
		p.wait("given up", `document.querySelector(".ghost").hidden`)
		p.chord("ArrowLeft", alt|shift)
		p.chord("Enter", 0)
		p.see("예약 변경", "10:00–11:20")
		p.press("변경하기")
		p.see("변경했어요", "이도윤 10:00–11:20")
	})

	story("keys reserve", func(t *testing.T, p *page) {
		value[bool](p, `(document.querySelector(".cursor").focus(), true)`)
		p.wait("a time is offered", `!document.querySelector(".ghost").hidden`)
		before := value[string](p, `document.querySelector(".ghost").textContent`)
		for range 2 {
			p.chord("ArrowDown", 0)
		}
		p.chord("ArrowRight", shift)
		p.wait("longer, and elsewhere", `document.querySelector(".ghost").textContent !== `+quoted(before))
		p.keys(kb.Enter)
		p.see("예약 등록", "3번 룸", "이 시간 잡기")
		p.survey("console-reserve")
		p.on(desktop).press("이 시간 잡기")
		p.see("결제 없이 등록")
		p.wait("the hold runs out", `/^[45]:\d\d$/.test(document.querySelector("dialog [role=timer]").textContent)`)
		p.survey("console-register")
		p.on(desktop)
		p.press("돌아가기") // releases the hold immediately
		p.wait("no hold is left", `!document.querySelector(".block.hold")`)
	})

	story("a form moves it", func(t *testing.T, p *page) {
		p.press("이도윤", "시간·룸 변경")
		p.choose("룸", "4번 룸")
		p.choose("시작", "16:00")
		p.choose("이용 시간", "40분")
		p.see("4번 룸", "16:00–16:40", "이도윤 · 010-2030-4050", "금액은 그대로예요", "고객에게 변경 안내 보내기")
		p.press("변경하기")
		p.see("변경했어요", "이도윤 16:00–16:40")
	})

	story("a move is taken back", func(t *testing.T, p *page) {
		value[bool](p, `(document.querySelector(".block.staff").focus(), true)`)
		p.chord("ArrowRight", alt)
		p.chord("Enter", 0)
		p.see("예약 변경", "16:10–16:50")
		p.press("변경하기")
		p.see("이도윤 16:10–16:50")
		p.press("실행 취소")
		p.see("되돌렸어요", "이도윤 16:00–16:40")
	})

	story("a finger rests, then reserves", func(t *testing.T, p *page) {
		p.on(phone).open("/console/gangnam/day/" + date)
		p.press("시간표")
		p.wait("the timeline", `document.querySelector(".grid .lane")`)
		from := p.place(6, 20*60)
		slot := value[float64](p, `parseFloat(document.querySelector(".grid").style.getPropertyValue("--slot"))`)
		p.finger(input.DispatchTouchEventTypeTouchStart, from)
		p.wait("the finger holds", `document.querySelector(".grid.dragging")`)
		for i := range 5 {
			p.finger(input.DispatchTouchEventTypeTouchMove, point{from.X + float64(i)*slot/2, from.Y})
		}
		p.finger(input.DispatchTouchEventTypeTouchEnd)
		p.see("예약 등록", "6번 룸 · 20:00–20:30")
		p.press("닫기")
	})

	story("a finger that moves at once scrolls", func(t *testing.T, p *page) {
		p.on(phone).open("/console/gangnam/day/" + date)
		p.press("시간표")
		p.wait("the timeline", `document.querySelector(".grid .lane")`)
		from := p.place(6, 12*60)
		before := value[float64](p, `document.querySelector(".grid").scrollLeft`)
		p.finger(input.DispatchTouchEventTypeTouchStart, from)
		for i := 1; i <= 10; i++ {
			p.finger(input.DispatchTouchEventTypeTouchMove, point{from.X - float64(i)*12, from.Y})
		}
		p.finger(input.DispatchTouchEventTypeTouchEnd)
		p.wait("the timeline has scrolled", `document.querySelector(".grid").scrollLeft > `+fmt.Sprint(before+40))
		if n := p.dialogs(); n != 0 || value[bool](p, `!document.querySelector(".ghost").hidden`) {
			t.Errorf("scrolling has chosen a time (%d dialogs)", n)
		}
	})

	story("zoom, and the days", func(t *testing.T, p *page) {
		width := func() float64 { return value[float64](p, `document.querySelector(".plane").offsetWidth`) }
		before := width()
		p.press("크게")
		if after := width(); after <= before {
			t.Errorf("larger: %v after %v", after, before)
		}
		p.press("작게", "작게")
		if after := width(); after >= before {
			t.Errorf("smaller: %v after %v", after, before)
		}
		p.press("크게")
		p.press("다음 날")
		p.wait("another day", `!location.pathname.endsWith(`+quoted(date)+`)`)
		p.press("이전 날")
		p.see("이도윤")
		p.press("날짜 선택")
		p.see("월", "화")
		p.survey("console-month")
		p.on(desktop).press("다음 달", "이전 달")
		p.press("닫기")
		p.press("목록")
		p.wait("the list", `document.querySelector(".daylist")`)
		p.see("이도윤", "16:00–16:40", "4번 룸")
		p.survey("console-list")
		p.on(desktop).press("시간표")
	})

	story("finding somebody", func(t *testing.T, p *page) {
		field := `document.querySelector(".find input")`
		value[bool](p, `(`+field+`.focus(), true)`)
		p.keys("4050")
		p.wait("the others fade", `!document.querySelector(".block.staff").classList.contains("dim")`)
		p.keys("9")
		p.wait("nobody fits", `document.querySelector(".block.staff").classList.contains("dim")`)
		p.press("전체 예약 검색")
		p.fill("이름, 전화번호, 주문 번호", "이도")
		p.press("찾기")
		p.see("이도윤 · 010-****-4050")
		p.survey("console-search")
		p.on(desktop).press("열기")
		p.see("있었던 일", "010-2030-4050")
	})
}

// mouse sends one mouse event with the left button pressed.
func (p *page) mouse(kind input.DispatchMouseEventType, at point) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
	if err != nil {
		p.t.Fatal(err)
	}
}
