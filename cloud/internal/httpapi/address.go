package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// clientAddress returns the client's address. X-Forwarded-For counts only as far as trusted proxies wrote it: the client is
// the first address from the right that is not a trusted proxy. The zero value means that the connection has no address.
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(client, trusted); i-- {
		hop, err := parseHop(strings.TrimSpace(hops[i]))
		if err != nil {
			break // the hop before this one is the last that is known
		}
		client = hop.Unmap()
	}
	return client
}

// parseHop parses an address of X-Forwarded-For. Some proxies add the port: 198.51.100.1:4711, [2001:db8::1]:4711.
func parseHop(text string) (netip.Addr, error) {
	if hop, err := netip.ParseAddrPort(text); err == nil {
		return hop.Addr(), nil
	}
	return netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// seenProxy is a proxy that forwarded a request.
type seenProxy struct {
	addr netip.Addr
	at   time.Time
}

// untrustedTTL is how long a proxy is remembered: the repair may be one of its settings, which restarts no service.
const untrustedTTL = 24 * time.Hour

// noteProxy records a peer of a private network that forwards a request and that TrustedProxies lacks: all its clients share one address and
// the limits of that. Such a header of a client of the Internet has no meaning.
func (a *API) noteProxy(r *http.Request) {
	if len(r.Header["X-Forwarded-For"]) == 0 {
		return
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	addr := peer.Addr().Unmap().WithZone("")
	if err == nil && (addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast()) && !isTrusted(addr, a.TrustedProxies) {
		a.untrusted.Store(&seenProxy{addr, a.Now()})
	}
}

// UntrustedProxy returns the address of a proxy that TrustedProxies lacks, or "" if no request came from one within the last day.
func (a *API) UntrustedProxy() string {
	if seen := a.untrusted.Load(); seen != nil && a.Now().Sub(seen.at) < untrustedTTL {
		return seen.addr.String()
	}
	return ""
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, prefix := range trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// ClientAddress returns the client's address as the audit log records it.
func (a *API) ClientAddress(r *http.Request) string { return a.client(r) }

// client returns the key of per-client rate limits.
func (a *API) client(r *http.Request) string {
	return limit.Address(clientAddress(r, a.TrustedProxies))
}
