package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// The first page of the headquarters shows a lock that fails, live, with the way to it; an administrator takes care of it,
// and it disappears once the door opens again. The bell and the screens of the branch show it, too.
func TestConsoleOverview(t *testing.T) {
	notBeforeMidnight(t)
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam", "hongdae")
	guest := newBrowser(t, s)
	key := guest.buy(s, "gangnam", 2, 25000, "01055550001")

	p := console(t, s, "hq", "hq-demo")
	p.open("/console")
	p.wait("the first page", `location.pathname === "/console/overview"`)
	p.see("전체 지점", "열다 강남점", "확인할 일이 없어요")
	fault(t, s, "gangnam", "room_2", "stuck")
	for range 2 {
		guest.open("gangnam", "room", key)
	}
	p.see("2번 룸 문이 열리지 않아요")
	p.wait("the bell", `Number(document.querySelector(".side nav .count")?.innerText) > 0`)
	p.survey("console-overview")
	p.on(desktop)
	const failing = `[...document.querySelectorAll(".alert")].find(a => a.innerText.includes("열리지 않아요"))`
	p.wait("the button", failing+`.querySelector("button").focus() === undefined`)
	value[bool](p, `(document.activeElement.click(), true)`)
	p.see("hq 확인 중")
	p.wait("the focus on the alert", `document.activeElement === `+failing)
	// The click may leave the page before its answer arrives.
	p.wait("the link", `location.pathname === "/console/gangnam/doors" || `+failing+`.querySelector("a").click() === undefined`)
	p.wait("the doors with the warning", `location.pathname === "/console/gangnam/doors" && document.body.innerText.includes("2번 룸 문이 열리지 않아요")`)
	p.wait("whose stay it is", `[...document.querySelectorAll(".door")].find(d => d.innerText.includes("2번 룸")).querySelector(".occupant")`)

	requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	if result, _ := guest.open("gangnam", "room", key); result.Status != "SUCCESS" {
		t.Fatalf("the door: %+v", result)
	}
	p.open("/console/alerts")
	p.wait("the end of the alert", `!document.querySelector("main .loading") && !document.querySelector("main").innerText.includes("열리지 않아요")`)
	p.press("전체")
	p.see("2번 룸 문이 열리지 않아요")
	p.survey("console-alerts")
	p.on(desktop).open("/console/reports")
	p.see("전체 가동률", "1시간")
	p.wait("the grouping by room", `[...document.querySelectorAll(".segmented button")].find(b => b.innerText === "룸").click() === undefined`)
	p.see("2번 룸")
	p.survey("console-reports")

	p.on(desktop).open("/console/gangnam/doors")
	p.wait("the switcher", `document.querySelector(".side .switcher")?.options.length === 3`)
	value[bool](p, `(document.querySelector(".side .switcher").focus(), true)`)
	for _, next := range []string{"hongdae", "jamsil"} {
		p.arrowDown()
		p.at("/console/" + next + "/doors")
		p.wait("the focus on the switcher", `document.activeElement.matches(".side .switcher") && document.activeElement.value === "`+next+`"`)
	}

	p.open("/console/reports")
	p.see("CSV 내려받기")
	p.expect("401", "no valid credentials")
	// The session ends after the press: before it, any reading of the screen would notice and show the login.
	value[bool](p, `(ask => { window.fetch = async (...a) => { if (String(a[0]).endsWith("/account/confirmation")) await ask("/api/admin/logout", {method: "POST"}); return ask(...a) }; return true })(fetch)`)
	p.press("CSV 내려받기")
	p.see("로그인이 끝났어요")
}

// arrowDown chooses the next option of the list that has the focus.
func (p *page) arrowDown() {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		down := input.DispatchKeyEventParams{Type: kind, Key: "ArrowDown", Code: "ArrowDown", WindowsVirtualKeyCode: 40}
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, down); err != nil {
			p.t.Fatal(err)
		}
	}
}

// If the uplink of a branch is cut, the headquarters receive exactly one message in less than 150 seconds. The alert ends
// when the branch is back.
func TestAlertOfACutUplink(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam", "hongdae")
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	alerts := func(state string) (kinds []string) {
		var list struct {
			Alerts []struct{ Kind, Branch string }
		}
		hq.must("GET", "/v2/admin/alerts?state="+state, nil, &list)
		for _, a := range list.Alerts {
			kinds = append(kinds, a.Kind+" "+a.Branch)
		}
		return kinds
	}
	messages := func() (subjects []string) {
		var list struct {
			Messages []struct {
				Template string `json:"template"`
			} `json:"messages"`
		}
		getJSON(t, s.SandboxAt+"/sandbox/messages?to=hq@yeolda.example", &list)
		for _, m := range list.Messages {
			subjects = append(subjects, m.Template)
		}
		return subjects
	}
	fault(t, s, "gangnam", "", "network-cut")
	cut := time.Now()
	for len(messages()) == 0 && time.Since(cut) < 200*time.Second {
		time.Sleep(time.Second)
	}
	took := time.Since(cut).Round(time.Second)
	t.Logf("the message arrived after %s", took)
	if took >= 150*time.Second {
		t.Errorf("the message took %s, want under 150 s", took)
	}
	if got := alerts("open"); len(got) != 1 || got[0] != "branch-offline gangnam" {
		t.Errorf("open alerts %q, want the branch", got)
	}
	requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	awaitAgents(t, s, "gangnam")
	until(t, "no open alert", func() bool { return len(alerts("open")) == 0 })
	if got := messages(); len(got) != 1 || got[0] != "alert-began" {
		t.Errorf("messages %q, want one", got)
	}
}

// The console shows times of a branch in its zone, also to an administrator in another one.
func TestConsoleTimesOfTheBranch(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	_, midnight := dayAfter()
	newBrowser(t, s).purchase(s, "gangnam", 1, 30000, "01077779999", "카드", midnight.Add(12*time.Hour))
	p := console(t, s, "hq", "hq-demo")
	if _, err := chromedp.Call(p.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"}); err != nil {
		t.Fatal(err)
	}
	p.open("/console/overview")
	const card = `[...document.querySelectorAll(".branchcard")].find(c => c.innerText.includes("강남"))?.innerText`
	p.wait("the next arrival", card+`?.match(/다음 입실[^:]*\d\d:\d\d/)`)
	if got := value[string](p, card); !strings.Contains(got, "12:00") {
		t.Errorf("the branch's card shows %q, want the arrival at 12:00 of the branch", got)
	}
	p.open("/console/gangnam/day")
	p.press("인수인계")
	p.fill("새 메모", "전구 교체")
	before := time.Now().In(midnight.Location())
	p.press("메모 남기기")
	p.wait("the note", `document.querySelector(".notes small")`)
	after := time.Now()
	got := value[string](p, `document.querySelector(".notes small").innerText`)
	shown := false
	for minute := before.Truncate(time.Minute); !minute.After(after); minute = minute.Add(time.Minute) {
		shown = shown || strings.Contains(got, minute.Format("15:04"))
	}
	if !shown {
		t.Errorf("the note shows %q, want a time from %s on", got, before.Format("15:04"))
	}
}
