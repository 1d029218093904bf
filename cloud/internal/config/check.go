package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// A Problem is an unusable or missing setting, with its remedy.
type Problem struct {
	Variable string // the environment variable
	Text     string
}

func (p *Problem) Error() string { return p.Variable + ": " + p.Text }

// Check rejects settings that cannot work or would be unsafe. The joined error holds every [Problem]. It applies to
// effective settings, see [Settings.Effective]; `serve` and `doctor` use it alike.
func (s Settings) Check() error {
	var problems []error
	problem := func(variable, format string, args ...any) {
		problems = append(problems, &Problem{variable, fmt.Sprintf(format, args...)})
	}
	s.validateListeners(problem)
	s.validateURLs(problem)
	s.validateTimes(problem)
	s.validateLimits(problem)
	s.validateKeys(problem)
	s.validateArchive(problem)
	s.validateProviders(problem)
	s.validateRoles(problem)
	s.validateMode(problem)
	s.validateSafety(problem)
	return errors.Join(problems...)
}

// NotAnOrigin is the text of the problem of a setting that fails [IsOrigin].
const NotAnOrigin = "is not exactly one origin: scheme, host and port, such as http://127.0.0.1:8070"

// originForm has only hosts that a source of a Content-Security-Policy can name, so no IPv6 address.
var originForm = regexp.MustCompile(`^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$`)

// IsOrigin reports whether text is exactly one origin in lower case, as a Content-Security-Policy names it. The port is
// optional.
func IsOrigin(text string) bool { return originForm.MatchString(text) }

type report func(variable, format string, args ...any)

// validateMode requires in production every setting that has a demo value, and rejects demo secrets wherever other
// machines can reach the service.
func (s Settings) validateMode(problem report) {
	exposed := s.Exposed()
	for _, variable := range s.DemoSecrets() {
		switch {
		case !s.Demo():
			problem(variable, "is a demo secret, which is public; set a secret of your own")
		case len(exposed) > 0:
			problem(variable, "is a demo secret and %s is reachable from other machines; set a secret of your own or listen on 127.0.0.1", strings.Join(exposed, ", "))
		}
	}
	if s.Demo() {
		return
	}
	if s.Sandbox.StageOrigin != "" {
		problem("YEOLDA_STAGE_ORIGIN", "is for demos: in production no other site may show the pages in a frame")
	}
	mail := s.Messages.SMTPURL != "" && s.Messages.SMTPURL != Off
	for _, required := range []struct {
		variable string
		missing  bool
		remedy   string
	}{
		{"YEOLDA_PUBLIC_URL", s.HTTP.PublicURL == "", "set the address that customers use"},
		{"YEOLDA_TRUSTED_PROXIES", s.behindProxy() && len(s.HTTP.TrustedProxies) == 0,
			"set the addresses of the proxy in front of this service; without them every client would share one address"},
		{"YEOLDA_TOSS_URL", s.Toss.URL == "", "set https://api.tosspayments.com"},
		{"YEOLDA_SOLAPI_API_KEY", !s.Messages.SolapiAPIKey.Set(), "set the key of the message provider"},
		{"YEOLDA_SMTP_URL", s.Messages.SMTPURL == "", "set a mail server, or off"},
		{"YEOLDA_MAIL_FROM", mail && s.Messages.MailFrom == "", "set the sender of mails"},
		{"YEOLDA_HQ_EMAIL", mail && s.Messages.HQEmail == "", "set the address of the headquarters"},
	} {
		if required.missing {
			problem(required.variable, "is required in production: %s (YEOLDA_MODE=demo runs with the sandbox)", required.remedy)
		}
	}
}

// behindProxy reports whether customers can reach the service only through a proxy: HTTPS ends there, or the listener is
// not reachable from other machines.
func (s Settings) behindProxy() bool {
	u, err := url.Parse(s.HTTP.PublicURL)
	if err != nil || u.Host == "" {
		return false // reported by validateURLs, or missing
	}
	return u.Scheme == "https" || Loopback(s.HTTP.Addr) && !loopbackHost(u)
}

func loopbackHost(u *url.URL) bool { return Loopback(net.JoinHostPort(u.Hostname(), "0")) }

