package e2e

import (
	"strings"
	"testing"
	"unicode"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
	"github.com/yeolda/yeolda/protocol"
)

func isHangul(r rune) bool { return unicode.Is(unicode.Hangul, r) }

// A guest chooses a temperature on the key page; the simulated unit receives it, and the console lists what was switched.
func TestWebKeyPageClimate(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01011112222")
	admin := newBrowser(t, s)
	admin.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var tree []protocol.OptionNode
	until(t, "the options of the unit", func() bool {
		admin.must("GET", "/admin/airconditioner/gangnam", nil, &tree)
		return len(tree) > 0
	})
	var leaves []string
	var walk func(nodes []protocol.OptionNode)
	walk = func(nodes []protocol.OptionNode) {
		for _, node := range nodes {
			if node.AirConditionerID != nil {
				leaves = append(leaves, *node.AirConditionerID)
			}
			walk(node.Children)
		}
	}
	walk(tree)
	offered := leaves[len(leaves)-3:]
	admin.must("PUT", "/v2/admin/branches/gangnam/climate-policy", map[string]any{"rooms": []any{map[string]any{
		"room": "2", "unit": "로비", "arriveOption": offered[0], "leaveOption": leaves[0], "leadMinutes": 15, "lagMinutes": 0, "low": 22, "high": 26, "guestOptions": offered,
	}}}, nil)

	p.open("/k/" + key)
	p.wait("three temperatures", `document.querySelectorAll(".climate button").length === 3`)
	p.look("key-climate", phone, desktop, narrow)
	p.on(phone)
	p.wait("the first one to be the choice", `document.querySelector(".climate button").ariaPressed === "true"`)
	p.wait("the last one to be pressed", `(document.querySelectorAll(".climate button")[2].focus(), document.activeElement.click(), true)`)
	p.wait("the last one to be the choice", `document.querySelectorAll(".climate button")[2].ariaPressed === "true"`)
	if at := value[string](p, `document.activeElement.closest(".climate") ? "" : document.activeElement.outerHTML.slice(0, 80)`); at != "" {
		t.Errorf("the focus is on %q after the press, want the pressed button", at)
	}
	korean := value[string](p, `document.querySelector(".climate p").innerText`)
	p.open("/k/" + key + "?lang=en")
	p.wait("three temperatures in English", `document.querySelectorAll(".climate button").length === 3`)
	if english := value[string](p, `document.querySelector(".climate p").innerText`); strings.ContainsFunc(english, isHangul) || !strings.ContainsFunc(korean, isHangul) {
		t.Errorf("the choices are %q on the Korean page and %q on the English one", korean, english)
	}
	until(t, "the choice to be sent", func() bool {
		var air struct {
			Commands []struct{ By, Outcome string }
			Intents  []struct{ Room, Edge, State string }
		}
		admin.must("GET", "/v2/admin/branches/gangnam/climate", nil, &air)
		sent := 0
		for _, c := range air.Commands {
			if c.By == "system:climate" && c.Outcome == "sent" {
				sent++
			}
		}
		return sent > 0 && len(air.Intents) > 1
	})
	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/gangnam/climate")
	hq.see("예약에 따른 작동", "이용 후")
	hq.survey("console-climate-intents")
}
