package httpapi

import (
	"net/http"
	"net/netip"
	"strings"

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
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // the hop before this one is the last that is known
		}
		client = hop.Unmap()
	}
	return client
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
