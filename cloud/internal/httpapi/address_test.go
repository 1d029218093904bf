package httpapi

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		trusted    []netip.Prefix
		want       string
	}{
		{"no proxy", "203.0.113.7:1234", nil, proxies, "203.0.113.7"},
		{"a claim by no trusted proxy", "203.0.113.7:1234", []string{"198.51.100.1"}, proxies, "203.0.113.7"},
		{"no proxy is trusted", "10.0.0.1:1234", []string{"198.51.100.1"}, nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1:1234", []string{"198.51.100.1"}, proxies, "198.51.100.1"},
		{"a claim before the proxy's word", "10.0.0.1:1234", []string{"1.1.1.1, 198.51.100.1"}, proxies, "198.51.100.1"},
		{"two proxies", "[::1]:1234", []string{"1.1.1.1, 198.51.100.1, 10.1.2.3"}, proxies, "198.51.100.1"},
		{"two headers", "[::1]:1234", []string{"198.51.100.1", "10.1.2.3"}, proxies, "198.51.100.1"},
		{"proxies all the way", "10.0.0.1:1234", []string{"10.0.0.2"}, proxies, "10.0.0.2"},
		{"not an address", "10.0.0.1:1234", []string{"198.51.100.1, unknown"}, proxies, "10.0.0.1"},
		{"a hop with its port", "10.0.0.1:1234", []string{"198.51.100.1:4711"}, proxies, "198.51.100.1"},
		{"an IPv6 hop", "10.0.0.1:1234", []string{"2001:db8::7"}, proxies, "2001:db8::7"},
		{"an IPv6 hop in brackets", "10.0.0.1:1234", []string{"[2001:db8::7]"}, proxies, "2001:db8::7"},
		{"an IPv6 hop with its port", "10.0.0.1:1234", []string{"1.1.1.1, [2001:db8::7]:4711, 10.1.2.3:80"}, proxies, "2001:db8::7"},
		{"no header", "10.0.0.1:1234", nil, proxies, "10.0.0.1"},
		{"mapped", "[::ffff:10.0.0.1]:1234", []string{"::ffff:198.51.100.1"}, proxies, "198.51.100.1"},
		{"no peer", "@", []string{"198.51.100.1"}, proxies, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := clientAddress(r, c.trusted).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestUntrustedProxy(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	for _, c := range []struct {
		name, peer, forwarded, want string
	}{
		{"a proxy that the setting lacks", "172.18.0.5:1234", "198.51.100.1", "172.18.0.5"},
		{"an IPv6 proxy that the setting lacks", "[fd00::5]:1234", "198.51.100.1", "fd00::5"},
		{"the proxy of the setting", "10.0.0.1:1234", "198.51.100.1", ""},
		{"a client of the private network", "172.18.0.5:1234", "", ""},
		{"a client of the Internet that pretends", "203.0.113.7:1234", "198.51.100.1", ""},
	} {
		now := time.Now()
		api := &API{TrustedProxies: trusted, Now: func() time.Time { return now }}
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		api.noteProxy(r)
		if got := api.UntrustedProxy(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		now = now.Add(untrustedTTL)
		if got := api.UntrustedProxy(); got != "" {
			t.Errorf("%s: got %q a day later, want none", c.name, got)
		}
	}
}
