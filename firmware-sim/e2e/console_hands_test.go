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
		p.keys(kb.Escape)
		p.wait("one press closes the form", `!document.querySelector("dialog[open]") && document.querySelector(".ghost").hidden`)
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
		p.press("주간")
		p.see("이번 주", "1건")
		p.survey("console-week")
		p.on(desktop)
		p.wait("the day of the reservation", `[...document.querySelectorAll(".weektable td a")].find(a => a.innerText.includes("1건")).click() === undefined`)
		p.see("이도윤")
		p.press("목록")
		p.wait("the list", `document.querySelector(".daylist")`)
		p.see("이도윤", "16:00–16:40", "4번 룸")
		p.survey("console-list")
		p.on(desktop).press("시간표")
	})

	story("a card beside a block", func(t *testing.T, p *page) {
		card := `document.querySelector(".blockcard:not([hidden])")`
		p.keys("\t")
		value[bool](p, `(document.querySelector(".block.staff").focus(), true)`)
		p.wait("the card", card+`?.innerText.includes("010-****-4050") && document.activeElement.getAttribute("aria-describedby") === "blockcard"`)
		p.judgeAccess("console-card")
		p.keep("console-card")
		p.keys(kb.Escape)
		p.wait("no card", `!`+card)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, value[point](p, `(() => { const r = document.querySelector(".block.staff").getBoundingClientRect(); return {X: r.left + 8, Y: r.top + 8} })()`))
		p.wait("the card under the pointer", card+`?.innerText.includes("이도윤")`)
	})

	story("finding somebody", func(t *testing.T, p *page) {
		found := func(text string) {
			p.wait("the result "+text, `[...document.querySelectorAll("[role=option]")].some(o => o.innerText.includes(`+quoted(text)+`))`)
		}
		p.keys("/")
		p.wait("the search has the focus", `document.activeElement?.role === "combobox"`)
		for _, words := range []string{"010-2030-4050", "01020304050", "4050", "도윤"} {
			p.fill("이름·전화번호·룸·지점·주문 번호", words)
			found("이도윤 · 010-****-4050")
		}
		p.survey("console-search")
		p.on(desktop).fill("이름·전화번호·룸·지점·주문 번호", "강남 3번")
		found("열다 강남점 3번 룸")
		p.fill("이름·전화번호·룸·지점·주문 번호", "도윤")
		found("이도윤")
		p.chord("ArrowDown", 0)
		p.chord("ArrowUp", 0)
		p.wait("an active option", `document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.ariaSelected === "true"`)
		p.keys(kb.Enter)
		p.see("고객 정보", "010-2030-4050", "남긴 메모가 없어요")
	})

	story("handover", func(t *testing.T, p *page) {
		p.press("인수인계")
		p.see("다음 근무자에게 남긴 메모가 없어요")
		p.fill("새 메모", "3번 룸 전구 교체")
		p.keys(kb.Escape)
		p.press("인수인계")
		p.see("저장하지 않은")
		p.wait("the draft", `[...document.querySelectorAll("dialog input")].some(i => i.value === "3번 룸 전구 교체")`)
		p.press("메모 남기기")
		p.wait("the number of open notes", `document.querySelector(".heading .count")?.innerText === "1"`)
		p.survey("console-handover")
		p.on(desktop).press("완료")
		p.see("완료 gangnam-manager", "다시 열기")
		p.keys(kb.Escape)
		p.wait("nothing is open", `!document.querySelector(".heading .count")`)
	})

	story("a guest", func(t *testing.T, p *page) {
		p.press("이도윤", "고객 정보")
		p.see("예약 내역", "남긴 메모가 없어요")
		p.fill("새 메모", "조용한 룸을 좋아해요")
		guest := value[string](p, `location.pathname`)
		p.open("/console/gangnam/doors")
		p.open(guest)
		p.wait("the draft", `[...document.querySelectorAll("main input")].some(i => i.value === "조용한 룸을 좋아해요")`)
		p.press("메모 남기기")
		p.see("gangnam-manager")
		p.press("예약 막기")
		p.fill("사유", "기물 파손")
		p.survey("console-guest-block")
		p.on(desktop).press("예약 막기")
		p.see("예약을 막은 고객", "기물 파손")
		p.survey("console-guest")
		p.on(desktop)
		p.press("예약 다시 허용")
		p.see("다시 예약할 수 있어요")
	})

	story("keys press the buttons", func(t *testing.T, p *page) {
		p.wait("the key is named", `[...document.querySelectorAll("[aria-keyshortcuts=n]")].some(b => b.title === "예약 등록 (n)")`)
		p.keys("?")
		p.see("단축키", "전체 검색", "다음 날")
		p.survey("console-shortcuts")
		p.on(desktop).keys("n")
		if n := p.dialogs(); n != 1 {
			t.Fatalf("%d dialogs: a key pressed a button below the dialog", n)
		}
		p.keys(kb.Escape)
		p.keys("j")
		p.wait("the next day", `!location.pathname.endsWith(`+quoted(date)+`)`)
		p.keys("k")
		p.see("이도윤")
		// With a Korean input method, the event names the syllable and the place of the key.
		value[bool](p, `document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "ㅜ", code: "KeyN", bubbles: true}))`)
		p.see("예약 등록", "이 시간 잡기")
		p.keys(kb.Escape)
		p.keys("9")
		p.see("운영 시간")
		value[bool](p, `(document.querySelector("main input[type=text], main input[type=tel]").focus(), true)`)
		p.keys("1")
		p.wait("the field has the digit", `document.activeElement.value.includes("1")`)
		if place := value[string](p, `location.pathname`); !strings.HasSuffix(place, "/settings") {
			t.Errorf("typing in a field led to %s", place)
		}
		value[bool](p, `(document.activeElement.blur(), true)`)
		p.keys("?")
		p.press("한 글자 단축키 사용")
		p.keys(kb.Escape)
		p.keys("1")
		if place := value[string](p, `location.pathname`); !strings.HasSuffix(place, "/settings") {
			t.Errorf("a key that is switched off led to %s", place)
		}
		p.press("단축키", "한 글자 단축키 사용")
		p.keys(kb.Escape)
		p.keys("1")
		p.wait("the day", `location.pathname.endsWith("/day")`)
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
