package config_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

type program struct {
	Settings config.Settings `embed:""`
}

// parse reads flags and the environment as the program does.
func parse(t *testing.T, args ...string) (*program, *kong.Context, error) {
	t.Helper()
	config.IgnoreEmpty()
	var p program
	parser, err := kong.New(&p, kong.Resolvers(config.SecretFiles), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	return &p, parsed, err
}

// settings parses flags in demo mode.
func settings(t *testing.T, args ...string) config.Settings {
	t.Helper()
	p, _, err := parse(t, append([]string{"--mode=demo"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Settings
}

// production returns flags that are complete in production, by variable.
func production() map[string]string {
	return map[string]string{
		"YEOLDA_ENCRYPTION_KEY": "--encryption-key=" + seal.NewKey(), "YEOLDA_GRANT_KEY": "--grant-key=" + seal.NewKey(),
		"YEOLDA_PUBLIC_URL": "--public-url=https://rooms.example", "YEOLDA_TRUSTED_PROXIES": "--trusted-proxies=127.0.0.1/32",
		"YEOLDA_TOSS_URL": "--toss-url=https://api.tosspayments.com", "YEOLDA_TOSS_CLIENT_KEY": "--toss-client-key=live_gck_x",
		"YEOLDA_TOSS_WIDGET_SECRET_KEY": "--toss-widget-secret-key=live_gsk_x", "YEOLDA_TOSS_API_SECRET_KEY": "--toss-api-secret-key=live_sk_x",
		"YEOLDA_SOLAPI_API_KEY": "--solapi-api-key=K", "YEOLDA_SOLAPI_API_SECRET": "--solapi-api-secret=S", "YEOLDA_SOLAPI_SENDER": "--solapi-sender=021234567",
		"YEOLDA_SMTP_URL": "--smtp-url=smtp://mail.example", "YEOLDA_MAIL_FROM": "--mail-from=no-reply@rooms.example", "YEOLDA_HQ_EMAIL": "--hq-email=hq@rooms.example",
	}
}

// TestProductionNamesEveryMissingSetting checks all subsets of the settings that production requires.
func TestProductionNamesEveryMissingSetting(t *testing.T) {
	flags := production()
	variables := slices.Sorted(maps.Keys(flags))
	complete := parsedIn(t, slices.Collect(maps.Values(flags)))
	if err := complete.Effective().Check(); err != nil {
		t.Fatalf("complete settings: got %v, want no problem", err)
	}
	for subset := range 1 << len(variables) {
		var missing, want []string
		partial := complete
		for i, variable := range variables {
			if subset&(1<<i) == 0 {
				continue
			}
			missing = append(missing, variable)
			clearSetting(t, &partial, variable)
		}
		for _, variable := range missing {
			switch {
			case variable == "YEOLDA_TRUSTED_PROXIES" && slices.Contains(missing, "YEOLDA_PUBLIC_URL"): // a proxy is recognised by the public URL
			case (variable == "YEOLDA_MAIL_FROM" || variable == "YEOLDA_HQ_EMAIL") && slices.Contains(missing, "YEOLDA_SMTP_URL"):
			default:
				want = append(want, variable)
			}
		}
		effective := partial.Effective()
		if got := named(t, effective.Check()); !slices.Equal(got, want) {
			t.Fatalf("missing %v: problems of %v, want %v", missing, got, want)
		}
		if demo := effective.DemoSecrets(); len(demo) > 0 {
			t.Fatalf("missing %v: the demo secrets %v are in force", missing, demo)
		}
		for _, text := range []string{effective.Toss.URL, effective.Messages.SolapiURL, effective.Messages.SMTPURL, effective.Partner.URL} {
			if strings.Contains(text, "127.0.0.1") {
				t.Fatalf("missing %v: %s is the sandbox", missing, text)
			}
		}
	}
}

func parsedIn(t *testing.T, args []string) config.Settings {
	t.Helper()
	p, _, err := parse(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Settings
}

func clearSetting(t *testing.T, s *config.Settings, variable string) {
	t.Helper()
	switch variable {
	case "YEOLDA_ENCRYPTION_KEY":
		s.Secrets.EncryptionKey = config.Secret{}
	case "YEOLDA_GRANT_KEY":
		s.Secrets.GrantKey = config.Secret{}
	case "YEOLDA_PUBLIC_URL":
		s.HTTP.PublicURL = ""
	case "YEOLDA_TRUSTED_PROXIES":
		s.HTTP.TrustedProxies = nil
	case "YEOLDA_TOSS_URL":
		s.Toss.URL = ""
	case "YEOLDA_TOSS_CLIENT_KEY":
		s.Toss.ClientKey = ""
	case "YEOLDA_TOSS_WIDGET_SECRET_KEY":
		s.Toss.WidgetSecretKey = config.Secret{}
	case "YEOLDA_TOSS_API_SECRET_KEY":
		s.Toss.APISecretKey = config.Secret{}
	case "YEOLDA_SOLAPI_API_KEY":
		s.Messages.SolapiAPIKey = config.Secret{}
	case "YEOLDA_SOLAPI_API_SECRET":
		s.Messages.SolapiAPISecret = config.Secret{}
	case "YEOLDA_SOLAPI_SENDER":
		s.Messages.SolapiSender = ""
	case "YEOLDA_SMTP_URL":
		s.Messages.SMTPURL = ""
	case "YEOLDA_MAIL_FROM":
		s.Messages.MailFrom = ""
	case "YEOLDA_HQ_EMAIL":
		s.Messages.HQEmail = ""
	default:
		t.Fatalf("no rule to clear %s", variable)
	}
}

// named returns the variables of the problems in an error of Check, sorted.
func named(t *testing.T, err error) []string {
	t.Helper()
	var variables []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			problem := new(config.Problem)
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a config.Problem", err)
			}
			variables = append(variables, problem.Variable)
		}
	}
	slices.Sort(variables)
	return variables
}

func TestProductionRejectsFrames(t *testing.T) {
	framed := parsedIn(t, append(slices.Collect(maps.Values(production())), "--stage-origin=http://127.0.0.1:8070"))
	if got := named(t, framed.Effective().Check()); !slices.Equal(got, []string{"YEOLDA_STAGE_ORIGIN"}) {
		t.Errorf("problems %v, want that of YEOLDA_STAGE_ORIGIN", got)
	}
}

// TestStageOriginIsOneOrigin checks that the value, which goes into a header, can name nothing but one origin.
func TestStageOriginIsOneOrigin(t *testing.T) {
	for _, good := range []string{"", "http://127.0.0.1:8070", "http://localhost:8070", "https://stage.yeolda.example"} {
		if got := named(t, parsedIn(t, []string{"--mode=demo", "--stage-origin=" + good}).Effective().Check()); len(got) != 0 {
			t.Errorf("%q: problems %v, want none", good, got)
		}
	}
	for _, bad := range []string{
		"*", "http://*", "http://*.example", "127.0.0.1:8070", "ftp://127.0.0.1", "http://:8070", "http://0.0.0.0:8070/", "http://a/stage", "http://a?b",
		"http://a#b", "http://u@a", "http://a http://b", "http://a,http://b", "http://a;script-src *", "http://a;b", "http://a:port", "http://a\nb", "'self'", "HTTP://A",
	} {
		if got := named(t, parsedIn(t, []string{"--mode=demo", "--stage-origin=" + bad}).Effective().Check()); !slices.Equal(got, []string{"YEOLDA_STAGE_ORIGIN"}) {
			t.Errorf("%q: problems %v, want that of YEOLDA_STAGE_ORIGIN", bad, got)
		}
	}
}

func TestProductionRejectsDemoSecrets(t *testing.T) {
	for _, variable := range settings(t).Effective().DemoSecrets() {
		demo := settings(t).Effective()
		mixed := parsedIn(t, slices.Collect(maps.Values(production())))
		switch variable {
		case "YEOLDA_ENCRYPTION_KEY":
			mixed.Secrets.EncryptionKey = demo.Secrets.EncryptionKey
		case "YEOLDA_GRANT_KEY":
			mixed.Secrets.GrantKey = demo.Secrets.GrantKey
		case "YEOLDA_TOSS_WIDGET_SECRET_KEY":
			mixed.Toss.WidgetSecretKey = demo.Toss.WidgetSecretKey
		case "YEOLDA_TOSS_API_SECRET_KEY":
			mixed.Toss.APISecretKey = demo.Toss.APISecretKey
		case "YEOLDA_SOLAPI_API_KEY":
			mixed.Messages.SolapiAPIKey = demo.Messages.SolapiAPIKey
		case "YEOLDA_SOLAPI_API_SECRET":
			mixed.Messages.SolapiAPISecret = demo.Messages.SolapiAPISecret
		case "YEOLDA_PARTNER_SECRET":
			mixed.Partner = config.Partner{URL: "https://partner.example", ID: "us", Secrets: demo.Partner.Secrets}
		}
		if got := named(t, mixed.Effective().Check()); !slices.Equal(got, []string{variable}) {
			t.Errorf("production with the demo value of %s: problems of %v", variable, got)
		}
	}
}

func TestProxyRequiresTrustedAddresses(t *testing.T) {
	for _, test := range []struct {
		public, http string
		want         bool
	}{
		{"https://rooms.example", "127.0.0.1:8080", true},
		{"https://rooms.example", "0.0.0.0:8080", true}, // TLS ends at a proxy: the service has none
		{"http://rooms.example", "127.0.0.1:8080", true},
		{"http://rooms.example", "0.0.0.0:8080", false},
		{"http://127.0.0.1:8080", "127.0.0.1:8080", false},
	} {
		flags := production()
		delete(flags, "YEOLDA_TRUSTED_PROXIES")
		flags["YEOLDA_PUBLIC_URL"] = "--public-url=" + test.public
		args := append(slices.Collect(maps.Values(flags)), "--http-addr="+test.http)
		if got := named(t, parsedIn(t, args).Effective().Check()); slices.Contains(got, "YEOLDA_TRUSTED_PROXIES") != test.want || len(got) > 1 {
			t.Errorf("public URL %s, listener %s: problems of %v, want trusted proxies required: %v", test.public, test.http, got, test.want)
		}
	}
}

// own are flags that replace every demo secret.
func own() []string {
	return []string{
		"--encryption-key=" + seal.NewKey(), "--grant-key=" + seal.NewKey(),
		"--toss-url=https://api.tosspayments.com", "--toss-widget-secret-key=live_gsk_x", "--toss-api-secret-key=live_sk_x", "--toss-client-key=live_gck_x",
		"--solapi-api-key=K", "--solapi-api-secret=S", "--solapi-sender=021234567",
		"--partner-url=off",
	}
}

func TestFlagsAndVariablesHaveOneName(t *testing.T) {
	_, parsed, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parsed.Flags() {
		if flag.Name == "help" {
			continue
		}
		want := "YEOLDA_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if len(flag.Envs) != 1 || flag.Envs[0] != want {
			t.Errorf("--%s has the variable %v, not %s", flag.Name, flag.Envs, want)
		}
		if flag.Help == "" {
			t.Errorf("--%s has no help", flag.Name)
		}
	}
}

// docs/specification.md, Settings 1.
func TestDefaults(t *testing.T) {
	s := settings(t).Effective()
	got := map[string]any{
		"YEOLDA_HTTP_ADDR": s.HTTP.Addr, "YEOLDA_MQTT_ADDR": s.MQTT.Addr, "YEOLDA_BROKER_URL": s.MQTT.BrokerURL,
		"YEOLDA_DATABASE_URL": s.Database.URL, "YEOLDA_DATA_DIR": s.Database.DataDir, "YEOLDA_PUBLIC_URL": s.HTTP.PublicURL,
		"YEOLDA_METRICS_ADDR": s.HTTP.MetricsAddr, "YEOLDA_COOKIE_SECURE": s.HTTP.CookieSecure,
		"YEOLDA_CUSTOMER_HOLD_TTL": s.Times.CustomerHoldTTL, "YEOLDA_ADMIN_HOLD_TTL": s.Times.AdminHoldTTL,
		"YEOLDA_DEPOSIT_DUE": s.Times.DepositDue, "YEOLDA_LOGIN_CODE_TTL": s.Times.LoginCodeTTL,
		"YEOLDA_DOOR_RESULT_TIMEOUT": s.Times.DoorResultTimeout, "YEOLDA_RATE_LIMITS": s.HTTP.Limited(),
		"YEOLDA_SANDBOX_ADDR": s.Sandbox.Addr, "YEOLDA_TOSS_URL": s.Toss.URL,
		"YEOLDA_CUSTOMER_SESSION_TTL": s.Times.CustomerSessionTTL, "YEOLDA_HIDE_ACCOUNTS": s.HTTP.HideAccounts,
	}
	want := map[string]any{
		"YEOLDA_HTTP_ADDR": "127.0.0.1:8080", "YEOLDA_MQTT_ADDR": "127.0.0.1:1883", "YEOLDA_BROKER_URL": "",
		"YEOLDA_DATABASE_URL": "", "YEOLDA_DATA_DIR": "./data", "YEOLDA_PUBLIC_URL": "http://127.0.0.1:8080",
		"YEOLDA_METRICS_ADDR": "127.0.0.1:9090", "YEOLDA_COOKIE_SECURE": true,
		"YEOLDA_CUSTOMER_HOLD_TTL": 10 * time.Minute, "YEOLDA_ADMIN_HOLD_TTL": 5 * time.Minute,
		"YEOLDA_DEPOSIT_DUE": 10 * time.Minute, "YEOLDA_LOGIN_CODE_TTL": 3 * time.Minute,
		"YEOLDA_DOOR_RESULT_TIMEOUT": 7 * time.Second, "YEOLDA_RATE_LIMITS": true,
		"YEOLDA_SANDBOX_ADDR": "127.0.0.1:8090", "YEOLDA_TOSS_URL": "http://127.0.0.1:8090",
		"YEOLDA_CUSTOMER_SESSION_TTL": 24 * time.Hour, "YEOLDA_HIDE_ACCOUNTS": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-contract +ours):\n%s", diff)
	}
	if err := s.Check(); err != nil {
		t.Errorf("defaults in demo mode: got %v, want no problem", err)
	}
}

