package e2e

import "testing"

// The list of alerts ends with a button for the older ones.
func TestConsoleOlderAlerts(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	if _, err := database(t, s).Exec(t.Context(), `
		insert into alert (kind, branch, subject, since, notified_at, ended_at)
		select 'pin-exposed', 'gangnam', 'room_' || n, now() - interval '1 day', now(), now() from generate_series(1, 203) n`); err != nil {
		t.Fatal(err)
	}
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/alerts")
	p.press("전체")
	shown := func(n string) string { return `document.querySelectorAll(".alerts .alert").length === ` + n }
	p.wait("the first page", shown("200"))
	p.press("더 보기")
	p.wait("all alerts", shown("203")+` && ![...document.querySelectorAll("main button")].some(b => b.innerText === "더 보기")`)
}
