package e2e

import (
	"net/http"
	"testing"
)

// The first page of the head quarters shows a lock that fails, live, with the way to it; an administrator takes care of it,
// and it disappears once the door opens again. The bell and the screens of the branch show it, too.
func TestConsoleOverview(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam", "hongdae")
	guest := newBrowser(t, s)
	guest.buy(s, "gangnam", 1, 25000, "01055550001")
	key := keyFor(t, s, "01055550001")

	p := console(t, s, "hq", "hq-demo")
	p.open("/console")
	p.wait("the first page", `location.pathname === "/console/overview"`)
	p.see("전체 지점", "열다 강남점", "확인할 일이 없어요")
	requestJSON(t, http.MethodPut, s.SimAt+"/sim/branches/gangnam/faults", map[string]string{"kind": "stuck", "target": "room_1"}, nil)
	for range 2 {
		guest.open("gangnam", "room", key)
	}
	p.see("1번 룸 문이 열리지 않아요")
	p.wait("the bell", `document.querySelector(".side nav .count")?.innerText === "1"`)
	p.survey("console-overview")
	p.on(desktop).press("내가 확인할게요")
	p.see("hq 확인 중")
	p.press("확인하러 가기")
	p.wait("the doors with the warning", `location.pathname === "/console/gangnam/doors" && document.body.innerText.includes("1번 룸 문이 열리지 않아요")`)

	requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	if result, _ := guest.open("gangnam", "room", key); result.Status != "SUCCESS" {
		t.Fatalf("the door: %+v", result)
	}
	p.wait("no bell", `!document.querySelector(".side nav .count")`)
	p.open("/console/alerts")
	p.see("확인할 일이 없어요")
	p.press("전체")
	p.see("1번 룸 문이 열리지 않아요")
	p.survey("console-alerts")
}