// The service does not contain the sandbox, so both packages define the demo values.
func TestDemoSecretsMatchSandbox(t *testing.T) {
	s := settings(t).Effective()
	got := []string{
		s.Toss.WidgetSecretKey.Reveal(), s.Toss.APISecretKey.Reveal(), s.Toss.ClientKey,
		s.Messages.SolapiAPIKey.Reveal(), s.Messages.SolapiAPISecret.Reveal(), s.Partner.ID, s.Partner.Secrets.Reveal(),
	}
	want := []string{
		sandbox.DemoWidgetSecretKey, sandbox.DemoAPISecretKey, sandbox.DemoWidgetClientKey,
		sandbox.DemoMessageKey, sandbox.DemoMessageSecret, sandbox.DemoPartnerID, sandbox.DemoPartnerSecret,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDemoModeRejectsExposedDemoSecrets(t *testing.T) {
	demo := settings(t).Effective().DemoSecrets()
	if len(demo) != 7 {
		t.Fatalf("demo secrets %v", demo)
	}
	for _, addr := range []string{"--http-addr=0.0.0.0:8080", "--http-addr=:8080", "--http-addr=[::]:8080", "--http-addr=192.0.2.1:80", "--http-addr=example.com:80", "--mqtt-addr=0.0.0.0:1883", "--public-url=https://rooms.example"} {
		err := settings(t, addr, "--mqtt-plain-public").Effective().Check()
		for _, variable := range demo {
			if err == nil || !strings.Contains(err.Error(), variable+": is a demo secret") {
				t.Errorf("%s: %s is accepted: %v", addr, variable, err)
			}
		}
		if err := settings(t, append(own(), addr, "--mqtt-plain-public")...).Effective().Check(); err != nil {
			t.Errorf("%s with secrets of its own: %v", addr, err)
		}
	}
	// A single demo secret is rejected, also if it was set explicitly, also as the second of two.
	effective := settings(t).Effective()
	for flag, value := range map[string]string{
		"--encryption-key": effective.Secrets.EncryptionKey.Reveal(), "--grant-key": effective.Secrets.GrantKey.Reveal(),
		"--toss-widget-secret-key": "test_gsk_yeolda_demo", "--toss-api-secret-key": "test_sk_yeolda_demo", "--solapi-api-secret": "yeolda-demo-message-secret",
	} {
		if flag == "--encryption-key" || flag == "--grant-key" {
			value = seal.NewKey() + "," + value
		}
		err := settings(t, append(own(), "--http-addr=:8080", flag+"="+value)...).Effective().Check()
		if err == nil || strings.Count(err.Error(), "demo secret") != 1 {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestCheckNamesEveryProblem(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{append(own(), "--http-addr=8080"), []string{"YEOLDA_HTTP_ADDR"}},
		{[]string{"--http-addr=127.0.0.1"}, []string{"YEOLDA_HTTP_ADDR"}}, // not that it is reachable from other machines
		{[]string{"--http-addr=127.0.0.1:99999"}, []string{"YEOLDA_HTTP_ADDR"}},
		{[]string{"--metrics-addr=127.0.0.1:-1"}, []string{"YEOLDA_METRICS_ADDR"}},
		{[]string{"--metrics-addr=127.0.0.1:0"}, nil},
		{[]string{"--hq-email=hq"}, []string{"YEOLDA_HQ_EMAIL"}},
		{[]string{"--hq-email=a@rooms.example, b@rooms.example"}, []string{"YEOLDA_HQ_EMAIL"}},
		{[]string{"--hq-email=HQ <hq@rooms.example>"}, []string{"YEOLDA_HQ_EMAIL"}},
		{[]string{"--mail-from=rooms.example"}, []string{"YEOLDA_MAIL_FROM"}},
		{[]string{"--mail-from=Rooms <no-reply@rooms.example>"}, nil},
		{[]string{"--metrics-addr=0.0.0.0:8080"}, []string{"YEOLDA_METRICS_ADDR"}},
		{[]string{"--mqtt-addr=127.0.0.1:8080"}, []string{"YEOLDA_MQTT_ADDR"}},
		{[]string{"--mqtt-tls-addr=127.0.0.1:8883"}, []string{"YEOLDA_TLS_CERT", "YEOLDA_TLS_KEY"}},
		{[]string{"--mqtt-tls-addr=127.0.0.1:8883", "--tls-cert=/nowhere", "--tls-key=/nowhere"}, []string{"YEOLDA_TLS_CERT", "YEOLDA_TLS_KEY"}},
		{append(own(), "--mqtt-addr=0.0.0.0:1883"), []string{"YEOLDA_MQTT_ADDR"}},
		{append(own(), "--mqtt-addr=0.0.0.0:1883", "--mqtt-plain-public"), nil},
		{append(own(), "--mqtt-addr=0.0.0.0:1883", "--broker-url=mqtts://broker.example:8883"), nil},
		{[]string{"--public-url=yeolda.example"}, []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=ftp://yeolda.example"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://yeolda.example/rooms"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://yeolda.example/?from=message"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://yeolda.example/?"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://yeolda.example/#home"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://user@yeolda.example"), []string{"YEOLDA_PUBLIC_URL"}},
		{append(own(), "--public-url=https://yeolda.example:8443/"), nil},
		{append(own(), "--public-url=http://[2001:db8::1]:8080"), nil},
		{[]string{"--broker-url=http://x"}, []string{"YEOLDA_BROKER_URL"}},
		{[]string{"--broker-url=mqtt://a:1883, mqtt://b:1883 mqtt://c:1883"}, nil},
		{[]string{"--broker-peer-url=mqtt://10.0.0.5:1883", "--database-url=postgres://db/yeolda"}, nil},
		{[]string{"--broker-peer-url=mqtt://10.0.0.5:1883"}, []string{"YEOLDA_BROKER_PEER_URL"}},
		{[]string{"--broker-peer-url=10.0.0.5:1883", "--database-url=postgres://db/yeolda"}, []string{"YEOLDA_BROKER_PEER_URL"}},
		{append(own(), "--mqtt-addr=0.0.0.0:1883", "--broker-url=mqtts://broker.example:8883", "--broker-peer-url=mqtt://10.0.0.5:1883", "--database-url=postgres://db/yeolda"), []string{"YEOLDA_MQTT_ADDR"}},
		{[]string{"--broker-url=mqtt://a:1883,b"}, []string{"YEOLDA_BROKER_URL"}},
		{[]string{"--smtp-url=mail.example"}, []string{"YEOLDA_SMTP_URL"}},
		{[]string{"--smtp-url=off", "--partner-url=off"}, nil},
		{[]string{"--customer-hold-ttl=0s", "--admin-hold-ttl=2h", "--deposit-due=-1s", "--login-code-ttl=16m", "--door-result-timeout=2m", "--customer-session-ttl=1s"},
			[]string{"YEOLDA_CUSTOMER_HOLD_TTL", "YEOLDA_ADMIN_HOLD_TTL", "YEOLDA_DEPOSIT_DUE", "YEOLDA_LOGIN_CODE_TTL", "YEOLDA_DOOR_RESULT_TIMEOUT", "YEOLDA_CUSTOMER_SESSION_TTL"}},
		{[]string{"--admin-idle-timeout=-1h", "--step-up-after=-1s", "--max-holds-per-client=-1", "--max-holds-per-phone=-1", "--refund-approval-above=-1"},
			[]string{"YEOLDA_ADMIN_IDLE_TIMEOUT", "YEOLDA_STEP_UP_AFTER", "YEOLDA_MAX_HOLDS_PER_CLIENT", "YEOLDA_MAX_HOLDS_PER_PHONE", "YEOLDA_REFUND_APPROVAL_ABOVE"}},
		{[]string{"--admin-idle-timeout=0s", "--step-up-after=0s", "--max-holds-per-client=0", "--max-holds-per-phone=0", "--refund-approval-above=0"}, nil},
		{[]string{"--encryption-key=short", "--grant-key=c2hvcnQ="}, []string{"YEOLDA_ENCRYPTION_KEY", "YEOLDA_GRANT_KEY"}},
		{[]string{"--toss-url=https://api.tosspayments.com"}, []string{"YEOLDA_TOSS_WIDGET_SECRET_KEY", "YEOLDA_TOSS_API_SECRET_KEY", "YEOLDA_TOSS_CLIENT_KEY"}},
		{[]string{"--toss-widget-secret-key=live_gsk_x"}, []string{"YEOLDA_TOSS_URL"}},
		{[]string{"--toss-widget-secret-key=test_sk_x", "--toss-api-secret-key=test_gsk_x"}, []string{"YEOLDA_TOSS_API_SECRET_KEY", "YEOLDA_TOSS_WIDGET_SECRET_KEY"}},
		{append(own(), "--toss-url=https://api.tosspayments.com", "--toss-widget-secret-key=live_gsk_x", "--toss-api-secret-key=test_sk_x", "--toss-client-key=live_gck_x"), []string{"YEOLDA_TOSS_API_SECRET_KEY"}},
		{[]string{"--second-factor-roles=hq, manager"}, nil},
		{[]string{"--second-factor-roles=hq,headquarters"}, []string{"YEOLDA_SECOND_FACTOR_ROLES"}},
		{[]string{"--solapi-api-key=K"}, []string{"YEOLDA_SOLAPI_API_SECRET", "YEOLDA_SOLAPI_SENDER"}},
		{[]string{"--partner-url=https://partner.example"}, []string{"YEOLDA_PARTNER_ID", "YEOLDA_PARTNER_SECRET"}},
		{[]string{"--agent-release-keys=abc"}, []string{"YEOLDA_AGENT_RELEASE_KEYS"}},
		{[]string{"--audit-head-url=elsewhere"}, []string{"YEOLDA_AUDIT_HEAD_URL"}},
		{[]string{"--traces-url=elsewhere"}, []string{"YEOLDA_TRACES_URL"}},
		{[]string{"--agent-packages=packages.example/agent"}, []string{"YEOLDA_AGENT_PACKAGES"}},
		{[]string{"--discord-public-key=abc"}, []string{"YEOLDA_DISCORD_PUBLIC_KEY"}},
	} {
		err := settings(t, c.args...).Effective().Check()
		got := named(t, err)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.args, err, c.want)
		}
	}
}

func TestEffectiveFillsDerivedSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		got  func(config.Settings) string
		want string
	}{
		{[]string{"--http-addr=127.0.0.1:9000"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "http://127.0.0.1:9000"},
		{[]string{"--http-addr=:9000"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "http://127.0.0.1:9000"},
		{[]string{"--http-addr=:9000", "--public-url=https://yeolda.example/"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "https://yeolda.example"},
		{[]string{"--public-url=HTTPS://Yeolda.Example:443"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "https://yeolda.example"},
		{[]string{"--public-url=http://[2001:DB8::1]:80"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "http://[2001:db8::1]"},
		{[]string{"--public-url=https://yeolda.example:80"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "https://yeolda.example:80"},
		{[]string{"--public-url=not an address"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "not an address"},
		{[]string{"--sandbox-addr=127.0.0.1:9001"}, func(s config.Settings) string { return s.Toss.URL }, "http://127.0.0.1:9001"},
		{[]string{"--sandbox-addr=127.0.0.1:9001"}, func(s config.Settings) string { return s.Messages.SolapiURL }, "http://127.0.0.1:9001"},
		{[]string{"--sandbox-addr=127.0.0.1:9001"}, func(s config.Settings) string { return s.Partner.URL }, "http://127.0.0.1:9001"},
		{[]string{"--sandbox-smtp-addr=127.0.0.1:9002"}, func(s config.Settings) string { return s.Messages.SMTPURL }, "smtp://127.0.0.1:9002?tls=none"},
		{[]string{"--solapi-api-key=K"}, func(s config.Settings) string { return s.Messages.SolapiURL }, config.SolapiURL},
		{own(), func(s config.Settings) string { return fmt.Sprint(s.DemoSecrets()) }, "[]"},
	} {
		effective := settings(t, c.args...).Effective()
		if got := c.got(effective); got != c.want {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", effective), fmt.Sprintf("%+v", effective.Effective())); diff != "" {
			t.Errorf("%v: Effective is not idempotent: %s", c.args, diff)
		}
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1:80": true, "127.8.9.1:80": true, "localhost:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "localhost.example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if got := config.Loopback(addr); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret("hunter2")
	encoded, err := json.Marshal(map[string]any{"s": secret})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", secret, "t", struct{ S config.Secret }{secret})
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", secret, "t", struct{ S config.Secret }{secret})
	for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v %s %q", secret, secret, secret, secret, secret), fmt.Sprintf("%+v %#v", struct{ S config.Secret }{secret}, struct{ S config.Secret }{secret}), string(encoded), log.String()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("shown: %s", text)
		}
	}
}

func TestSecretsFromFiles(t *testing.T) {
	key := seal.NewKey()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("YEOLDA_ENCRYPTION_KEY_FILE", file)
	t.Setenv("YEOLDA_DATABASE_URL_FILE", file)
	t.Setenv("YEOLDA_DATABASE_OWNER_URL_FILE", file)
	t.Setenv("YEOLDA_HTTP_ADDR_FILE", file) // not a secret
	s := settings(t)
	if s.Secrets.EncryptionKey.Reveal() != key || s.Database.URL != key || s.Database.OwnerURL != key || s.HTTP.Addr != "127.0.0.1:8080" {
		t.Errorf("%q, %q, %q", s.Secrets.EncryptionKey.Reveal(), s.Database.URL, s.HTTP.Addr)
	}
	if s := settings(t, "--encryption-key=flag"); s.Secrets.EncryptionKey.Reveal() != "flag" {
		t.Error("a flag does not take precedence over the file")
	}
	t.Setenv("YEOLDA_ENCRYPTION_KEY", key)
	if _, _, err := parse(t); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("both the variable and the file: %v", err)
	}
	t.Setenv("YEOLDA_ENCRYPTION_KEY", "")
	t.Setenv("YEOLDA_ENCRYPTION_KEY_FILE", file+"-gone")
	if _, _, err := parse(t); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestExplain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("YEOLDA_MQTT_ADDR", "127.0.0.1:1884")
	t.Setenv("YEOLDA_METRICS_ADDR", "") // a compose file passes an unset variable on like this
	t.Setenv("YEOLDA_SOLAPI_API_KEY_FILE", file)
	t.Setenv("YEOLDA_DATABASE_URL", "postgres://app:hunter2@db/yeolda")
	t.Setenv("YEOLDA_BROKER_URL", "mqtt://cloud:hunter2@a:1883, mqtt://b:1883 mqtt://cloud:hunter2@c,mqtt://b:1883")
	t.Setenv("YEOLDA_TRUSTED_PROXIES", "10.0.0.0/8,::1/128")
	t.Setenv("YEOLDA_DISCORD_USERS", "22=*;11=gangnam,hongdae")
	p, parsed, err := parse(t, "--mode=demo", "--http-addr=127.0.0.1:9000", "--no-cookie-secure", "--smtp-url=smtp://u:hunter2@mail")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]config.Line{}
	for _, line := range config.Explain(parsed, &p.Settings) {
		lines[line.Variable] = line
		if strings.Contains(line.Value, "hunter2") || strings.Contains(line.Value, "from a file") {
			t.Errorf("%s shows a secret: %s", line.Variable, line.Value)
		}
	}
	for _, want := range []config.Line{
		{"YEOLDA_HTTP_ADDR", "127.0.0.1:9000", "flag"},
		{"YEOLDA_PUBLIC_URL", "http://127.0.0.1:9000", "derived"},
		{"YEOLDA_COOKIE_SECURE", "false", "flag"},
		{"YEOLDA_MQTT_ADDR", "127.0.0.1:1884", "environment"},
		{"YEOLDA_METRICS_ADDR", "127.0.0.1:9090", "default"},
		{"YEOLDA_SOLAPI_API_KEY", "***", "file " + file},
		{"YEOLDA_SOLAPI_URL", "https://api.solapi.com", "derived"},
		{"YEOLDA_SOLAPI_API_SECRET", "", "not set"},
		{"YEOLDA_ENCRYPTION_KEY", "***", "demo"},
		{"YEOLDA_DATABASE_URL", "postgres://app:xxxxx@db/yeolda", "environment"},
		{"YEOLDA_SMTP_URL", "smtp://u:xxxxx@mail", "flag"},
		{"YEOLDA_BROKER_URL", "mqtt://cloud:xxxxx@a:1883,mqtt://b:1883,mqtt://cloud:xxxxx@c", "environment"},
		{"YEOLDA_TRUSTED_PROXIES", "10.0.0.0/8,::1/128", "environment"},
		{"YEOLDA_DISCORD_USERS", "11=gangnam,hongdae;22=*", "environment"},
		{"YEOLDA_HIDE_ACCOUNTS", "false", "default"},
		{"YEOLDA_TLS_CERT", "", "not set"},
	} {
		if got := lines[want.Variable]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	t.Setenv("YEOLDA_HTTP_ADR", "x")
	t.Setenv("YEOLDA_ENCRYPTION_KEY_FILE", "x")
	t.Setenv("YEOLDA_SIM_ADDR", "x")
	t.Setenv("YEOLDA_AGENT_USERNAME", "x")
	t.Setenv("YEOLDA_AGENT_RELEASE_KEY", "x") // without s
	if diff := cmp.Diff([]string{"YEOLDA_AGENT_RELEASE_KEY", "YEOLDA_HTTP_ADR"}, config.UnknownVariables()); diff != "" {
		t.Error(diff)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	first, second := seal.NewKey(), seal.NewKey()
	s := config.Settings{Secrets: config.Secrets{GrantKey: config.NewSecret(first + " , " + second), EncryptionKey: config.NewSecret(first + "," + second)}}
	keys, err := s.GrantKeys()
	if err != nil || len(keys) != 2 || base64.StdEncoding.EncodeToString(keys[0].Seed()) != first {
		t.Errorf("grant keys %d, %v", len(keys), err)
	}
	code, err := s.LoginCodeKey()
	if err != nil || len(code) != 32 || base64.StdEncoding.EncodeToString(code) == first {
		t.Errorf("login code key of %d bytes, %v", len(code), err)
	}
	for _, bad := range []string{"", ",", "x", "c2hvcnQ="} {
		s.Secrets.GrantKey = config.NewSecret(bad)
		if _, err := s.GrantKeys(); err == nil {
			t.Errorf("grant key %q is accepted", bad)
		}
	}
}

func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0.0.0.0:8080": "127.0.0.1:8080",
		"[::]:8080": "127.0.0.1:8080", "yeolda.test:80": "yeolda.test:80", "nonsense": "nonsense",
	} {
		if got := config.Reachable(addr); got != want {
			t.Errorf("Reachable(%q) = %q, want %q", addr, got, want)
		}
	}
}
