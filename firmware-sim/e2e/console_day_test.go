package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/internal/stack"
)

// console opens the console for an administrator, on a desk.
func console(t *testing.T, s *stack.Stack, id, password string) *page {
	t.Helper()
	p := newPage(t, s.Pages).on(desktop)
	p.expect("401") // nobody is logged in yet
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
	p.wait("a day", `/\/day$/.test(location.pathname)`)
}

// dayAfter is the next day of the demo branches, with the first minute of it.
func dayAfter() (date string, midnight time.Time) {
	kst := time.FixedZone("KST", 9*3600)
	now := time.Now().In(kst)
	midnight = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, kst)
	return midnight.Format(time.DateOnly), midnight
}

// point is where a time in a room is on the timeline that is shown.
type point struct{ X, Y float64 }

// place brings a time of the day into sight and says where it is.
func (p *page) place(room, minutes int) point {
	p.t.Helper()
	return value[point](p, fmt.Sprintf(`(() => {
		const grid = document.querySelector(".grid"), slot = parseFloat(grid.style.getPropertyValue("--slot"));
		grid.scrollLeft = %[2]d / 10 * slot - 200;
		const row = [...grid.querySelectorAll(".label b")].findIndex(b => b.textContent === "%[1]d");
		const r = grid.querySelectorAll(".lane")[row].getBoundingClientRect();
		return {X: r.left + (%[2]d / 10 + 0.5) * slot, Y: r.top + r.height / 2};
	})()`, room, minutes))
}

// drag presses, moves in steps as a hand does, and lets go.
func (p *page) drag(from, to point) {
	p.t.Helper()
	mouse := func(kind input.DispatchMouseEventType, at point) {
		_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	mouse(input.DispatchMouseEventTypeMousePressed, from)
	for i := 1; i <= 8; i++ {
		mouse(input.DispatchMouseEventTypeMouseMoved, point{from.X + (to.X-from.X)*float64(i)/8, from.Y + (to.Y-from.Y)*float64(i)/8})
	}
	mouse(input.DispatchMouseEventTypeMouseReleased, to)
}

// alt is the modifier key, as the protocol counts them.
const alt = 1

// chord presses a key together with modifiers.
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
	p.fill("휴대폰", mobile)
	p.fill("이름", name)
	p.press("예약 등록하기")
	p.see("예약을 등록했어요")
}

