package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Two administrators move the same reservation on their own pages. One change succeeds. The other administrator is shown the
// current state of the reservation and can try again.
func TestConsoleTwoAdministrators(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	admin := newBrowser(t, s)
	admin.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	start := midnight.Add(14 * time.Hour) // no agent has its pass yet, so its earlier places are free at once
	admin.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 5, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
	admin.must("POST", "/admin/payment", map[string]any{"name": "한지우"}, nil)

	hq := console(t, s, "hq", "hq-demo")
	hq.expect("409")
	manager := hq.another(t).on(desktop)
	manager.expect("401", "409")
	manager.enterConsole("gangnam-manager", "gangnam-demo")
	pages := []*page{hq, manager}
	for _, p := range pages {
		p.open("/console/gangnam/day/" + date)
		p.see("한지우")
	}
	lane := func(room int) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".lane")][%d].innerText.includes("한지우")`, room-1)
	}

	// The form of one administrator is outdated: the other has moved the reservation.
	hq.press("한지우", "시간·룸 변경")
	hq.see("변경 후")
	manager.drag(manager.place(5, 14*60+20), manager.place(6, 14*60+20))
	manager.see("예약 변경", "6번 룸")
	manager.press("변경하기")
	manager.see("변경했어요")
	hq.choose("룸", "1번 룸")
	hq.press("변경하기")
	hq.see("그 사이 다른 관리자가 바꿨어요. 지금은 6번 룸")
	hq.survey("console-stale")
	freeze := `(wait => { window.setTimeout = (act, ms, ...rest) => ms === 10000 ? 0 : wait(act, ms, ...rest); return true })(setTimeout)`
	value[bool](hq, freeze) // the offer to undo stays
	hq.on(desktop).press("변경하기")
	hq.see("변경했어요")
	manager.wait("room 1, without anybody touching the page", lane(1))
	hq.press("실행 취소")
	manager.wait("room 6 again", lane(6))

	// The move is taken back after another administrator has moved the reservation again: that later move stays.
	hq.open("/console/gangnam/day/" + date)
	value[bool](hq, freeze)
	hq.drag(hq.place(6, 14*60+20), hq.place(2, 14*60+20))
	hq.see("예약 변경", "2번 룸")
	hq.press("변경하기")
	hq.see("변경했어요")
	manager.open("/console/gangnam/day/" + date)
	manager.drag(manager.place(2, 14*60+20), manager.place(5, 14*60+20))
	manager.see("예약 변경", "5번 룸")
	manager.press("변경하기")
	manager.see("변경했어요")
	hq.press("실행 취소")
	hq.see("그 사이에 변경되었습니다")
	hq.wait("the later move", lane(5))

	// Both submit at the same time: the second change is rejected with the current state.
	for i, p := range pages {
		p.open("/console/gangnam/day/" + date)
		value[bool](p, freeze) // the outcome of one stays until that of the other is known
		p.press("한지우", "시간·룸 변경")
		p.choose("룸", fmt.Sprintf("%d번 룸", 3+i))
		p.see(fmt.Sprintf("%d번 룸 · ", 3+i))
	}
	const press = `([...[...document.querySelectorAll("dialog[open]")].pop().querySelectorAll("button")].find(b => b.textContent === "변경하기").click(), true)`
	var group sync.WaitGroup
	for _, p := range pages {
		group.Go(func() {
			if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](press)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	won := 0
	for _, p := range pages {
		p.wait("an answer", `/변경했어요|그 사이 다른 관리자가/.test(document.body.innerText)`)
		if p.sees("변경했어요") {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d of two have moved it", won)
	}
	for _, p := range pages {
		p.open("/console/gangnam/day/" + date)
		p.wait("in one room, the same for both", lane(3)+" || "+lane(4))
	}
	if a, b := value[bool](hq, lane(3)), value[bool](manager, lane(3)); a != b {
		t.Error("two truths")
	}

	// The day of another date does not arrive: the form reports it, and cannot be sent before that day is there.
	const cannotMove = `[...document.querySelectorAll("dialog[open] button")].find(b => b.innerText === "변경하기").disabled`
	hq.expect("ERR_INTERNET_DISCONNECTED")
	hq.press("한지우", "시간·룸 변경")
	hq.wait("the form", `[...document.querySelectorAll("dialog[open] button")].some(b => b.innerText === "변경하기")`)
	hq.offline(true, s.API+"/v2/admin/branches/*")
	hq.date("날짜", midnight.AddDate(0, 0, 1).Format(time.DateOnly))
	hq.see("서버에 연결하지 못했어요")
	hq.wait("nothing to send", cannotMove)
	hq.offline(false)
	hq.press("다시 시도")
	hq.wait("the day is there", `!(`+cannotMove+`)`)

	// Midnight passes while a form is open: it stays, and the screen moves on once it is closed.
	hq.open("/console/gangnam/day")
	hq.wait("the line of the present", `document.querySelector(".plane .now")`)
	hq.press("예약 등록")
	today := value[string](hq, `document.querySelector("main h1").innerText`)
	// From now on no answer sets the clock, also none that is on its way.
	value[bool](hq, `(get => { Headers.prototype.get = function (name) { return name.toLowerCase() === "date" ? null : get.call(this, name) }; return true })(Headers.prototype.get)`)
	value[bool](hq, `(now => { Date.now = () => now() + 24 * 60 * 60 * 1000; return true })(Date.now.bind(Date))`)
	hq.wait("the line of the present is on another day", `!document.querySelector(".plane .now")`)
	if got := hq.dialogs(); got != 1 {
		t.Errorf("%d forms are open after midnight, want that for a reservation", got)
	}
	hq.press("닫기")
	hq.wait("the next day", `document.querySelector("main h1").innerText !== `+quoted(today))
}