func (s Settings) validateListeners(problem report) {
	type listener struct{ variable, addr string }
	listeners := []listener{{"YEOLDA_HTTP_ADDR", s.HTTP.Addr}, {"YEOLDA_METRICS_ADDR", s.HTTP.MetricsAddr}}
	if s.MQTT.Embedded() {
		listeners = append(listeners, listener{"YEOLDA_MQTT_ADDR", s.MQTT.Addr})
		if s.MQTT.TLSAddr != "" {
			listeners = append(listeners, listener{"YEOLDA_MQTT_TLS_ADDR", s.MQTT.TLSAddr})
		}
		if !Loopback(s.MQTT.Addr) && !s.MQTT.PlainPublic {
			problem("YEOLDA_MQTT_ADDR", "%s is reachable from other machines without TLS; use YEOLDA_MQTT_TLS_ADDR, or allow it with YEOLDA_MQTT_PLAIN_PUBLIC=true", s.MQTT.Addr)
		}
	}
	for i, l := range listeners {
		host, port, err := net.SplitHostPort(l.addr)
		if err != nil {
			problem(l.variable, "%q is not an address of the form host:port", l.addr)
			continue
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			problem(l.variable, "%q is not a port", port)
			continue
		}
		for _, other := range listeners[:i] {
			otherHost, otherPort, err := net.SplitHostPort(other.addr)
			if err == nil && port == otherPort && port != "0" && overlap(host, otherHost) {
				problem(l.variable, "port %s is already used by %s", port, other.variable)
				break
			}
		}
	}
	if s.MQTT.TLSAddr != "" {
		for variable, file := range map[string]string{"YEOLDA_TLS_CERT": s.MQTT.TLSCert, "YEOLDA_TLS_KEY": s.MQTT.TLSKey} {
			if file == "" {
				problem(variable, "is required with YEOLDA_MQTT_TLS_ADDR")
			} else if _, err := os.Stat(file); err != nil {
				problem(variable, "%v", err)
			}
		}
	}
}

func (s Settings) validateURLs(problem report) {
	check := func(variable, text string, schemes ...string) {
		if text == "" || text == Off {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			problem(variable, "is not a URL") // not quoted, because it may hold a password
			return
		}
		for _, scheme := range schemes {
			if u.Scheme == scheme {
				return
			}
		}
		problem(variable, "begins with %s://, not with %s://", u.Scheme, strings.Join(schemes, ":// or "))
	}
	check("YEOLDA_PUBLIC_URL", s.HTTP.PublicURL, "http", "https")
	if u, err := url.Parse(s.HTTP.PublicURL); err == nil && u.Host != "" && s.HTTP.PublicURL != u.Scheme+"://"+u.Host {
		problem("YEOLDA_PUBLIC_URL", "has more than scheme, host and port: pages and links have fixed paths, such as /k/ for keys; use a host name of its own, such as https://rooms.example")
	}
	for _, broker := range s.MQTT.BrokerURLs() {
		check("YEOLDA_BROKER_URL", broker, "mqtt", "mqtts", "tcp", "ssl", "tls", "ws", "wss")
	}
	for _, broker := range s.MQTT.AgentBrokerURLs() {
		check("YEOLDA_AGENT_BROKER_URL", broker, "mqtt", "mqtts", "ws", "wss")
	}
	if err := protocol.CheckBrokers(s.MQTT.AgentBrokerURLs()); err != nil {
		problem("YEOLDA_AGENT_BROKER_URL", "is not a list that agents take: %v", err)
	}
	check("YEOLDA_BROKER_PEER_URL", s.MQTT.BrokerPeerURL, "mqtt", "mqtts", "ws", "wss")
	if s.MQTT.BrokerPeerURL != "" && s.Database.URL == "" {
		problem("YEOLDA_BROKER_PEER_URL", "is for replicas on one database: set YEOLDA_DATABASE_URL")
	}
	check("YEOLDA_TOSS_URL", s.Toss.URL, "http", "https")
	check("YEOLDA_SOLAPI_URL", s.Messages.SolapiURL, "http", "https")
	check("YEOLDA_SMTP_URL", s.Messages.SMTPURL, "smtp")
	check("YEOLDA_PARTNER_URL", s.Partner.URL, "http", "https")
	check("YEOLDA_AUDIT_HEAD_URL", s.Log.AuditHeadURL.Reveal(), "http", "https")
	check("YEOLDA_TRACES_URL", s.Traces.URL, "http", "https")
	check("YEOLDA_AGENT_PACKAGES", s.MQTT.AgentPackages, "http", "https")
	check("YEOLDA_DISCORD_WEBHOOK_URL", s.Discord.WebhookURL.Reveal(), "http", "https")
	if stage := s.Sandbox.StageOrigin; stage != "" && !IsOrigin(stage) {
		problem("YEOLDA_STAGE_ORIGIN", NotAnOrigin)
	}
}