func TestConsoleDay(t *testing.T) {
	s := startStack(t, nil)
	date, midnight := dayAfter()
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	p.see("시간표", "아쿠아 스파 베드 A1")

	// By dragging free space: an hour and twenty minutes in room 2.
	p.drag(p.place(2, 10*60), p.place(2, 11*60+10))
	p.see("2번 룸 · 10:00–11:20")
	p.register("김서연", "01023456789")
	p.see("김서연 10:00–11:20")
	p.survey("console-day")

	// Dragging it to room 3, an hour later: margins and all.
	p.drag(p.place(2, 10*60+20), p.place(3, 11*60+20))
	p.see("예약 변경", "3번 룸", "11:00–12:20")
	p.press("변경하기")
	p.see("변경했어요")
	p.wait("the block in room 3", `[...document.querySelectorAll(".lane")][2].innerText.includes("11:00–12:20")`)

	// With keys, ten minutes on and one room down.
	value[bool](p, `(document.querySelector(".block").focus(), true)`)
	p.chord("ArrowRight", alt)
	p.chord("ArrowDown", alt)
	p.chord("Enter", 0)
	p.see("4번 룸", "11:10–12:30")
	p.press("변경하기")
	p.wait("the block in room 4", `[...document.querySelectorAll(".lane")][3].innerText.includes("11:10–12:30")`)

	// Where it cannot go it does not go, and it is said why.
	p.drag(p.place(4, 11*60+20), p.place(4, 10*60))
	p.see("예약 변경")
	p.press("돌아가기")

	t.Run("what happened", func(t *testing.T) {
		p := p.with(t)
		p.press("김서연")
		p.see("있었던 일", "예약 등록", "변경", "메시지", "01023456789")
		p.survey("console-record")
		p.press("열쇠 메시지 다시 보내기")
		p.see("다시 보냈어요")
		p.press("취소·환불")
		p.see("예약 취소")
		p.press("예약 취소하기")
		p.see("취소했어요")
	})

	t.Run("a deposit appears by itself", func(t *testing.T) {
		p := p.with(t)
		p.open("/console/gangnam/day/" + date)
		p.press("예약 등록")
		p.press("이 시간 잡기")
		p.press("가상계좌 발급")
		p.fill("휴대폰", "01055556666")
		p.fill("이름", "최하은")
		value[bool](p, `(() => { const b = [...document.querySelectorAll("dialog select")].pop(); b.value = b.options[1].value; b.dispatchEvent(new Event("change")); return true })()`)
		p.press("가상계좌 발급하기")
		p.see("입금을 기다리고 있어요", "주문 번호")
		order := value[string](p, `[...document.querySelectorAll("dl.facts div")].find(d => d.innerText.startsWith("주문 번호")).querySelector("code").textContent`)
		p.see("최하은")
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
		began := time.Now()
		p.wait("the deposit in the timeline", `[...document.querySelectorAll(".block.paid")].some(b => b.innerText.includes("최하은"))`)
		took := time.Since(began)
		t.Logf("shown %s after the deposit", took)
		if took > time.Second {
			t.Errorf("the deposit took %s to appear, want at most 1 s", took)
		}
		p.see("결제 완료")
	})

	t.Run("two administrators", func(t *testing.T) {
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		start := midnight.Add(20 * time.Hour)
		hq.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 5, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
		hq.must("POST", "/admin/payment", map[string]any{"name": "한지우"}, nil)
		p := p.with(t)
		p.expect("409")
		p.open("/console/gangnam/day/" + date)
		p.press("한지우")
		p.press("시간·룸 변경")
		p.see("변경 후")
		id := value[string](p, `new URLSearchParams(location.search).get("r")`)
		hq.must("PUT", "/admin/reservation/"+id, map[string]any{"room": "6", "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
		value[bool](p, `(() => { const r = [...document.querySelectorAll("dialog[open]")].pop().querySelector("select"); r.value = "1"; r.dispatchEvent(new Event("change")); return true })()`)
		p.press("변경하기")
		p.see("그 사이 다른 관리자가 바꿨어요. 지금은 6번 룸")
		p.press("변경하기")
		p.see("변경했어요")
	})
}

// survey looks at a screen of the console as look does, on a desk and on a phone. On a desk, where people work with a
// mouse, targets may be smaller than a thumb.
func (p *page) survey(name string) {
	p.t.Helper()
	for _, s := range []screen{phone, desktop} {
		p.on(s)
		p.settle()
		p.judgeAccess(name + " on " + s.name)
		p.keep(name + "-" + s.name)
	}
}

// with lets a subtest use the page and fail by itself.
func (p *page) with(t *testing.T) *page {
	t.Helper()
	p.t = t
	return p
}

func TestConsoleFallsBackToPolling(t *testing.T) {
	s := startStack(t, nil)
	p := console(t, s, "gangnam-manager", "gangnam-demo")
	p.see("예약 현황")
	if p.sees("실시간 연결이 끊겼어요") {
		t.Fatal("not live from the beginning")
	}
	p.expect("WebSocket", "Failed to load", "ERR_")
	if err := s.Signal(stack.Service, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.see("실시간 연결이 끊겼어요")
	if err := s.Run(t.Context(), stack.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	p.wait("live again", `!document.body.innerText.includes("실시간 연결이 끊겼어요")`)
	if strings.Contains(value[string](p, `document.querySelector(".switcher").innerText`), "홍대") {
		t.Error("a manager sees branches that are not his")
	}
}
