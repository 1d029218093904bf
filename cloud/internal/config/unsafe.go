package config

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// The shortest prefixes of trusted proxies: those of the largest private networks, 10.0.0.0/8 and fc00::/7.
const (
	shortestIPv4 = 8
	shortestIPv6 = 7
)

// validateSafety rejects in production what only a demonstration may do.
func (s Settings) validateSafety(problem report) {
	if s.Demo() {
		return
	}
	for _, proxies := range s.HTTP.TrustedProxies {
		shortest := shortestIPv6
		if proxies.Addr().Is4() {
			shortest = shortestIPv4
		}
		if proxies.Bits() < shortest {
			problem("YEOLDA_TRUSTED_PROXIES", "%s lets clients choose the address that limits and the audit log see; set only the addresses of the proxies in front of this service", proxies)
			break
		}
	}
	for _, provider := range []struct{ variable, address string }{{"YEOLDA_TOSS_URL", s.Toss.URL}, {"YEOLDA_SOLAPI_URL", s.Messages.SolapiURL}} {
		u, err := url.Parse(provider.address)
		if err != nil || u.Scheme != "http" || u.Host == "" { // reported by validateURLs, or missing
			continue
		}
		if !loopbackHost(u) && u.Host != Reachable(s.Sandbox.Addr) {
			problem(provider.variable, "http:// sends keys and data of guests without TLS; set the https:// address")
		}
	}
}

// TrivialKeys returns the variables of keys that are one byte repeated, such as 32 zeros. Of several encryption keys only the first one seals.
func (s Settings) TrivialKeys() (variables []string) {
	if keys := list(s.Secrets.EncryptionKey.Reveal()); len(keys) > 0 && trivial(keys[0]) {
		variables = append(variables, "YEOLDA_ENCRYPTION_KEY")
	}
	if slices.ContainsFunc(list(s.Secrets.GrantKey.Reveal()), trivial) {
		variables = append(variables, "YEOLDA_GRANT_KEY")
	}
	return variables
}

// trivial reports whether a key, in base64, is one byte repeated.
func trivial(text string) bool {
	key, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(key) == seal.KeySize && strings.Count(string(key), string(key[:1])) == len(key)
}

// overlap reports whether two listeners of the same port cannot both listen: their hosts are the same, or one host includes the
// other. Names other than localhost are not looked up.
func overlap(host, other string) bool {
	a, aErr := listenAddr(host)
	b, bErr := listenAddr(other)
	if aErr != nil || bErr != nil {
		return strings.EqualFold(host, other) || aErr == nil && a.IsUnspecified() || bErr == nil && b.IsUnspecified()
	}
	includes := func(a, b netip.Addr) bool {
		return a == netip.IPv6Unspecified() || a == netip.IPv4Unspecified() && b.Is4()
	}
	return a == b || includes(a, b) || includes(b, a)
}

// listenAddr returns the address that a listener's host means. An empty host is every address.
func listenAddr(host string) (netip.Addr, error) {
	switch host {
	case "":
		return netip.IPv6Unspecified(), nil
	case "localhost":
		return netip.MustParseAddr("127.0.0.1"), nil
	}
	addr, err := netip.ParseAddr(host)
	return addr.Unmap(), err
}
