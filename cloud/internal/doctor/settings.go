package doctor

import (
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
)

// production reports whether nothing of a demonstration may be in force; it is the condition that `serve` applies.
func (d *exam) production() bool { return !d.settings.Demo() || len(d.settings.Exposed()) > 0 }

func loopbackHost(u *url.URL) bool { return config.Loopback(net.JoinHostPort(u.Hostname(), "0")) }

func (d *exam) examineSettings() {
	var problems []error
	if joined, ok := d.settings.Check().(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	for _, err := range problems {
		d.fail("settings", err.Error(), "yeolda config shows where a value comes from")
	}
	if len(problems) == 0 {
		d.ok("settings", "complete and consistent")
	}
	switch demo := d.settings.DemoSecrets(); {
	case len(demo) > 0:
		d.warn("secrets", "demo secrets are in force: "+strings.Join(demo, ", "), "set secrets of your own and YEOLDA_MODE=production before customers use the service")
	default:
		d.ok("secrets", "no demo secret is in force")
	}
	if d.production() {
		d.examineDefences()
	}
	if d.production() && d.settings.TestPayments() {
		d.fail("payments", "the keys of the payment provider are test keys: rooms are sold and no money is taken", "set the live keys before customers use the service")
	}
	if d.production() && !d.settings.Log.AuditHeadURL.Set() {
		d.warn("audit", "no head of the audit log is copied to another machine", "set YEOLDA_AUDIT_HEAD_URL to a receiver on another machine, see deploy/README.md, Evidence")
	}
	if !config.Loopback(d.settings.HTTP.MetricsAddr) {
		d.warn("settings", "metrics and profiles are served at "+d.settings.HTTP.MetricsAddr, "keep that address inside a private network")
	}
	for _, name := range config.UnknownVariables() {
		d.warn("settings", name+" is not a setting", "yeolda serve --help lists them all")
	}
}

// examineDefences finds settings that let others guess keys, passwords and codes.
func (d *exam) examineDefences() {
	for _, variable := range d.settings.TrivialKeys() {
		d.fail("secrets", variable+" is one byte repeated, which is easily guessed", "create a key with: openssl rand -base64 32; replace it as deploy/README.md says")
	}
	if !d.settings.HTTP.Limited() {
		d.fail("settings", "YEOLDA_RATE_LIMITS=off: passwords and codes can be guessed without a limit", "set it to on; off is for load tests")
	}
}

// examineSite checks the requirements of customers' browsers.
func (d *exam) examineSite() {
	u, err := url.Parse(d.settings.HTTP.PublicURL)
	if err != nil || u.Host == "" {
		return // reported with the settings
	}
	loopback := loopbackHost(u)
	switch {
	case u.Scheme == "http" && !loopback && d.settings.HTTP.CookieSecure:
		d.fail("site", d.settings.HTTP.PublicURL+" is not HTTPS: browsers will not send the session cookie", "put a proxy with TLS in front and set YEOLDA_PUBLIC_URL to its https:// address")
	case loopback && d.production():
		d.warn("site", "links in messages lead to "+d.settings.HTTP.PublicURL, "set YEOLDA_PUBLIC_URL to the address customers use")
	default:
		d.ok("site", d.settings.HTTP.PublicURL)
	}
	if d.untrustedProxy == nil || !d.production() {
		return
	}
	if proxy := d.untrustedProxy(); proxy != "" {
		d.fail("proxy", "requests come through "+proxy+", which YEOLDA_TRUSTED_PROXIES lacks: all its clients share one address, and the limits reject every client as soon as one exceeds them",
			"add the address or network of the proxy to YEOLDA_TRUSTED_PROXIES")
	}
}

func (d *exam) examineCertificate() {
	mqtt := d.settings.MQTT
	if mqtt.TLSAddr == "" || mqtt.TLSCert == "" || mqtt.TLSKey == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(mqtt.TLSCert, mqtt.TLSKey)
	if err != nil {
		d.fail("certificate", err.Error(), "check YEOLDA_TLS_CERT and YEOLDA_TLS_KEY")
		return
	}
	d.examineExpiry("of the MQTT listener", pair.Leaf.NotAfter)
}

func (d *exam) examineExpiry(which string, end time.Time) {
	switch left := time.Until(end); {
	case left < 0:
		d.fail("certificate", which+" expired on "+when(end), "renew it: no agent can connect")
	case left < certificateNotice:
		d.warn("certificate", which+" expires on "+when(end), "renew it, and find out why the automatic renewal did not")
	default:
		d.ok("certificate", which+" is valid until "+when(end))
	}
}
