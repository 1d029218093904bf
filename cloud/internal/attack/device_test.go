package attack

import (
	"net/http"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
)

var deviceAttacks = []attack{
	{"A7", "key-guessed-or-late", func(g *target) {
		c := g.Client(g.T)
		key, _ := g.buy(c, 3, victim)
		for _, guess := range []string{"", "x", "00000000-0000-4000-8000-000000000000", strings.ToUpper(key) + "x", key[:35], "' or 1=1 --"} {
			g.refused(c.Send(http.MethodPost, "/door/v2/unlock", map[string]any{"branch": "gangnam", "doorlockType": "front", "key": guess}, nil), "guessed key", 400)
		}
		g.refused(c.Send(http.MethodPost, "/door/v2/unlock", map[string]any{"branch": "gangnam", "doorlockType": "front", "key": key}, nil), "key before its time", 410)
		g.refused(c.Send(http.MethodPost, "/door/v2/unlock", map[string]any{"branch": "hongdae", "doorlockType": "front", "key": key}, nil), "key at another branch", 400)
		g.refused(c.Send(http.MethodPost, "/door/unlock", map[string]any{"branch": "gangnam", "key": key}, nil), "version that has ended", 410)
	}},
	{"A21", "broker-without-rights", func(g *target) {
		for name, cfg := range map[string]agenttest.Config{
			"wrong secret":          {Branch: "gangnam", Secret: "wrong"},
			"unknown user":          {Branch: "gangnam", ClientID: "agent-nowhere", Secret: "agent-gangnam-demo"},
			"another client id":     {Branch: "gangnam", ClientID: "agent-hongdae", Username: "agent-gangnam", Secret: "agent-gangnam-demo"},
			"another branch's name": {Branch: "hongdae", ClientID: "agent-gangnam", Username: "agent-hongdae", Secret: "agent-gangnam-demo"},
			"empty user":            {Branch: "gangnam", ClientID: "cloud", Username: "cloud", Secret: "cloud"},
		} {
			cfg.Dial = agenttest.TCP(g.MQTT)
			a, err := agenttest.Try(g.T, cfg)
			g.held(err != nil, "%s: connected", name)
			if err == nil {
				a.Close()
			}
		}
	}},
	{"A25", "pin-for-a-viewer", func(g *target) {
		viewer := g.administrator("looker", "viewer", "gangnam")
		hq := g.hq()
		var unlock struct {
			RequestID string `json:"requestId"`
		}
		hq.Post("/admin/door/v2/unlock/gangnam/room/1", nil).OK(g.T).Into(g.T, &unlock) // no agent: FAILED with the PIN
		g.refused(viewer.Send(http.MethodPost, "/admin/door/v2/unlock/gangnam/front", nil, nil), "unlock by a viewer", 403)
		answer := viewer.Send(http.MethodGet, "/admin/door/v2/unlock/subscribe?requestId="+unlock.RequestID, nil, nil)
		pin := `"failoverKey":"`
		g.held(!strings.Contains(string(answer.Raw), pin), "a viewer received a PIN: %s", answer.Raw)
		for _, path := range []string{"audit", "doors", "timeline?date=2026-11-22", "settings", "devices"} {
			g.held(!strings.Contains(string(viewer.Send(http.MethodGet, "/v2/admin/branches/gangnam/"+path, nil, nil).Raw), `"pin":"`), "%s shows a PIN to a viewer", path)
		}
	}},
}
