package httpapi_test

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// diagnosticsAnswer is the answer of GET /v2/admin/agents/{username}/diagnostics.
type diagnosticsAnswer struct {
	Online, Supported bool
	Window            *struct {
		Open, Received bool
		OpenedBy       string
	}
	Doctor *struct{ Report *string }
	Log    []struct {
		Lines []struct{ Level, Text string }
	}
	Next int64
}

func (d diagnosticsAnswer) complete() bool {
	return d.Window != nil && d.Window.Received && len(d.Log) > 0 && d.Doctor != nil && d.Doctor.Report != nil
}

// showDiagnostics asks until the log and the report have arrived.
func showDiagnostics(t *testing.T, c *servicetest.Client, path string) (d diagnosticsAnswer) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		d = diagnosticsAnswer{}
		if c.Get(path).OK(t).Into(t, &d); d.complete() {
			return d
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want a log and a report", d)
		}
	}
}

// TestAgentDiagnostics opens a window of a connected agent at the service, reads its log and the report of its doctor, and closes it. The
// administrator of another branch may do neither.
func TestAgentDiagnostics(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const path = "/v2/admin/agents/agent-gangnam/diagnostics"
	var d diagnosticsAnswer
	manager.Get(path).OK(t).Into(t, &d)
	if d.Online || d.Supported || d.Window != nil || d.Doctor != nil || d.Log == nil || len(d.Log) > 0 {
		t.Errorf("got %+v, want nothing", d)
	}
	connectAgent(t, s, "gangnam", protocol.Inventory{})
	manager.Post(path, map[string]any{"doctor": true}).OK(t)
	d = showDiagnostics(t, manager, path)
	if !d.Online || !d.Supported || !d.Window.Open || d.Window.OpenedBy != "admin:gangnam-manager" || *d.Doctor.Report != "ok    gpio\n" ||
		d.Log[0].Lines[0].Text != "ready branch=gangnam" {
		t.Errorf("got %+v, want the log and the report", d)
	}
	next := diagnosticsAnswer{Log: nil}
	manager.Get(fmt.Sprintf("%s?after=%d", path, d.Next)).OK(t).Into(t, &next)
	if len(next.Log) > 0 || next.Next != d.Next {
		t.Errorf("got %+v after the last part, want no log", next)
	}
	manager.Get(path+"?after=x").Fails(t, 400, "IllegalArguemntError", "기준 번호(after) 값의 형식이 올바르지 않습니다.")
	manager.Delete(path, nil).OK(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // until the agent has closed its window
		closed := diagnosticsAnswer{}
		if manager.Get(path).OK(t).Into(t, &closed); closed.Window.Open || time.Now().After(deadline) {
			t.Fatalf("got %+v, want a window that the agent has closed", closed.Window)
		}
		if closed.Window.Received {
			break
		}
	}

	const other = "/v2/admin/agents/agent-hongdae/diagnostics"
	manager.Get(other).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	manager.Post(other, nil).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	manager.Delete(other, nil).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
}

// TestDiagnosticsOfAnEarlierAgent asks an agent that does not know the messages.
func TestDiagnosticsOfAnEarlierAgent(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const path = "/v2/admin/agents/agent-gangnam/diagnostics"
	agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(s.MQTT), NoDiagnostics: true})
	var d diagnosticsAnswer
	for deadline := time.Now().Add(time.Minute); !d.Online; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the agent is not online")
		}
		hq.Get(path).OK(t).Into(t, &d)
	}
	if d.Supported {
		t.Error("an earlier agent supports diagnostics")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // until its report is stored
		answer := hq.Post(path, nil)
		if answer.HTTP != 200 || time.Now().After(deadline) {
			answer.Fails(t, 409, "SettingConflictException", "이 장치의 프로그램은 진단을 지원하지 않습니다. 먼저 업데이트해 주세요.")
			return
		}
	}
}

// TestDiagnosticsAtAnotherReplica opens a window at one replica of a pool, for an agent that is connected to the other one.
func TestDiagnosticsAtAnotherReplica(t *testing.T) {
	t.Parallel()
	join := func(s *config.Settings) { s.MQTT.BrokerPeerURL = "mqtt://" + s.MQTT.Addr }
	first := servicetest.Start(t, join)
	second := servicetest.Start(t, join, func(s *config.Settings) { s.Database.URL = first.Settings.Database.URL })
	keys, err := first.Settings.GrantKeys()
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(second.MQTT), Keys: []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)}})
	hq := first.Admin(t, "hq", "hq-demo")
	const path = "/v2/admin/agents/agent-gangnam/diagnostics"
	hq.Post(path, map[string]any{"doctor": true}).OK(t)
	if d := showDiagnostics(t, hq, path); len(d.Log) != 1 || d.Log[0].Lines[0].Text != "ready branch=gangnam" {
		t.Errorf("got %+v, want the line once", d)
	}
}
