package console

import (
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type diagnostics struct {
	Online    bool               `json:"online"`
	Supported bool               `json:"supported"`
	Window    *diagnosticsWindow `json:"window"`
	Doctor    *doctorReport      `json:"doctor"`
	Log       []agentLog         `json:"log"`
	Next      int64              `json:"next"`
}

type diagnosticsWindow struct {
	Open     bool   `json:"open"`
	Received bool   `json:"received"`
	OpenedBy string `json:"openedBy"`
	OpenedAt string `json:"openedAt"`
	EndsAt   string `json:"endsAt"`
}

type doctorReport struct {
	RequestedAt string  `json:"requestedAt"`
	Report      *string `json:"report"`
	ReportedAt  *string `json:"reportedAt"`
}

type agentLog struct {
	ReceivedAt string    `json:"receivedAt"`
	Dropped    uint64    `json:"dropped"`
	Lines      []logLine `json:"lines"`
}

type logLine struct {
	At    *string `json:"at"`
	Level string  `json:"level"`
	Text  string  `json:"text"`
}

func wireDiagnostics(d device.Diagnostics, after int64) diagnostics {
	answer := diagnostics{Online: d.Online, Supported: d.Supported(), Log: []agentLog{}, Next: after}
	if w := d.Window; w != nil {
		answer.Window = &diagnosticsWindow{d.Open, d.Received(), w.OpenedBy, *wire.Instant(w.OpenedAt), *wire.Instant(w.EndsAt)}
		if !w.DoctorAt.IsZero() {
			answer.Doctor = &doctorReport{RequestedAt: *wire.Instant(w.DoctorAt), ReportedAt: wire.Instant(w.ReportAt)}
			if !w.ReportAt.IsZero() {
				answer.Doctor.Report = &w.Report
			}
		}
	}
	for _, part := range d.Log {
		lines := make([]logLine, 0, len(part.Lines))
		for _, l := range part.Lines {
			lines = append(lines, logLine{wire.Instant(l.At), l.Level, l.Text})
		}
		answer.Log = append(answer.Log, agentLog{*wire.Instant(part.ReceivedAt), part.Dropped, lines})
		answer.Next = part.ID
	}
	return answer
}

// ShowAgentDiagnostics serves GET /v2/admin/agents/{username}/diagnostics?after=.
func (c *Console) ShowAgentDiagnostics(w http.ResponseWriter, r *http.Request) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	var after int64
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return wire.Malformed("after")
		}
	}
	found, err := c.Devices.ShowDiagnostics(r.Context(), username, after)
	if err != nil {
		return err
	}
	return wire.WriteData(w, wireDiagnostics(found, after))
}

// CloseAgentDiagnostics serves DELETE /v2/admin/agents/{username}/diagnostics: the agent stops sending its log.
func (c *Console) CloseAgentDiagnostics(w http.ResponseWriter, r *http.Request) error {
	return c.changeAgent(w, r, c.Devices.CloseDiagnostics)
}

// OpenAgentDiagnostics serves POST /v2/admin/agents/{username}/diagnostics: has an agent send its log for ten minutes.
func (c *Console) OpenAgentDiagnostics(w http.ResponseWriter, r *http.Request) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	var body struct {
		Doctor bool `json:"doctor"`
	}
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	if err := c.Devices.OpenDiagnostics(r.Context(), username, body.Doctor, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
