package channel

import (
	"fmt"
	"net/netip"
	"syscall"
)

// special lists the networks that are not the public Internet (IANA special-purpose
// registries), beyond those netip knows by name. Addresses that wrap an IPv4 address
// are among them: what they wrap may be private.
var special = func() []netip.Prefix {
	var list []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
		"3fff::/20", "5f00::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()

// public reports whether an address belongs to the public Internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false // IsGlobalUnicast: not loopback, link-local, multicast or unspecified
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// publicOnly is a dialer's Control. It sees the address that is really dialled, after
// the name was resolved and for every redirect, so a name cannot change its mind.
func publicOnly(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if !public(to.Addr()) {
		return fmt.Errorf("%s is not a public address", to.Addr())
	}
	return nil
}