func (s Settings) validateTimes(problem report) {
	for _, d := range []struct {
		variable  string
		value     time.Duration
		low, high time.Duration
	}{
		{"YEOLDA_CUSTOMER_HOLD_TTL", s.Times.CustomerHoldTTL, time.Second, time.Hour},
		{"YEOLDA_ADMIN_HOLD_TTL", s.Times.AdminHoldTTL, time.Second, time.Hour},
		{"YEOLDA_DEPOSIT_DUE", s.Times.DepositDue, time.Second, 24 * time.Hour},
		{"YEOLDA_LOGIN_CODE_TTL", s.Times.LoginCodeTTL, time.Second, 15 * time.Minute},
		{"YEOLDA_DOOR_RESULT_TIMEOUT", s.Times.DoorResultTimeout, 100 * time.Millisecond, time.Minute},
		{"YEOLDA_DRAIN_TIME", s.HTTP.DrainTime, 0, time.Minute},
		{"YEOLDA_ADMIN_IDLE_TIMEOUT", s.HTTP.AdminIdle, 0, 90 * 24 * time.Hour},
		{"YEOLDA_STEP_UP_AFTER", s.HTTP.StepUp, 0, 90 * 24 * time.Hour},
		{"YEOLDA_KEEP_PAID", s.Times.KeepPaid, 24 * time.Hour, 20 * 366 * 24 * time.Hour},
		{"YEOLDA_KEEP_OTHER", s.Times.KeepOther, 24 * time.Hour, 20 * 366 * 24 * time.Hour},
		{"YEOLDA_CUSTOMER_SESSION_TTL", s.Times.CustomerSessionTTL, time.Minute, 90 * 24 * time.Hour},
		{"YEOLDA_ARCHIVE_KEEP", s.Archive.Keep, 24 * time.Hour, 366 * 24 * time.Hour},
		{"YEOLDA_SWEEP_EVERY", s.Times.SweepEvery, 50 * time.Millisecond, time.Minute},
	} {
		if d.value < d.low || d.value > d.high {
			problem(d.variable, "%s is not between %s and %s", d.value, d.low, d.high)
		}
	}
}

// validateLimits rejects negative numbers: a limit below zero would refuse every reservation.
func (s Settings) validateLimits(problem report) {
	for _, n := range []struct {
		variable string
		value    int
	}{
		{"YEOLDA_MAX_HOLDS_PER_CLIENT", s.HTTP.MaxHoldsPerClient},
		{"YEOLDA_MAX_HOLDS_PER_PHONE", s.HTTP.MaxHoldsPerPhone},
		{"YEOLDA_REFUND_APPROVAL_ABOVE", s.Toss.RefundApprovalAbove},
	} {
		if n.value < 0 {
			problem(n.variable, "%d is negative; 0 is unlimited", n.value)
		}
	}
}

func (s Settings) validateKeys(problem report) {
	if _, err := s.Keyring(); err != nil {
		problem("YEOLDA_ENCRYPTION_KEY", "%v; create one with: openssl rand -base64 32", err)
	}
	if _, err := s.GrantKeys(); err != nil {
		problem("YEOLDA_GRANT_KEY", "%v; create one with: openssl rand -base64 32", err)
	}
	for _, key := range s.MQTT.AgentReleaseKeys {
		if _, err := protocol.ParseKey(key); err != nil {
			problem("YEOLDA_AGENT_RELEASE_KEYS", "%v", err)
		}
	}
	if s.Discord.PublicKey != "" {
		if _, err := s.DiscordPublicKey(); err != nil {
			problem("YEOLDA_DISCORD_PUBLIC_KEY", "%v", err)
		}
	}
}

func (s Settings) validateArchive(problem report) {
	if s.Archive.Place == "" {
		return
	}
	if s.Database.URL != "" {
		problem("YEOLDA_ARCHIVE", "applies to the private database only: archive that of YEOLDA_DATABASE_URL with the tools of its server")
	}
	if !s.Archive.Key.Set() {
		problem("YEOLDA_ARCHIVE_KEY", "is required with YEOLDA_ARCHIVE; create one with: yeolda archive key")
	}
}

