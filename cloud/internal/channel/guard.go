package channel

import (
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// guardian allows only the public Internet. It denies every special-purpose network of the IANA registries, and the
// metadata address of Azure's virtual machines, which lies in public address space.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// publicOnly is a dialer's Control. It checks the address that is actually dialled, after name resolution and for every
// redirect, so DNS rebinding does not bypass it.
func publicOnly(network, address string, c syscall.RawConn) error {
	return guardian.Safe(network, address, c)
}
