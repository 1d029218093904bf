//go:build linux

package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The rules of the cluster accept no TCP connection and no role but the two, also if the server is started by hand.
func TestAccessOfPrivateServer(t *testing.T) {
	t.Parallel()
	s := start(t, publicDir(t))
	for _, name := range []string{"pg_hba.conf", "pg_ident.conf"} {
		rules, err := os.ReadFile(filepath.Join(s.home.cluster(), name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(rules)) {
			if strings.HasPrefix(line, "host") || strings.Contains(line, "trust") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `create role `+ServiceRole+` login; create role other login`); err != nil {
		t.Fatal(err)
	}
	service, err := pgx.Connect(t.Context(), s.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	_ = service.Close(t.Context())
	if other, err := pgx.Connect(t.Context(), s.home.url("other")); err == nil {
		_ = other.Close(t.Context())
		t.Error("another role was accepted")
	}
}