func (s Settings) validateProviders(problem report) {
	needed := func(set bool, variable, with string) {
		if !set {
			problem(variable, "is required with %s", with)
		}
	}
	needed(s.Toss.WidgetSecretKey.Set(), "YEOLDA_TOSS_WIDGET_SECRET_KEY", "YEOLDA_TOSS_URL")
	needed(s.Toss.APISecretKey.Set(), "YEOLDA_TOSS_API_SECRET_KEY", "YEOLDA_TOSS_URL")
	needed(s.Toss.ClientKey != "", "YEOLDA_TOSS_CLIENT_KEY", "YEOLDA_TOSS_URL")
	if s.Toss.URL == "http://"+Reachable(s.Sandbox.Addr) && strings.HasPrefix(s.Toss.WidgetSecretKey.Reveal(), "live_") {
		problem("YEOLDA_TOSS_URL", "is required with a live key; the sandbox takes no live payments")
	}
	s.validateTossKeys(problem)
	needed(s.Messages.SolapiAPISecret.Set(), "YEOLDA_SOLAPI_API_SECRET", "YEOLDA_SOLAPI_API_KEY")
	needed(s.Messages.SolapiSender != "", "YEOLDA_SOLAPI_SENDER", "YEOLDA_SOLAPI_API_KEY")
	s.validateMail(problem)
	if s.Partner.URL != Off {
		needed(s.Partner.ID != "", "YEOLDA_PARTNER_ID", "YEOLDA_PARTNER_URL")
		needed(s.Partner.Secrets.Set(), "YEOLDA_PARTNER_SECRET", "YEOLDA_PARTNER_URL")
	}
}

// validateMail rejects addresses to which no mail can be sent: alerts to such a headquarters would all be lost.
func (s Settings) validateMail(problem report) {
	if _, err := netmail.ParseAddress(s.Messages.MailFrom); err != nil && s.Messages.MailFrom != "" {
		problem("YEOLDA_MAIL_FROM", "%q is not an e-mail address", s.Messages.MailFrom)
	}
	if hq := s.Messages.HQEmail; hq != "" {
		if address, err := netmail.ParseAddress(hq); err != nil || address.Address != hq {
			problem("YEOLDA_HQ_EMAIL", "%q is not exactly one e-mail address", hq)
		}
	}
}

// kindOfTossKey splits a key of the payment provider into its mode and its kind. A key of another form has neither.
var kindOfTossKey = regexp.MustCompile(`^(test|live)_(g?[cs]k)_`)

// validateTossKeys rejects swapped keys, and test keys beside live ones.
func (s Settings) validateTossKeys(problem report) {
	mode, demo := "", []string{demoTossWidgetSecretKey, demoTossAPISecretKey, demoTossClientKey}
	for _, key := range []struct{ variable, kind, value string }{
		{"YEOLDA_TOSS_WIDGET_SECRET_KEY", "gsk", s.Toss.WidgetSecretKey.Reveal()},
		{"YEOLDA_TOSS_API_SECRET_KEY", "sk", s.Toss.APISecretKey.Reveal()},
		{"YEOLDA_TOSS_CLIENT_KEY", "gck", s.Toss.ClientKey},
	} {
		found := kindOfTossKey.FindStringSubmatch(key.value)
		if found == nil || slices.Contains(demo, key.value) {
			continue
		}
		if found[2] != key.kind {
			problem(key.variable, "is a key of another kind, %s instead of %s", found[2], key.kind)
		}
		if mode = cmp.Or(mode, found[1]); found[1] != mode {
			problem(key.variable, "is a %s key beside a %s key", found[1], mode)
		}
	}
}

// TestPayments reports whether the payment provider takes payments that move no money.
func (s Settings) TestPayments() bool {
	return strings.HasSuffix(s.Toss.URL, "tosspayments.com") && strings.HasPrefix(s.Toss.WidgetSecretKey.Reveal(), "test_")
}

// Roles are the roles of administrators.
var Roles = []string{"hq", "manager", "viewer", "front-desk", "accountant", "cleaner"}

func (s Settings) validateRoles(problem report) {
	for _, role := range s.HTTP.SecondFactor {
		if !slices.Contains(Roles, role) {
			problem("YEOLDA_SECOND_FACTOR_ROLES", "%q is no role; the roles are %s", role, strings.Join(Roles, ", "))
		}
	}
}

// DemoSecrets returns the variables of the secrets that have their demo value, in a fixed order.
func (s Settings) DemoSecrets() []string {
	var variables []string
	for _, secret := range s.demoSecrets() {
		if secret.Demo() {
			variables = append(variables, secret.variable)
		}
	}
	return variables
}

// Exposed returns the addresses through which other machines reach the service: listeners of the API and of the embedded
// broker, and the public URL.
func (s Settings) Exposed() []string {
	addrs := []string{s.HTTP.Addr}
	if s.MQTT.Embedded() {
		addrs = append(addrs, s.MQTT.Addr, s.MQTT.TLSAddr)
	}
	var exposed []string
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			continue // not set, or reported by validateListeners
		}
		if !Loopback(addr) {
			exposed = append(exposed, addr)
		}
	}
	if u, err := url.Parse(s.HTTP.PublicURL); err == nil && u.Host != "" && !loopbackHost(u) {
		exposed = append(exposed, s.HTTP.PublicURL)
	}
	return exposed
}

// Loopback reports whether a listener on addr is reachable from this machine only. A name other than localhost counts as
// public, because its address may change.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
