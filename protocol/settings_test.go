package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
)

var sampleAgent = Agent{Branch: "gangnam", Username: "agent-gangnam"}

func sampleSettings() Settings {
	return Settings{Version: 4, Text: "[[door]]\ndevice = \"front_1\"\nrelay = { line = \"GPIO17\" }\n"}.Sign(sampleKey, sampleAgent)
}

func TestSettingsVerifyForOneAgent(t *testing.T) {
	t.Parallel()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	m := sampleSettings()
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
	for name, change := range map[string]func(*Settings){
		"version":   func(m *Settings) { m.Version++ },
		"text":      func(m *Settings) { m.Text += "\n" },
		"signature": func(m *Settings) { m.Signature = sampleGrant().Signature },
	} {
		changed := m
		change(&changed)
		if err := changed.Verify(sampleAgent, public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s changed: got %v, want ErrSignature", name, err)
		}
	}
}

func TestSettingsForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"text":             {"broker = \"x\"\r\n\t# 로비\n", true},
		"longest":          {strings.Repeat("x", MaxSettings), true},
		"longest in JSON":  {strings.Repeat("<", 10_666) + "xx", true}, // 6 bytes each
		"longer in JSON":   {strings.Repeat("<", 10_666) + "xxx", false},
		"too long in JSON": {strings.Repeat("<", MaxSettings/2), false},
		"too long":         {strings.Repeat("x", MaxSettings+1), false},
		"empty":            {"", false},
		"not UTF-8":        {"\xff", false},
		"a NUL":            {"a\x00", false},
		"an escape":        {"a\x1b[2J", false},
		"a delete":         {"a\x7f", false},
		"a vertical tab":   {"a\v", false},
		"a line separator": {"a\u2028", true},
	} {
		m := Settings{Version: 4, Text: c.text}.Sign(sampleKey, sampleAgent)
		for what, err := range map[string]error{"Settings": m.Validate(), "SettingsFile": SettingsFile{Text: c.text}.Validate()} {
			if (err == nil) != c.ok {
				t.Errorf("%s, %s: got %v, want ok %v", name, what, err, c.ok)
			}
		}
	}
	for name, change := range map[string]func(*Settings){
		"version 0":       func(m *Settings) { m.Version = 0 },
		"no signature":    func(m *Settings) { m.Signature = "" },
		"short signature": func(m *Settings) { m.Signature = m.Signature[1:] },
	} {
		m := sampleSettings()
		change(&m)
		if err := m.Validate(); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	for name, outcome := range map[string]SettingsOutcome{
		"unknown state": {1, "lost", ""},
		"long detail":   {1, SettingsRefused, letters(maxDetail + 1)},
	} {
		s := online(Inventory{})
		s.Settings = &SettingsStatus{Ended: &outcome}
		if err := s.Validate(); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
