package httpapi

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// clientAddress returns the address a request comes from. X-Forwarded-For is believed only as far as trusted
// proxies have written it: from the right, the first address that is none of them. The zero address if the
// connection has none.
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
			break // whoever wrote this is the last one we know
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

// ClientAddress is who sent a request, as the audit log has them.
func (a *API) ClientAddress(r *http.Request) string { return a.client(r) }

// client is the subject of rate limits by client.
func (a *API) client(r *http.Request) string {
	return limit.Address(clientAddress(r, a.TrustedProxies))
}
