//go:build unix

package pgserver

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// accessMap is the name of the map from users of the machine to roles.
const accessMap = "yeolda"

// writeAccess replaces the rules of who may connect, so that they also hold for a server that is started by hand, with other
// listeners: over the socket only, and only the user of the server, and root.
func (h home) writeAccess() error {
	method := "peer map=" + accessMap
	var users strings.Builder
	for _, uid := range []uint32{h.as.uid, 0} {
		u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
		if err != nil {
			// A user without a name cannot be mapped. The directory of the socket is closed to others.
			method = "trust"
			continue
		}
		for _, role := range []string{superuser, ServiceRole} {
			fmt.Fprintf(&users, "%s %q %s\n", accessMap, u.Username, role)
		}
	}
	for name, rules := range map[string]string{
		"pg_hba.conf":   "# Written at each start. There is no TCP connection.\nlocal all all " + method + "\nlocal replication all " + method + "\n",
		"pg_ident.conf": users.String(),
	} {
		path := filepath.Join(h.cluster(), name)
		if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
			return err
		}
		if err := h.as.give(path); err != nil {
			return err
		}
	}
	return nil
}
