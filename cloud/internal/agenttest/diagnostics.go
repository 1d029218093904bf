package agenttest

import (
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// diagnose accepts a request with the nonce of the status once. It then sends one line of its log, and a report if one is requested;
// nothing if the window is closed.
func (a *Agent) diagnose(m protocol.Diagnostics) {
	accepted := false
	a.note(func() {
		if accepted = m.Nonce == a.diagnosed.Nonce && m.Verify(a.agent(), a.keys...) == nil; accepted {
			a.diagnosed = protocol.DiagnosticsStatus{Nonce: protocol.NewNonce(), Request: m.Request}
		}
	})
	if !accepted {
		return
	}
	_ = a.Publish(a.status())
	if m.Seconds == 0 {
		return
	}
	_ = a.Publish(protocol.DiagnosticsLog{Lines: []protocol.LogLine{{At: time.Now(), Level: "INFO", Text: "ready branch=" + a.cfg.Branch}}})
	if m.Doctor {
		_ = a.Publish(protocol.DiagnosticsReport{Request: m.Request, Text: "ok    gpio\n"})
	}
}

func (a *Agent) diagnosticsStatus() *protocol.DiagnosticsStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.NoDiagnostics {
		return nil
	}
	status := a.diagnosed
	return &status
}
