package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// At every width, each link of the navigation has a visible name and the log-out button is visible. On screens without a
// branch, the links lead to the branch that was open last.
func TestConsoleFrameNamesItsPlaces(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	tablet := screen{name: "tablet", width: 820, height: 1180}
	p.open("/console/jamsil/settings")
	p.see("운영 시간")
	p.on(tablet)
	p.wait("names and the log-out", `(() => {
		const links = [...document.querySelectorAll(".side nav a")];
		const visible = e => e.getClientRects().length > 0;
		return links.length > 8 && links.every(a => visible(a) && a.innerText.trim()) &&
			[...document.querySelectorAll(".side .foot button")].filter(visible).some(b => b.innerText.includes("로그아웃"));
	})()`)
	p.judgeAccess("console-settings on a tablet")
	p.on(desktop)
	p.open("/console/account")
	p.see("비밀번호")
	if href := value[string](p, `[...document.querySelectorAll(".side nav a")].find(a => a.innerText.includes("문")).getAttribute("href")`); !strings.HasPrefix(href, "/console/jamsil/") {
		t.Errorf("got %s, want the branch that was open last", href)
	}

	t.Run("light and dark at every width", func(t *testing.T) {
		p := p.with(t)
		looks := func(theme string) {
			t.Helper()
			p.wait(theme, `document.documentElement.dataset.theme === `+quoted(theme))
		}
		judge := func(name string) {
			t.Helper()
			p.settle()
			p.judgeAccess(name)
			p.keep(name)
		}
		for _, theme := range []string{"light", "dark"} {
			p.media("prefers-color-scheme", theme)
			p.open("/console/gangnam/day")
			looks(theme)
			for _, width := range []int64{390, 768, 820, 1024, 1280, 1920} {
				p.on(screen{theme, width, 1000})
				judge(fmt.Sprintf("console-day-%s-%d", theme, width))
			}
			p.on(desktop)
		}
		for _, name := range strings.Fields("overview gangnam/week gangnam/doors gangnam/climate gangnam/devices gangnam/messages gangnam/money gangnam/audit reports levels settlement people company gangnam/settings") {
			p.open("/console/" + name)
			judge("console-" + strings.ReplaceAll(name, "/", "-") + "-dark")
		}
		p.on(screen{"narrow tablet", 768, 1024})
		judge("console-settings-dark-768")
		p.on(desktop)
		p.open("/console/account")
		p.press("밝게")
		looks("light")
		p.open("/console/account")
		looks("light") // the choice is kept
		p.press("기기 설정대로")
		looks("dark")
	})
}

// If the agent of a branch is not connected, every screen of the branch shows a warning.
func TestConsoleWarnsOfADisconnectedBranch(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	for _, name := range []string{"day", "climate", "settings", "audit"} {
		p.open("/console/jamsil/" + name)
		p.wait("the warning on "+name, `document.querySelector(".devicebar")?.innerText.includes("고객이 문을 열 수 없어요")`)
	}
}
