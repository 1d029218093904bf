package config_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// TestProductionRejectsUnsafeSettings replaces one setting of a complete installation at a time.
func TestProductionRejectsUnsafeSettings(t *testing.T) {
	for _, test := range []struct {
		variable, value string
		rejected        bool
	}{
		{"YEOLDA_TRUSTED_PROXIES", "0.0.0.0/0", true},
		{"YEOLDA_TRUSTED_PROXIES", "::/0", true},
		{"YEOLDA_TRUSTED_PROXIES", "127.0.0.1/32,::/0", true},
		{"YEOLDA_TRUSTED_PROXIES", "0.0.0.0/1,128.0.0.0/1", true},
		{"YEOLDA_TRUSTED_PROXIES", "2000::/3", true},
		{"YEOLDA_TRUSTED_PROXIES", "10.0.0.0/8,fc00::/7,172.16.0.0/12", false},

		{"YEOLDA_TOSS_URL", "http://api.tosspayments.com", true},
		{"YEOLDA_TOSS_URL", "http://10.0.0.9:8090", true},
		{"YEOLDA_TOSS_URL", "http://localhost.example.com", true},
		{"YEOLDA_TOSS_URL", "HTTP://api.tosspayments.com", true},
		{"YEOLDA_TOSS_URL", "http://127.0.0.1:9000", false},
		{"YEOLDA_TOSS_URL", "http://localhost:9000", false},
		{"YEOLDA_TOSS_URL", "http://[::1]:9000", false},
		{"YEOLDA_SOLAPI_URL", "http://api.solapi.com", true},
		{"YEOLDA_SOLAPI_URL", "https://api.solapi.com", false},
		{"YEOLDA_SOLAPI_URL", "http://127.0.0.1:9000", false},
	} {
		flags := production()
		name := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(test.variable, "YEOLDA_"), "_", "-"))
		flags[test.variable] = name + "=" + test.value
		var want []string
		if test.rejected {
			want = []string{test.variable}
		}
		err := parsedIn(t, slices.Collect(maps.Values(flags))).Effective().Check()
		if got := named(t, err); !slices.Equal(got, want) {
			t.Errorf("%s=%s in production: got %v, want problems of %v", test.variable, test.value, err, want)
		}
		if demo := settings(t, flags[test.variable], "--toss-client-key=test_gck_x", "--toss-widget-secret-key=test_gsk_x", "--toss-api-secret-key=test_sk_x").Effective().Check(); demo != nil {
			t.Errorf("%s=%s in a demonstration: got %v, want no problem", test.variable, test.value, demo)
		}
	}
}

func TestTrivialKeys(t *testing.T) {
	zero := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	ones := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", seal.KeySize)))
	for _, test := range []struct {
		sealing, grant string
		want           []string
	}{
		{seal.NewKey(), seal.NewKey(), nil},
		{zero, seal.NewKey(), []string{"YEOLDA_ENCRYPTION_KEY"}},
		{ones + "," + seal.NewKey(), ones, []string{"YEOLDA_ENCRYPTION_KEY", "YEOLDA_GRANT_KEY"}},
		{seal.NewKey() + "," + zero, seal.NewKey() + "," + zero, []string{"YEOLDA_GRANT_KEY"}}, // the old one only opens, until yeolda reseal
	} {
		s := settings(t, append(own(), "--encryption-key="+test.sealing, "--grant-key="+test.grant)...)
		if got := s.TrivialKeys(); !slices.Equal(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestSandboxNeedsNoTLS uses the sandbox of a staging deployment in a container of its own.
func TestSandboxNeedsNoTLS(t *testing.T) {
	flags := production()
	flags["YEOLDA_TOSS_URL"] = "--toss-url=http://sandbox:8090"
	args := slices.Collect(maps.Values(flags))
	if got := named(t, parsedIn(t, args).Effective().Check()); !slices.Equal(got, []string{"YEOLDA_TOSS_URL"}) {
		t.Errorf("another host: problems %v, want that of YEOLDA_TOSS_URL", got)
	}
	flags["YEOLDA_TOSS_WIDGET_SECRET_KEY"], flags["YEOLDA_TOSS_API_SECRET_KEY"] = "--toss-widget-secret-key=test_gsk_x", "--toss-api-secret-key=test_sk_x"
	flags["YEOLDA_TOSS_CLIENT_KEY"] = "--toss-client-key=test_gck_x"
	args = append(slices.Collect(maps.Values(flags)), "--sandbox-addr=sandbox:8090")
	if got := named(t, parsedIn(t, args).Effective().Check()); len(got) > 0 {
		t.Errorf("the sandbox: problems %v, want none", got)
	}
}

func TestPortMayBeUsedAtTwoAddresses(t *testing.T) {
	for _, test := range []struct {
		http, metrics string
		conflict      bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "10.0.0.1:8080", false},
		{"127.0.0.1:8080", "127.0.0.2:8080", false},
		{"127.0.0.1:8080", "[::1]:8080", false},
		{"127.0.0.1:8080", "localhost:8080", true},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true},
		{"127.0.0.1:8080", "0.0.0.0:8080", true},
		{"127.0.0.1:8080", "[::]:8080", true},
		{"127.0.0.1:8080", ":8080", true},
		{"[::]:8080", "10.0.0.1:8080", true},
		{"0.0.0.0:8080", "[::1]:8080", false},
		{"[::1]:8080", "[0:0:0:0:0:0:0:1]:8080", true},
		{"a.internal:8080", "A.internal:8080", true},
		{"a.internal:8080", "b.internal:8080", false},
		{"0.0.0.0:8080", "a.internal:8080", true},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"127.0.0.1:8080", "127.0.0.1:8081", false},
	} {
		var want []string
		if test.conflict {
			want = []string{"YEOLDA_METRICS_ADDR"}
		}
		args := append(own(), "--http-addr="+test.http, "--metrics-addr="+test.metrics, "--mqtt-addr=127.0.0.1:1883")
		if got := named(t, settings(t, args...).Effective().Check()); !slices.Equal(got, want) {
			t.Errorf("HTTP at %s, metrics at %s: problems of %v, want %v", test.http, test.metrics, got, want)
		}
	}
}
