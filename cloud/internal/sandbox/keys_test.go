package sandbox

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseBasic(t *testing.T) {
	t.Parallel()
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct{ header, key, code string }{
		"vector":        {"Basic dGVzdF9za19leGFtcGxlOg==", "test_sk_example", ""},
		"lower case":    {"basic dGVzdF9za19leGFtcGxlOg==", "test_sk_example", ""},
		"no header":     {"", "", "UNAUTHORIZED_KEY"},
		"other scheme":  {"Bearer dGVzdF9za19leGFtcGxlOg==", "", "UNAUTHORIZED_KEY"},
		"not base64":    {"Basic test_sk_example:", "", "UNAUTHORIZED_KEY"},
		"no colon":      {"Basic " + encode("test_sk_example"), "", "INCORRECT_BASIC_AUTH_FORMAT"},
		"with password": {"Basic " + encode("test_sk_example:secret"), "", "UNAUTHORIZED_KEY"},
		"no key":        {"Basic " + encode(":"), "", "UNAUTHORIZED_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := parseBasic(test.header)
			code := ""
			if refusal := new(Refusal); errors.As(err, &refusal) {
				code = refusal.Code
			} else if err != nil {
				t.Error(err)
			}
			if key != test.key || code != test.code {
				t.Errorf("parseBasic(%q) = %q, %q; want %q, %q", test.header, key, code, test.key, test.code)
			}
		})
	}
}

func FuzzParseBasic(f *testing.F) {
	f.Add("Basic dGVzdF9za19leGFtcGxlOg==")
	f.Add("Basic Og==")
	f.Add("basic  dGVzdA==")
	f.Fuzz(func(t *testing.T, header string) {
		key, err := parseBasic(header)
		if (key == "") != (err != nil) {
			t.Fatalf("key %q with error %v", key, err)
		}
		if err != nil {
			return
		}
		again := "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))
		if key2, err := parseBasic(again); key2 != key || err != nil {
			t.Fatalf("%q gives %q, written again %q (%v)", header, key, key2, err)
		}
		if strings.Contains(key, ":") {
			t.Fatalf("key %q holds a colon", key)
		}
	})
}

func TestParseMessageAuth(t *testing.T) {
	t.Parallel()
	const ok = "HMAC-SHA256 apiKey=KEY, date=2026-11-21T03:04:05Z, salt=0123456789abcdef, signature=ab12"
	a, err := parseMessageAuth(ok)
	if err != nil {
		t.Fatal(err)
	}
	want := messageAuth{"KEY", "2026-11-21T03:04:05Z", "0123456789abcdef", "ab12", time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)}
	if a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
	for name, header := range map[string]string{
		"empty":         "",
		"other scheme":  strings.Replace(ok, "HMAC-SHA256", "Bearer", 1),
		"short salt":    strings.Replace(ok, "0123456789abcdef", "0123456789a", 1),
		"long salt":     strings.Replace(ok, "0123456789abcdef", strings.Repeat("a", 65), 1),
		"no signature":  strings.Replace(ok, ", signature=ab12", "", 1),
		"twice":         ok + ", salt=0123456789abcdef",
		"unknown field": ok + ", more=1",
		"no date":       strings.Replace(ok, "2026-11-21T03:04:05Z", "today", 1),
	} {
		if _, err := parseMessageAuth(header); err == nil {
			t.Errorf("%s: %q is taken", name, header)
		}
	}
}

func FuzzParseMessageAuth(f *testing.F) {
	f.Add("HMAC-SHA256 apiKey=KEY, date=2026-11-21T03:04:05Z, salt=0123456789abcdef, signature=ab12")
	f.Add("HMAC-SHA256 apiKey=,date=,salt=,signature=")
	f.Fuzz(func(t *testing.T, header string) {
		a, err := parseMessageAuth(header)
		if err != nil {
			return
		}
		if a.apiKey == "" || a.signature == "" || len(a.salt) < 12 || len(a.salt) > 64 || a.at.IsZero() && a.date == "" {
			t.Fatalf("%q is taken as %+v", header, a)
		}
	})
}

func TestMerchantOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct {
		first    string
		merchant int
	}{
		"test_sk_yeolda_demo": {"test_sk_yeolda_demo", 1}, "test_sk_yeolda_demo_2": {"test_sk_yeolda_demo", 2}, "test_sk_yeolda_demo_99": {"test_sk_yeolda_demo", 99},
		"test_sk_yeolda_demo_1": {"test_sk_yeolda_demo_1", 1}, "test_sk_yeolda_demo_02": {"test_sk_yeolda_demo_02", 1}, "test_sk_yeolda_demo_100": {"test_sk_yeolda_demo_100", 1},
		"": {"", 1}, "_2": {"", 2},
	} {
		if first, merchant := merchantOf(key); first != want.first || merchant != want.merchant {
			t.Errorf("merchantOf(%q) = %q, %d; want %q, %d", key, first, merchant, want.first, want.merchant)
		}
	}
	if k := apiKeys.of(7); k != "api-7" || k.merchant() != 7 || k.kind() != apiKeys || k.mID() != "tayeolda07" || apiKeys.of(1) != apiKeys {
		t.Errorf("key set %s of merchant %d", k, k.merchant())
	}
}
