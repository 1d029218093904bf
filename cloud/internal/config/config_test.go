package config_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

func settings(t *testing.T, args ...string) config.Settings {
	t.Helper()
	p, _, err := parse(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Settings
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
		t.Errorf("the defaults are refused: %v", err)
	}
}

// The service contains no sandbox, so its demo values stand in two places: here they meet.
func TestDemoSecretsAreTheSandboxs(t *testing.T) {
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

func TestDemoSecretsAreRefusedInPublic(t *testing.T) {
	demo := settings(t).Effective().DemoSecrets()
	if len(demo) != 7 {
		t.Fatalf("demo secrets %v", demo)
	}
	for _, addr := range []string{"--http-addr=0.0.0.0:8080", "--http-addr=:8080", "--http-addr=[::]:8080", "--http-addr=192.0.2.1:80", "--http-addr=example.com:80", "--mqtt-addr=0.0.0.0:1883"} {
		err := settings(t, addr, "--mqtt-plain-public").Effective().Check()
		for _, variable := range demo {
			if err == nil || !strings.Contains(err.Error(), variable+": the demo secret is in force") {
				t.Errorf("%s: %s is not refused: %v", addr, variable, err)
			}
		}
		if err := settings(t, append(own(), addr, "--mqtt-plain-public")...).Effective().Check(); err != nil {
			t.Errorf("%s with secrets of its own: %v", addr, err)
		}
	}
	// One left over is enough, also one that was typed in, also as the second of two.
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
		{[]string{"--metrics-addr=0.0.0.0:8080"}, []string{"YEOLDA_METRICS_ADDR"}},
		{[]string{"--mqtt-addr=127.0.0.1:8080"}, []string{"YEOLDA_MQTT_ADDR"}},
		{[]string{"--mqtt-tls-addr=127.0.0.1:8883"}, []string{"YEOLDA_TLS_CERT", "YEOLDA_TLS_KEY"}},
		{[]string{"--mqtt-tls-addr=127.0.0.1:8883", "--tls-cert=/nowhere", "--tls-key=/nowhere"}, []string{"YEOLDA_TLS_CERT", "YEOLDA_TLS_KEY"}},
		{append(own(), "--mqtt-addr=0.0.0.0:1883"), []string{"YEOLDA_MQTT_ADDR"}},
		{append(own(), "--mqtt-addr=0.0.0.0:1883", "--mqtt-plain-public"), nil},
		{append(own(), "--mqtt-addr=0.0.0.0:1883", "--broker-url=mqtts://broker.example:8883"), nil},
		{[]string{"--public-url=yeolda.example"}, []string{"YEOLDA_PUBLIC_URL"}},
		{[]string{"--public-url=ftp://yeolda.example"}, []string{"YEOLDA_PUBLIC_URL"}},
		{[]string{"--broker-url=http://x"}, []string{"YEOLDA_BROKER_URL"}},
		{[]string{"--smtp-url=mail.example"}, []string{"YEOLDA_SMTP_URL"}},
		{[]string{"--smtp-url=off", "--partner-url=off"}, nil},
		{[]string{"--customer-hold-ttl=0s", "--admin-hold-ttl=2h", "--deposit-due=-1s", "--login-code-ttl=16m", "--door-result-timeout=2m", "--customer-session-ttl=1s"},
			[]string{"YEOLDA_CUSTOMER_HOLD_TTL", "YEOLDA_ADMIN_HOLD_TTL", "YEOLDA_DEPOSIT_DUE", "YEOLDA_LOGIN_CODE_TTL", "YEOLDA_DOOR_RESULT_TIMEOUT", "YEOLDA_CUSTOMER_SESSION_TTL"}},
		{[]string{"--encryption-key=short", "--grant-key=c2hvcnQ="}, []string{"YEOLDA_ENCRYPTION_KEY", "YEOLDA_GRANT_KEY"}},
		{[]string{"--toss-url=https://api.tosspayments.com"}, []string{"YEOLDA_TOSS_WIDGET_SECRET_KEY", "YEOLDA_TOSS_API_SECRET_KEY", "YEOLDA_TOSS_CLIENT_KEY"}},
		{[]string{"--toss-widget-secret-key=live_gsk_x"}, []string{"YEOLDA_TOSS_URL"}},
		{[]string{"--solapi-api-key=K"}, []string{"YEOLDA_SOLAPI_API_SECRET", "YEOLDA_SOLAPI_SENDER"}},
		{[]string{"--partner-url=https://partner.example"}, []string{"YEOLDA_PARTNER_ID", "YEOLDA_PARTNER_SECRET"}},
		{[]string{"--discord-public-key=abc"}, []string{"YEOLDA_DISCORD_PUBLIC_KEY"}},
	} {
		err := settings(t, c.args...).Effective().Check()
		var got []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				problem := new(config.Problem)
				if !errors.As(err, &problem) {
					t.Fatalf("%v is no problem", err)
				}
				got = append(got, problem.Variable)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.args, err, c.want)
		}
	}
}

func TestWhatFollowsFromWhat(t *testing.T) {
	for _, c := range []struct {
		args []string
		got  func(config.Settings) string
		want string
	}{
		{[]string{"--http-addr=127.0.0.1:9000"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "http://127.0.0.1:9000"},
		{[]string{"--http-addr=:9000"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "http://127.0.0.1:9000"},
		{[]string{"--http-addr=:9000", "--public-url=https://yeolda.example/"}, func(s config.Settings) string { return s.HTTP.PublicURL }, "https://yeolda.example"},
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
			t.Errorf("%v: effective twice differs: %s", c.args, diff)
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
	t.Setenv("YEOLDA_HTTP_ADDR_FILE", file) // not a secret
	s := settings(t)
	if s.Secrets.EncryptionKey.Reveal() != key || s.Database.URL != key || s.HTTP.Addr != "127.0.0.1:8080" {
		t.Errorf("%q, %q, %q", s.Secrets.EncryptionKey.Reveal(), s.Database.URL, s.HTTP.Addr)
	}
	if s := settings(t, "--encryption-key=flag"); s.Secrets.EncryptionKey.Reveal() != "flag" {
		t.Error("a flag does not come before the file")
	}
	t.Setenv("YEOLDA_ENCRYPTION_KEY", key)
	if _, _, err := parse(t); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("both the variable and the file: %v", err)
	}
	t.Setenv("YEOLDA_ENCRYPTION_KEY", "")
	t.Setenv("YEOLDA_ENCRYPTION_KEY_FILE", file+"-gone")
	if _, _, err := parse(t); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestExplain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("YEOLDA_MQTT_ADDR", "127.0.0.1:1884")
	t.Setenv("YEOLDA_METRICS_ADDR", "") // as a compose file passes what nobody set
	t.Setenv("YEOLDA_SOLAPI_API_KEY_FILE", file)
	t.Setenv("YEOLDA_DATABASE_URL", "postgres://app:hunter2@db/yeolda")
	t.Setenv("YEOLDA_TRUSTED_PROXIES", "10.0.0.0/8,::1/128")
	t.Setenv("YEOLDA_DISCORD_USERS", "22=*;11=gangnam,hongdae")
	p, parsed, err := parse(t, "--http-addr=127.0.0.1:9000", "--no-cookie-secure", "--smtp-url=smtp://u:hunter2@mail")
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
	if diff := cmp.Diff([]string{"YEOLDA_HTTP_ADR"}, config.UnknownVariables()); diff != "" {
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
