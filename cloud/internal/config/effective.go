package config

import (
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Off is the value that switches an external system off.
const Off = "off"

// SolapiURL is the address of the message provider.
const SolapiURL = "https://api.solapi.com"

// Demo values that the sandbox accepts. They are defined here as well as in package sandbox, so that the service does not
// contain the sandbox; TestDemoSecretsMatchSandbox compares them.
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
	demoMailFrom            = "no-reply@yeolda.example"
)

// Demo values of the service's own keys.
var (
	demoEncryptionKey = demoKey("yeolda demo encryption key")
	demoGrantKey      = demoKey("yeolda demo grant signing key")
)

func demoKey(phrase string) string {
	sum := sha256.Sum256([]byte(phrase))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Demo reports whether missing settings fall back to the sandbox and to demo secrets (docs/specification.md, Mode).
func (s Settings) Demo() bool { return s.Secrets.Mode == ModeDemo }

// Effective returns the settings in force: values that follow from other settings are filled in, in demo mode also those
// of the sandbox, and every secret is marked if it is a demo one. It is idempotent.
func (s Settings) Effective() Settings {
	if s.Demo() {
		s.fillDemo()
	}
	s.HTTP.PublicURL = publicOrigin(strings.TrimRight(s.HTTP.PublicURL, "/"))
	s.HTTP.SecondFactor = list(strings.Join(s.HTTP.SecondFactor, ","))
	s.Messages.SolapiURL = orText(s.Messages.SolapiURL, SolapiURL)
	s.Partner.URL = orText(s.Partner.URL, Off)
	for _, secret := range s.demoSecrets() {
		*secret.Secret = markDemo(*secret.Secret, secret.demo)
	}
	return s
}

// defaultPorts are the ports that an origin leaves out.
var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// publicOrigin returns an address as browsers write its origin: in lower case and without the default port. Passkeys and requests of other
// sites are recognised by comparing the two.
func publicOrigin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address // reported by validateURLs
	}
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), defaultPorts[u.Scheme])
	return u.String()
}

// fillDemo replaces missing settings by demo values.
func (s *Settings) fillDemo() {
	s.HTTP.PublicURL = orText(s.HTTP.PublicURL, "http://"+Reachable(s.HTTP.Addr))
	s.Secrets.EncryptionKey = orSecret(s.Secrets.EncryptionKey, demoEncryptionKey)
	s.Secrets.GrantKey = orSecret(s.Secrets.GrantKey, demoGrantKey)

	sandbox := "http://" + Reachable(s.Sandbox.Addr)
	s.MQTT.AgentPackages = orText(s.MQTT.AgentPackages, sandbox+"/packages")
	if s.Toss.URL == "" || s.Toss.URL == sandbox {
		s.Toss.URL = sandbox
		s.Toss.WidgetSecretKey = orSecret(s.Toss.WidgetSecretKey, demoTossWidgetSecretKey)
		s.Toss.APISecretKey = orSecret(s.Toss.APISecretKey, demoTossAPISecretKey)
		s.Toss.ClientKey = orText(s.Toss.ClientKey, demoTossClientKey)
	}
	m := &s.Messages
	if !m.SolapiAPIKey.Set() {
		m.SolapiURL = orText(m.SolapiURL, sandbox)
		m.SolapiAPIKey = orSecret(m.SolapiAPIKey, demoSolapiAPIKey)
		m.SolapiAPISecret = orSecret(m.SolapiAPISecret, demoSolapiAPISecret)
		m.SolapiSender = orText(m.SolapiSender, demoSolapiSender)
		m.SolapiPFID = orText(m.SolapiPFID, demoSolapiPFID)
	}
	m.SMTPURL = orText(m.SMTPURL, s.SandboxMail())
	m.MailFrom = orText(m.MailFrom, demoMailFrom)
	m.HQEmail = orText(m.HQEmail, demoHQEmail)

	if s.Partner.URL == "" || s.Partner.URL == sandbox {
		s.Partner.URL = sandbox
		s.Partner.ID = orText(s.Partner.ID, demoPartnerID)
		s.Partner.Secrets = orSecret(s.Partner.Secrets, demoPartnerSecret)
	}
}

// demoSecret is a secret for which the source code holds a demo value.
type demoSecret struct {
	variable string
	*Secret
	demo string
}

func (s *Settings) demoSecrets() []demoSecret {
	return []demoSecret{
		{"YEOLDA_ENCRYPTION_KEY", &s.Secrets.EncryptionKey, demoEncryptionKey},
		{"YEOLDA_GRANT_KEY", &s.Secrets.GrantKey, demoGrantKey},
		{"YEOLDA_TOSS_WIDGET_SECRET_KEY", &s.Toss.WidgetSecretKey, demoTossWidgetSecretKey},
		{"YEOLDA_TOSS_API_SECRET_KEY", &s.Toss.APISecretKey, demoTossAPISecretKey},
		{"YEOLDA_SOLAPI_API_KEY", &s.Messages.SolapiAPIKey, demoSolapiAPIKey},
		{"YEOLDA_SOLAPI_API_SECRET", &s.Messages.SolapiAPISecret, demoSolapiAPISecret},
		{"YEOLDA_PARTNER_SECRET", &s.Partner.Secrets, demoPartnerSecret},
	}
}

func orSecret(s Secret, otherwise string) Secret {
	if !s.Set() {
		s.value = otherwise
	}
	return s
}

// markDemo marks a secret that is or contains the demo value, whether filled in or set.
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

// list splits a setting that may hold several values, separated by commas.
func list(text string) []string {
	var values []string
	for value := range strings.SplitSeq(text, ",") {
		if value = strings.TrimSpace(value); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// Reachable returns the address at which this machine reaches a listener on addr.
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

// SandboxMail returns the URL of the sandbox's mail server.
func (s Settings) SandboxMail() string {
	return "smtp://" + Reachable(s.Sandbox.SMTPAddr) + "?tls=none"
}
