package e2e

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebCorrectedNumber: on the payment screen the guest sees that the number is wrong, follows the link "fix", corrects the number
// and goes back instead of pressing the button of the form. The key must be sent to the number that the payment screen names.
func TestWebCorrectedNumber(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	const wrong, right = "01011112222", "01011113333"
	b := &buyer{page: newPage(t, s.Pages), s: s, mobile: wrong, choice: "/b/gangnam/" + inTwoDays() + "/2/1000-1100"}
	b.expect("401 (Unauthorized)")
	b.reach("pay")
	b.press(value[string](b.page, `document.querySelector(".sent-to a").innerText.trim()`))
	b.arrive("contact")
	b.fill("휴대폰 번호", right)
	value[bool](b.page, `window.edited = true`)
	b.back()
	b.wait("another document", `!window.edited && `+screenOf+`(`+quoted(b.base)+`) !== ""`)
	if b.screen() == "contact" {
		b.act()
	}
	b.arrive("pay")
	if to := value[string](b.page, `document.querySelector(".sent-to b").innerText.replace(/\D/g, "")`); to != right {
		t.Errorf("the payment screen names %s, want %s", to, right)
	}
	b.act()
	b.arrive("provider")
	b.act()
	b.arrive("receipt")
	received := map[string]int{}
	until(t, "the message with the key", func() bool {
		for _, to := range []string{wrong, right} {
			var got struct{ Messages []struct{ Text string } }
			getJSON(t, s.SandboxAt+"/sandbox/messages?to="+to, &got)
			received[to] = len(got.Messages)
		}
		return received[wrong]+received[right] > 0
	})
	if received[wrong] > 0 || received[right] == 0 {
		t.Errorf("got messages to %v, want them to %s only", received, right)
	}
}

// TestWebOtherTabKeepsRoom: a guest holds room 2 in one tab and pays for room 3 in another. The first tab shows that another room is
// held; going back there must not release room 3.
func TestWebOtherTabKeepsRoom(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	day := inTwoDays()
	a := &buyer{page: newPage(t, s.Pages), s: s, mobile: "01055556666", choice: "/b/gangnam/" + day + "/2/1000-1100"}
	a.expect("401 (Unauthorized)", "409 (Conflict)")
	a.reach("contact")
	b := a.tab("")
	b.choice, b.mobile = "/b/gangnam/"+day+"/3/1000-1100", "01055557777"
	b.reach("provider")
	value[bool](a.page, `document.dispatchEvent(new Event("visibilitychange"))`)
	a.arrive("notice")
	a.leave("back")             // to the choice of the room
	time.Sleep(3 * time.Second) // for a request that must not be sent
	b.act()
	b.arrive("receipt")
}

// TestWebOwnHoldIsOffered: a guest closes the tab in which it has chosen a time. In another one, the time is not shown as taken, in the
// list of a phone and in the timetable, and the guest reserves it again; another guest is not offered it.
func TestWebOwnHoldIsOffered(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	day := inTwoDays()
	rooms := "/b/gangnam/" + day
	a := &buyer{page: newPage(t, s.Pages), s: s, mobile: "01055559999", choice: rooms + "/2/1000-1030"}
	a.reach("contact")
	b := a.tab("")
	const start = `[...document.querySelectorAll("dialog .starts .chip")].find(c => c.innerText.trim() === "10:00")`
	shown := func(p *page) bool {
		p.open(rooms + "?room=2&start=1000")
		p.see("몇 시에 시작할까요?")
		made := value[bool](p, `fetch(location.href).then(r => r.text()).then(text => text.includes('start=1000" aria-current'))`)
		if own := p == b.page; made != own {
			t.Errorf("the server offers the time: %v, want %v", made, own)
		}
		if asked := value[int](p, `performance.getEntriesByType("resource").filter(r => r.name.includes("/api/")).length`); asked > 0 {
			t.Errorf("the page makes %d requests, although the document has its data", asked)
		}
		p.press("10시")
		p.wait("the starts of the hour", start)
		return value[bool](p, `!`+start+`.disabled`)
	}
	if shown(a.another(t)) {
		t.Error("the time is offered to another guest")
	}
	if !shown(b.page) {
		t.Fatal("the time that the browser holds is shown as taken")
	}
	b.on(desktop).open(rooms)
	b.wait("the time in the timetable", `[0, 1, 2].every(n => document.querySelector("td.free[data-room='2'][aria-label*=' 10:" + n + "0']"))`)
	b.on(phone).open(rooms + "?room=2")
	b.see("몇 시에 시작할까요?")
	b.press("10시", "10:00", "원 예약하기")
	b.arrive("summary")
	b.act()
	b.arrive("contact")
}

