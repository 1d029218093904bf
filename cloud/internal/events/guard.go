package events

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrAddress is returned for an address that cannot be a receiver: private and loopback addresses are refused, and plain HTTP,
// except in the networks of the setting YEOLDA_WEBHOOK_ALLOW.
var ErrAddress = errors.New("events: the address cannot be a receiver")

// deliveryTimeout is the time a receiver has for its answer.
const deliveryTimeout = 10 * time.Second

// lookupTimeout bounds the look-up of a new receiver's name.
const lookupTimeout = 3 * time.Second

// maxURL is the longest address of a receiver.
const maxURL = 500

var public = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// guard decides which addresses may be called.
type guard []netip.Prefix

func (g guard) allows(address netip.Addr) bool {
	return slices.ContainsFunc(g, func(p netip.Prefix) bool { return p.Contains(address.Unmap()) })
}

// control is a dialer's Control. It checks the address that is actually dialled, so a name that changes its address does not
// bypass it.
func (g guard) control(network, address string, c syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && g.allows(to.Addr()) {
		return nil
	}
	if err := public.Safe(network, address, c); err != nil {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return nil
}

// check rejects an address that deliveries could not use. A name that has no address now is accepted: each delivery checks
// again.
func (g guard) check(ctx context.Context, text string) error {
	to, err := url.Parse(text)
	if err != nil || len(text) > maxURL || to.Hostname() == "" || to.User != nil || to.Fragment != "" || to.Scheme != "http" && to.Scheme != "https" {
		return ErrAddress
	}
	if port := to.Port(); port != "" { // url.Parse takes any digits
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return ErrAddress
		}
	}
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(to.Hostname()); err == nil {
		addresses = append(addresses, literal)
	} else {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addresses, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", to.Hostname()) // unknown now: see above
	}
	if slices.ContainsFunc(addresses, g.allows) {
		return nil
	}
	reachable := func(a netip.Addr) bool {
		network := "tcp6"
		if a.Unmap().Is4() {
			network = "tcp4"
		}
		return public.Safe(network, netip.AddrPortFrom(a.Unmap(), 443).String(), nil) == nil
	}
	if to.Scheme != "https" || len(addresses) > 0 && !slices.ContainsFunc(addresses, reachable) {
		return ErrAddress
	}
	return nil
}

// client returns the client for deliveries. It follows no redirect: a receiver is the address that an administrator entered.
func (g guard) client() *http.Client {
	dialer := &net.Dialer{Timeout: deliveryTimeout, Control: g.control}
	return &http.Client{
		Timeout: deliveryTimeout,
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 1,
			HTTP2: &http.HTTP2Config{SendPingTimeout: deliveryTimeout / 2, PingTimeout: deliveryTimeout / 2}}, // a lost connection is left
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
