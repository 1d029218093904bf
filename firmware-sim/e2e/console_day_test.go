package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestConsolePhoneBooking books for a known guest who calls, without a mouse.
func TestConsolePhoneBooking(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, map[string]string{"YEOLDA_ADMIN_HOLD_TTL": "20m"})
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	date, midnight := dayAfter()
	hq.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 1, "startDateTime": wireTime(midnight.Add(9 * time.Hour)), "endDateTime": wireTime(midnight.Add(10 * time.Hour))}, nil)
	hq.must("POST", "/admin/payment", map[string]any{"name": "박지훈", "mobileNum": "01011112222"}, nil)

	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	p.see("박지훈 09:00–10:00")
	pressed, began := 0, time.Now()
	press := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			p.keys(key)
			pressed++
		}
	}
	const tab, enter = "\t", "\r"
	press("n")
	p.see("예약 등록")
	press("2", tab, "1", "5", tab, tab, enter) // room 2 at 15:00 for an hour
	p.wait("the phone field", `document.activeElement?.type === "tel"`)
	press(strings.Split("01011112222", "")...)
	press(enter)
	p.see("예약을 등록했어요", "박지훈 15:00–16:00")
	t.Logf("%d keys in %v", pressed, time.Since(began).Round(10*time.Millisecond))
	if pressed > 25 {
		t.Errorf("%d keys, want at most 25", pressed)
	}
	var found struct {
		Reservations []struct{ RoomNo, Name string }
	}
	hq.must("GET", "/v2/admin/reservations?query=01011112222", nil, &found)
	if len(found.Reservations) != 2 || found.Reservations[0].Name != "박지훈" {
		t.Errorf("reservations %+v, want two of the guest", found.Reservations)
	}

	// A second tab holds another room: the form of the first one registers no guest there.
	p.expect("401")
	ctx, cancel := chromedp.NewContext(p.ctx)
	t.Cleanup(cancel)
	other := watched(t, ctx, p.base).on(desktop)
	other.open("/console/gangnam/day/" + date)
	for tab, room := range map[*page]string{p: "3번 룸", other: "4번 룸"} {
		tab.press("예약 등록")
		tab.choose("룸", room)
	}
	p.press("이 시간 잡기")
	p.see("결제 없이 등록")
	p.wait("the end of the hold, as the setting says", `/^1[89]:/.test(document.querySelector(".held .left").innerText)`)
	other.press("이 시간 잡기")
	other.see("결제 없이 등록")
	p.fill("휴대폰", "01033334444")
	p.press("예약 등록하기")
	p.see("예약 세션이 만료됐어요")
	p.press("다시 잡기", "이 시간 잡기")
	p.see("저장하지 않은 내용을 다시 불러왔어요")
	p.press("예약 등록하기")
	p.wait("the registration", `!document.querySelector("dialog[open]")`)
	hq.must("GET", "/v2/admin/reservations?query=01033334444", nil, &found)
	if len(found.Reservations) != 1 || found.Reservations[0].RoomNo != "3" {
		t.Errorf("reservations %+v, want room 3 as the form has shown", found.Reservations)
	}

	// A guest holds what the second tab still shows. The tab does not release that hold when its form is closed.
	guest := newBrowser(t, s)
	guest.must("POST", "/reservation", map[string]any{"branch": "gangnam", "room": 4, "startDateTime": wireTime(midnight.Add(10 * time.Hour)), "endDateTime": wireTime(midnight.Add(10*time.Hour + 30*time.Minute))}, nil)
	other.wait("the hold of the guest", `document.querySelectorAll(".lane")[3].innerText.includes("10:00–10:30")`)
	const days = `performance.getEntriesByType("resource").filter(e => e.name.includes("/timeline")).length`
	before := value[int](other, days)
	other.press("닫기")
	other.wait("the day before and after the release", fmt.Sprintf("%s >= %d", days, before+2))
	guest.must("GET", "/v2/hold", nil, nil)
}

