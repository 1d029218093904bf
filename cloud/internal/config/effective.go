package config

import (
	"crypto/sha256"
	"encoding/base64"
	"net"
	"slices"
	"strings"
)

// Off is the value that switches an outside system off which would otherwise be the sandbox's.
const Off = "off"

// SolapiURL is the message provider's own address.
const SolapiURL = "https://api.solapi.com"

// The demo values of what the sandbox checks. They stand here, not in package sandbox, so that the
// service does not contain the sandbox.
const (
	demoTossWidgetSecretKey = "test_gsk_yeolda_demo"
	demoTossAPISecretKey    = "test_sk_yeolda_demo"
	demoTossClientKey       = "test_gck_yeolda_demo"
	demoSolapiAPIKey        = "NCSYEOLDADEMO"
	demoSolapiAPISecret     = "yeolda-demo-message-secret"
	demoSolapiSender        = "0200000000"
	demoSolapiPFID          = "KA01PF-YEOLDA-DEMO"
	demoPartnerID           = "sandbox"
	demoPartnerSecret       = "yeolda-demo-partner-secret"
	demoHQEmail             = "hq@yeolda.example"
)

// The demo values of the service's own keys.
var (
	demoEncryptionKey = demoKey("yeolda demo encryption key")
	demoGrantKey      = demoKey("yeolda demo grant signing key")
)

func demoKey(phrase string) string {
	sum := sha256.Sum256([]byte(phrase))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Effective returns the settings as they are in force: everything that was left open is filled in, and
// every secret knows whether it is a demo one. It is idempotent.
func (s Settings) Effective() Settings {
	if s.HTTP.PublicURL == "" {
		s.HTTP.PublicURL = "http://" + Reachable(s.HTTP.Addr)
	}
	s.HTTP.PublicURL = strings.TrimRight(s.HTTP.PublicURL, "/")

	s.Secrets.EncryptionKey = orDemo(s.Secrets.EncryptionKey, demoEncryptionKey)
	s.Secrets.GrantKey = orDemo(s.Secrets.GrantKey, demoGrantKey)

	sandbox := "http://" + Reachable(s.Sandbox.Addr)
	if s.Toss.URL == "" || s.Toss.URL == sandbox {
		s.Toss.URL = sandbox
		s.Toss.WidgetSecretKey = orDemo(s.Toss.WidgetSecretKey, demoTossWidgetSecretKey)
		s.Toss.APISecretKey = orDemo(s.Toss.APISecretKey, demoTossAPISecretKey)
		s.Toss.ClientKey = orText(s.Toss.ClientKey, demoTossClientKey)
	}
	s.Toss.WidgetSecretKey = markDemo(s.Toss.WidgetSecretKey, demoTossWidgetSecretKey)
	s.Toss.APISecretKey = markDemo(s.Toss.APISecretKey, demoTossAPISecretKey)

	m := &s.Messages
	if !m.SolapiAPIKey.Set() {
		m.SolapiURL = orText(m.SolapiURL, sandbox)
		m.SolapiAPIKey = orDemo(m.SolapiAPIKey, demoSolapiAPIKey)
		m.SolapiAPISecret = orDemo(m.SolapiAPISecret, demoSolapiAPISecret)
		m.SolapiSender = orText(m.SolapiSender, demoSolapiSender)
		m.SolapiPFID = orText(m.SolapiPFID, demoSolapiPFID)
	}
	m.SolapiURL = orText(m.SolapiURL, SolapiURL)
	m.SolapiAPIKey = markDemo(m.SolapiAPIKey, demoSolapiAPIKey)
	m.SolapiAPISecret = markDemo(m.SolapiAPISecret, demoSolapiAPISecret)
	if m.SMTPURL == "" {
		m.SMTPURL = s.SandboxMail()
	}
	m.HQEmail = orText(m.HQEmail, demoHQEmail)

	if s.Partner.URL == "" || s.Partner.URL == sandbox {
		s.Partner.URL = sandbox
		s.Partner.ID = orText(s.Partner.ID, demoPartnerID)
		s.Partner.Secrets = orDemo(s.Partner.Secrets, demoPartnerSecret)
	}
	s.Partner.Secrets = markDemo(s.Partner.Secrets, demoPartnerSecret)
	return s
}

// orDemo fills in the demo value where there is none.
func orDemo(s Secret, demo string) Secret {
	if !s.Set() {
		s.value = demo
	}
	return markDemo(s, demo)
}

// markDemo notices the demo value however it got there, also as one of several.
func markDemo(s Secret, demo string) Secret {
	s.demo = slices.Contains(list(s.value), demo)
	return s
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// list splits a setting that may hold several values.
func list(text string) []string {
	var values []string
	for value := range strings.SplitSeq(text, ",") {
		if value = strings.TrimSpace(value); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// Reachable returns the address under which a listener on addr is reached from this machine.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// SandboxMail is the mail server of the sandbox.
func (s Settings) SandboxMail() string {
	return "smtp://" + Reachable(s.Sandbox.SMTPAddr) + "?tls=none"
}
