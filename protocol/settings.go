package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// settingsDomain separates settings from anything else signed with the same key.
const settingsDomain = "yeolda/v1 agent settings"

// MaxSettings bounds the text of settings in bytes. Its JSON must fit into MaxPayload, too.
const MaxSettings = 24 << 10

// maxSettingsJSON bounds the JSON of the text: the other fields of a message need less than 512 bytes.
const maxSettingsJSON = MaxPayload - 512

// Settings replaces the settings of one agent: the text of its settings file, which describes the hardware of the branch. It is
// signed for one credential with a key that verifies its grants. The agent applies it only if its version is higher than every
// version that it has received, and if the agent itself finds no mistake in the text. It keeps the previous settings until the new
// ones have reached the cloud, and returns to them otherwise; see [SettingsStatus]. The cloud repeats the message until the
// status names the version.
type Settings struct {
	Version   uint64 `json:"version"` // from 1
	Text      string `json:"text"`    // TOML
	Signature string `json:"signature"`
}

// SettingsFile is the text of the settings file of the machine, while it is in use instead of settings of the cloud: an operator has
// edited it there. The cloud stores it as the next version if Base is the last one, and sends that back.
type SettingsFile struct {
	Base uint64 `json:"base"` // the highest version that the agent has received; 0: none
	Text string `json:"text"`
}

// SettingsStatus describes the settings of an agent.
type SettingsStatus struct {
	Version uint64 `json:"version"`         // in use, or to return to; 0: the file of the machine
	Highest uint64 `json:"highest"`         // version that the agent has received; it takes only higher ones
	Trial   uint64 `json:"trial,omitempty"` // in use until it has reached the cloud for a while; 0: none
	// Ended is the last version that did not come into use.
	Ended *SettingsOutcome `json:"ended,omitempty"`
}

// SettingsOutcome is the reason why a version of settings is not in use.
type SettingsOutcome struct {
	Version uint64        `json:"version"`
	State   SettingsState `json:"state"`
	Detail  string        `json:"detail"`
}

// SettingsState is the end of a version of settings that is not in use.
type SettingsState string

// The ends of settings.
const (
	SettingsRefused    SettingsState = "refused"     // the agent found a mistake, and has not used them
	SettingsRolledBack SettingsState = "rolled-back" // with them the agent did not reach the cloud, or did worse
)

// signed returns the bytes that the signature covers.
func (m Settings) signed(to Agent) []byte {
	b := make([]byte, 0, 128+len(m.Text))
	for _, s := range []string{settingsDomain, to.Branch, to.Username} {
		b = appendField(b, s)
	}
	return appendField(binary.BigEndian.AppendUint64(b, m.Version), m.Text)
}

// Sign returns the settings with their signature for one agent.
func (m Settings) Sign(key ed25519.PrivateKey, to Agent) Settings {
	m.Signature = sign(key, m.signed(to))
	return m
}

// Verify returns ErrSignature unless one of the keys has signed the settings for this agent.
func (m Settings) Verify(to Agent, keys ...ed25519.PublicKey) error {
	return verify(m.signed(to), m.Signature, keys)
}

// Kind implements Message.
func (Settings) Kind() Kind { return KindSettings }

// Kind implements Message.
func (SettingsFile) Kind() Kind { return KindSettingsFile }

// Validate checks the form of settings. The agent checks their content, Verify the signature.
func (m Settings) Validate() error {
	err := CheckSettings(m.Text)
	if m.Version == 0 {
		err = errors.Join(err, errors.New("version is 0"))
	}
	if len(m.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	return err
}

// Validate implements Message.
func (m SettingsFile) Validate() error { return CheckSettings(m.Text) }

// CheckSettings checks whether a text can be settings: UTF-8 without control characters other than tabs and line ends, of 1 to
// MaxSettings bytes.
func CheckSettings(text string) error {
	control := func(r rune) bool { return r < 0x20 && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }
	switch {
	case text == "" || len(text) > MaxSettings:
		return fmt.Errorf("settings have %d bytes, want 1 to %d", len(text), MaxSettings)
	case !utf8.ValidString(text):
		return errors.New("settings are not UTF-8")
	case strings.ContainsFunc(text, control):
		return errors.New("settings have control characters")
	}
	if encoded, err := json.Marshal(text); err != nil || len(encoded) > maxSettingsJSON {
		return fmt.Errorf("settings have %d bytes as JSON, want at most %d", len(encoded), maxSettingsJSON)
	}
	return nil
}

func (s SettingsStatus) validate() error {
	if s.Ended == nil {
		return nil
	}
	var err error
	if s.Ended.State != SettingsRefused && s.Ended.State != SettingsRolledBack {
		err = fmt.Errorf("state of the settings %q is unknown", s.Ended.State)
	}
	return errors.Join(err, checkText("detail of the settings", s.Ended.Detail, maxDetail, false))
}