// TestWebTwoPurchases: a guest buys a stay, and in another tab one for a friend. On the receipt of the first the guest corrects the
// number: the friend keeps the key, and the receipt still shows the first purchase.
func TestWebTwoPurchases(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	const own, friend, corrected = "01055550001", "01055550002", "01055550003"
	day := inTwoDays()
	a := &buyer{page: newPage(t, s.Pages), s: s, mobile: own, choice: "/b/gangnam/" + day + "/2/1000-1100"}
	a.expect("401 (Unauthorized)", "409 (Conflict)", "503 (Service Unavailable)") // 503: the first tab reads the receipt during the second payment
	a.reach("receipt")
	a.see("예약이 확정됐어요", "2번 룸")
	a.fill("휴대폰 번호", corrected)
	b := a.tab("")
	b.choice, b.mobile = "/b/gangnam/"+day+"/3/1000-1100", friend
	b.reach("receipt")
	key := keyFor(t, s, friend)
	value[bool](a.page, `(document.querySelector("details.correction form").requestSubmit(), true)`) // the tab is in the background
	a.see("예약 정보가 변경되었습니다")
	if !a.sees("2번 룸") {
		t.Error("the receipt shows the other purchase")
	}
	var got struct{ Messages []struct{ Text string } }
	getJSON(t, s.SandboxAt+"/sandbox/messages?to="+corrected, &got)
	if len(got.Messages) > 0 || keyFor(t, s, friend) != key {
		t.Errorf("the key of the friend went to the corrected number: %+v", got)
	}
	newBrowser(t, s).must("GET", "/v2/keys/"+key, nil, nil)
}

// TestWebHomeWhileConfirming: the provider has captured the payment and does not answer, and the page says that the result is being
// checked. A tap on the mark at the top must not cancel the booking.
func TestWebHomeWhileConfirming(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	b := &buyer{page: newPage(t, s.Pages), s: s, mobile: "01055558888", choice: "/b/gangnam/" + inTwoDays() + "/2/1000-1100"}
	b.expect("401 (Unauthorized)", "503 (Service Unavailable)")
	b.reach("pay")
	b.act()
	b.arrive("provider")
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "confirm", "kind": "drop-after-commit", "times": 1}, nil)
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "get", "kind": "error", "times": 1000, "status": 500}, nil)
	b.act()
	b.see("두 번 결제되지 않으니")
	b.away(`document.querySelector("a.brand").click()`)
	b.at("/")
	time.Sleep(2 * time.Second) // for a request that must not be sent
	requestJSON(t, "DELETE", s.SandboxAt+"/sandbox/faults", nil, nil)
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var sold struct {
		Reservations []struct{ RoomNo, Start, State string }
	}
	for range 60 {
		time.Sleep(time.Second)
		hq.must("GET", "/v2/admin/reservations?query="+b.mobile, nil, &sold)
		if len(sold.Reservations) > 0 && (sold.Reservations[0].State == "DONE" || sold.Reservations[0].State == "CANCELED") {
			break
		}
	}
	if len(sold.Reservations) != 1 || sold.Reservations[0].State != "DONE" {
		t.Errorf("got reservations %+v, want one that is DONE", sold.Reservations)
	}
}

// inTwoDays returns a day on which all rooms are free.
func inTwoDays() string {
	return currentSlot().In(seoul).AddDate(0, 0, 2).Format("2006-01-02")
}
