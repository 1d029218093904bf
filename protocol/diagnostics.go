package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// diagnosticsDomain separates diagnostics from anything else signed with the same key.
const diagnosticsDomain = "yeolda/v1 agent diagnostics"

// The bounds of diagnostics.
const (
	DiagnosticsTime = 10 * time.Minute // longest window
	MaxLogLines     = 100              // in one message
	MaxLogLine      = 1000             // bytes of the text of a line
	MaxDoctorReport = 16 << 10         // bytes. Its JSON must fit into MaxPayload, too.
)

// maxReportJSON bounds the JSON of the report of the doctor: the other fields of a message need less than 512 bytes.
const maxReportJSON = MaxPayload - 512

// Diagnostics opens a window in which one agent sends its log, extends the open one, or closes it. The window ends by the agent's monotonic
// clock. The message is signed for one credential with a key that verifies its grants, and names the nonce of the agent's status.
// The agent accepts each nonce once, so a repeated or recorded message changes nothing. The cloud repeats the message until the
// status names the request; see [DiagnosticsStatus].
type Diagnostics struct {
	Nonce     string `json:"nonce"`            // from the status of the agent
	Request   string `json:"request"`          // random, for the status and the report of the doctor
	Seconds   uint32 `json:"seconds"`          // length of the window, up to DiagnosticsTime; 0: it is closed
	Doctor    bool   `json:"doctor,omitempty"` // the agent examines its machine and sends the report
	Signature string `json:"signature"`
}

// DiagnosticsLog is a part of the agent's log, in order. The first one of a window has the newest lines before it, the others what
// follows. The agent sends at most one per second.
type DiagnosticsLog struct {
	Dropped uint64    `json:"dropped"` // lines before these that were too many to send
	Lines   []LogLine `json:"lines"`
}

// LogLine is a line of the agent's log.
type LogLine struct {
	At    time.Time `json:"at"`    // by the agent's clock, which may be wrong
	Level string    `json:"level"` // DEBUG, INFO, WARN or ERROR, or one of these with a number
	Text  string    `json:"text"`  // the message and its attributes (key=value)
}

// DiagnosticsReport is the report of the agent's doctor.
type DiagnosticsReport struct {
	Request string `json:"request"` // that asked for it
	Text    string `json:"text"`
}

// DiagnosticsStatus is the part of the status that diagnostics need.
type DiagnosticsStatus struct {
	Nonce   string `json:"nonce"`             // for the next message; new at each start, and after each accepted message
	Request string `json:"request,omitempty"` // accepted last since the start of the agent
}

// signed returns the bytes that the signature covers.
func (m Diagnostics) signed(to Agent) []byte {
	b := make([]byte, 0, 256)
	for _, s := range []string{diagnosticsDomain, to.Branch, to.Username, m.Nonce, m.Request} {
		b = appendField(b, s)
	}
	b = binary.BigEndian.AppendUint32(b, m.Seconds)
	if m.Doctor {
		return append(b, 1)
	}
	return append(b, 0)
}

// Sign returns the message with its signature for one agent.
func (m Diagnostics) Sign(key ed25519.PrivateKey, to Agent) Diagnostics {
	m.Signature = sign(key, m.signed(to))
	return m
}

// Verify returns ErrSignature unless one of the keys has signed the message for this agent.
func (m Diagnostics) Verify(to Agent, keys ...ed25519.PublicKey) error {
	return verify(m.signed(to), m.Signature, keys)
}

// Kind implements Message.
func (Diagnostics) Kind() Kind { return KindDiagnostics }

// Kind implements Message.
func (DiagnosticsLog) Kind() Kind { return KindDiagnosticsLog }

// Kind implements Message.
func (DiagnosticsReport) Kind() Kind { return KindDiagnosticsReport }

// Validate checks the form of the message. Verify checks the signature.
func (m Diagnostics) Validate() error {
	err := errors.Join(checkNonce(m.Nonce), checkNonce(m.Request))
	if limit := uint32(DiagnosticsTime / time.Second); m.Seconds > limit {
		err = errors.Join(err, fmt.Errorf("seconds is %d, want at most %d", m.Seconds, limit))
	}
	if m.Seconds == 0 && m.Doctor {
		err = errors.Join(err, errors.New("a message that closes the window asks for a report"))
	}
	if len(m.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	return err
}

// Validate implements Message.
func (m DiagnosticsLog) Validate() error {
	if len(m.Lines) > MaxLogLines {
		return fmt.Errorf("more than %d lines", MaxLogLines)
	}
	var err error
	for _, l := range m.Lines {
		err = errors.Join(err, checkText("level", l.Level, maxName, true), checkText("line", l.Text, MaxLogLine, false))
	}
	return err
}

// Validate implements Message.
func (m DiagnosticsReport) Validate() error {
	err := checkNonce(m.Request)
	switch encoded, jsonErr := json.Marshal(m.Text); {
	case len(m.Text) > MaxDoctorReport:
		err = errors.Join(err, fmt.Errorf("report is longer than %d bytes", MaxDoctorReport))
	case jsonErr != nil || len(encoded) > maxReportJSON:
		err = errors.Join(err, fmt.Errorf("report has %d bytes as JSON, want at most %d", len(encoded), maxReportJSON))
	case strings.ContainsFunc(m.Text, notPrinted):
		err = errors.Join(err, errors.New("report has control characters"))
	}
	return err
}

func (s DiagnosticsStatus) validate() error {
	err := checkNonce(s.Nonce)
	if s.Request != "" {
		err = errors.Join(err, checkNonce(s.Request))
	}
	return err
}

// notPrinted reports whether a character has no place in a text of several lines.
func notPrinted(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f }

// ClipLine turns an arbitrary text into a valid text of a line; see Clip.
func ClipLine(s string) string { return clip(s, MaxLogLine) }

// ClipReport turns an arbitrary text of several lines into a valid report of the doctor.
func ClipReport(s string) string {
	s = strings.Map(func(r rune) rune {
		if notPrinted(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = cut(s, MaxDoctorReport)
	for {
		encoded, err := json.Marshal(s)
		if err != nil {
			return ""
		}
		excess := len(encoded) - maxReportJSON
		if excess <= 0 {
			return s
		}
		s = cut(s, len(s)-(excess+5)/6) // a character has at most six times its bytes as JSON
	}
}

// cut returns the beginning of a text of at most limit bytes, with whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
