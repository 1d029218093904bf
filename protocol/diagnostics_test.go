package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"
)

func sampleDiagnostics() Diagnostics {
	return Diagnostics{Nonce: sampleNonce, Request: sampleNonce, Seconds: 600, Doctor: true}.Sign(sampleKey, sampleAgent)
}

func TestDiagnosticsVerifyForOneAgent(t *testing.T) {
	t.Parallel()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	m := sampleDiagnostics()
	if err := m.Verify(sampleAgent, public(other), public(sampleKey)); err != nil {
		t.Errorf("signed by a grant key: got %v, want nil", err)
	}
	if err := m.Verify(sampleAgent, public(other)); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: got %v, want ErrSignature", err)
	}
	for name, to := range map[string]Agent{"branch": {"hongdae", "agent-gangnam"}, "username": {"gangnam", "agent-gangnam-2"}} {
		if err := m.Verify(to, public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("another %s: got %v, want ErrSignature", name, err)
		}
	}
	for name, change := range map[string]func(*Diagnostics){
		"nonce":     func(m *Diagnostics) { m.Nonce = NewNonce() },
		"request":   func(m *Diagnostics) { m.Request = NewNonce() },
		"seconds":   func(m *Diagnostics) { m.Seconds-- },
		"doctor":    func(m *Diagnostics) { m.Doctor = false },
		"signature": func(m *Diagnostics) { m.Signature = sampleGrant().Signature },
	} {
		changed := m
		change(&changed)
		if err := changed.Verify(sampleAgent, public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s changed: got %v, want ErrSignature", name, err)
		}
	}
}

func TestDiagnosticsForm(t *testing.T) {
	t.Parallel()
	diagnostics := func(change func(*Diagnostics)) Message { m := sampleDiagnostics(); change(&m); return m }
	lines := func(l LogLine, n int) Message { return DiagnosticsLog{Lines: many(n, func(int) LogLine { return l })} }
	report := func(text string) Message { return DiagnosticsReport{Request: sampleNonce, Text: text} }
	status := func(s DiagnosticsStatus) Message { m := online(Inventory{}); m.Diagnostics = &s; return m }
	line := LogLine{At: time.Unix(0, 0), Level: "INFO", Text: "x"}
	for name, c := range map[string]struct {
		m  Message
		ok bool
	}{
		"ten minutes":         {diagnostics(func(m *Diagnostics) { m.Seconds = 600 }), true},
		"longer":              {diagnostics(func(m *Diagnostics) { m.Seconds = 601 }), false},
		"closed":              {diagnostics(func(m *Diagnostics) { m.Seconds, m.Doctor = 0, false }), true},
		"closed with doctor":  {diagnostics(func(m *Diagnostics) { m.Seconds = 0 }), false},
		"no nonce":            {diagnostics(func(m *Diagnostics) { m.Nonce = "" }), false},
		"no request":          {diagnostics(func(m *Diagnostics) { m.Request = "" }), false},
		"no signature":        {diagnostics(func(m *Diagnostics) { m.Signature = "" }), false},
		"most lines":          {lines(line, MaxLogLines), true},
		"too many lines":      {lines(line, MaxLogLines+1), false},
		"longest line":        {lines(LogLine{Level: "INFO", Text: letters(MaxLogLine)}, 1), true},
		"too long a line":     {lines(LogLine{Level: "INFO", Text: letters(MaxLogLine + 1)}, 1), false},
		"two lines in one":    {lines(LogLine{Level: "INFO", Text: "a\nb"}, 1), false},
		"no level":            {lines(LogLine{Text: "x"}, 1), false},
		"longest report":      {report(letters(MaxDoctorReport)), true},
		"too long a report":   {report(letters(MaxDoctorReport + 1)), false},
		"longest in JSON":     {report(longestInJSON), true},
		"longer in JSON":      {report(longestInJSON + "x"), false},
		"too long in JSON":    {report(strings.Repeat("<", MaxDoctorReport)), false},
		"lines in a report":   {report("a\n\tb\n"), true},
		"an escape":           {report("a\x1b[2J"), false},
		"a report of nothing": {DiagnosticsReport{Text: "x"}, false},
		"a status":            {status(DiagnosticsStatus{Nonce: sampleNonce}), true},
		"status with request": {status(DiagnosticsStatus{Nonce: sampleNonce, Request: sampleNonce}), true},
		"status, no nonce":    {status(DiagnosticsStatus{Request: sampleNonce}), false},
		"status, bad request": {status(DiagnosticsStatus{Nonce: sampleNonce, Request: "x"}), false},
	} {
		if err := c.m.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok %v", name, err, c.ok)
		}
	}
}

// longestInJSON has 6 bytes for each bracket as JSON, and two quotes.
var longestInJSON = strings.Repeat("<", (maxReportJSON-4)/6) + "xx"

func TestClippedLinesAndReportsAreValid(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "letters": letters(2 * MaxDoctorReport), "two bytes": "x" + strings.Repeat("é", MaxDoctorReport), "in JSON": strings.Repeat("<", 2*MaxDoctorReport),
		"not UTF-8": strings.Repeat("\xff", MaxDoctorReport), "control": "a\x00\x1b\x7f\r\nb", "mixed": strings.Repeat("<é가x", MaxDoctorReport),
	} {
		line := DiagnosticsLog{Lines: []LogLine{{Level: "INFO", Text: ClipLine(text)}}}
		report := DiagnosticsReport{Request: sampleNonce, Text: ClipReport(text)}
		for what, m := range map[string]Message{"line": line, "report": report} {
			if _, err := Encode(m); err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if len(text) > MaxDoctorReport && len(report.Text) < 4<<10 {
			t.Errorf("%s: the report has only %d bytes", name, len(report.Text))
		}
	}
	for text, want := range map[string]string{longestInJSON: longestInJSON, longestInJSON + "x": longestInJSON} {
		if got := ClipReport(text); got != want {
			t.Errorf("a report of %d bytes: got %d bytes, want %d", len(text), len(got), len(want))
		}
	}
}