func TestConsoleDay(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, _ := dayAfter()
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	p.see("시간표", "아쿠아 스파 베드 A1")

	// Dragging over free space selects an hour and twenty minutes in room 2.
	p.drag(p.place(2, 10*60), p.place(2, 11*60+10))
	p.see("2번 룸 · 10:00–11:20")
	p.register("김서연", "01023456789")
	p.see("김서연 10:00–11:20")
	p.survey("console-day")

	// The reservation is dragged to room 3, one hour later. Its margins move with it.
	p.drag(p.place(2, 10*60+20), p.place(3, 11*60+20))
	p.see("예약 변경", "3번 룸", "11:00–12:20")
	p.press("변경하기")
	p.see("변경했어요")
	p.wait("the block in room 3", `[...document.querySelectorAll(".lane")][2].innerText.includes("11:00–12:20")`)

	// The keys move it ten minutes later and one room down. Its earlier time may still be in quarantine, as a block of its own.
	value[bool](p, `(document.querySelector(".block.staff").focus(), true)`)
	p.chord("ArrowRight", alt)
	p.chord("ArrowDown", alt)
	p.chord("Enter", 0)
	p.see("4번 룸", "11:10–12:30")
	p.press("변경하기")
	p.wait("the block in room 4", `[...document.querySelectorAll(".lane")][3].innerText.includes("11:10–12:30")`)

	// Another drag opens the form again, and the administrator cancels the move.
	p.drag(p.place(4, 11*60+20), p.place(4, 10*60))
	p.see("예약 변경")
	p.press("돌아가기")

	t.Run("what happened", func(t *testing.T) {
		p := p.with(t)
		p.press("김서연")
		p.see("있었던 일", "예약 등록", "변경", "메시지", "010-2345-6789")
		p.survey("console-record")
		p.press("열쇠 메시지 다시 보내기")
		p.see("다시 보냈어요")
		p.press("취소·환불")
		p.see("예약 취소")
		p.choose("사유 (선택)", "고객 요청")
		p.press("예약 취소하기")
		p.see("취소했어요", "고객 요청")
	})

	t.Run("a cancelled reservation is still found", func(t *testing.T) {
		p := p.with(t)
		p.open("/console/gangnam/day/" + date)
		p.press("목록")
		p.see("취소된 예약 보기 (1)")
		p.press("취소된 예약 보기")
		p.see("김서연", "취소됨")
		p.press("시간표")
		p.wait("the cancelled one is a strip", `document.querySelector(".gone")?.innerText.includes("김서연")`)
		p.survey("console-canceled")
		p.on(desktop)
	})

	t.Run("a deposit appears by itself", func(t *testing.T) {
		p := p.with(t)
		p.open("/console/gangnam/day/" + date)
		p.press("예약 등록")
		p.press("이 시간 잡기")
		p.press("가상계좌 발급")
		p.fill("휴대폰", "01055556666")
		p.fill("이름", "최하은")
		p.fill("금액", "28,000원") // as amounts are typed in the other forms
		p.wait("the banks", `[...document.querySelectorAll("dialog select")].pop()?.options.length > 1`)
		value[bool](p, `(() => { const b = [...document.querySelectorAll("dialog select")].pop(); b.value = b.options[1].value; b.dispatchEvent(new Event("change")); return true })()`)
		p.press("가상계좌 발급하기")
		p.see("28,000원 입금을 기다리고 있어요", "주문 번호")
		order := value[string](p, `[...document.querySelectorAll("dl.facts div")].find(d => d.innerText.startsWith("주문 번호")).querySelector("code").textContent`)
		p.see("최하은")
		p.wait("the account as a picture", `document.querySelector("svg.qr path")`)
		p.survey("console-account-waiting")
		p.on(desktop)
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
		began := time.Now()
		p.wait("the deposit in the timeline", `[...document.querySelectorAll(".block.paid")].some(b => b.innerText.includes("최하은"))`)
		t.Logf("shown %s after the deposit", time.Since(began))
		if p.sees("실시간 연결이 끊겼어요") {
			t.Error("the deposit was found by polling, not announced")
		}
		p.see("결제 완료")
	})
}

func TestConsoleFallsBackToPolling(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "gangnam-manager", "gangnam-demo")
	p.see("예약 현황")
	if p.sees("실시간 연결이 끊겼어요") {
		t.Fatal("not live from the beginning")
	}
	p.expect("WebSocket", "Failed to load", "ERR_")
	if err := s.Signal(world.Service, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.see("실시간 연결이 끊겼어요")
	if err := s.Run(t.Context(), world.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	p.wait("live again", `!document.body.innerText.includes("실시간 연결이 끊겼어요")`)
	if strings.Contains(value[string](p, `document.querySelector(".switcher").innerText`), "홍대") {
		t.Error("a manager sees branches that are not his")
	}
}
