//go:build unix

package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var errNoPrograms = errors.New("no PostgreSQL server found (initdb, postgres): install it " +
	"(Debian, Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; macOS: brew install postgresql@17), " +
	"name its directory in YEOLDA_PG_BIN, or set YEOLDA_DATABASE_URL")

// findPrograms returns the directory of initdb and postgres. A directory that
// was named, by the option or by YEOLDA_PG_BIN, is taken or refused; otherwise
// the first of the usual places wins, or, for a cluster that exists, the first
// whose major version made it.
func findPrograms(ctx context.Context, override, major string) (string, error) {
	if override == "" {
		override = os.Getenv("YEOLDA_PG_BIN")
	}
	candidates := []string{override}
	if override == "" {
		candidates = usualPlaces(ctx)
	}
	candidates = slices.DeleteFunc(candidates, func(dir string) bool { return !hasPrograms(dir) })
	switch {
	case len(candidates) == 0 && override != "":
		return "", fmt.Errorf("no initdb and postgres in %s (YEOLDA_PG_BIN)", override)
	case len(candidates) == 0:
		return "", errNoPrograms
	case major == "":
		return candidates[0], nil
	}
	var found []string
	for _, dir := range candidates {
		version, err := programVersion(ctx, dir)
		if err != nil {
			return "", err
		}
		if version == major {
			return dir, nil
		}
		found = append(found, fmt.Sprintf("%s in %s", version, dir))
	}
	return "", fmt.Errorf("the data were made by PostgreSQL %s, but found %s: install PostgreSQL %[1]s or move the data with pg_upgrade",
		major, strings.Join(found, ", "))
}

func usualPlaces(ctx context.Context) []string {
	var places []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		places = append(places, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",            // Debian, Ubuntu
		"/usr/pgsql-*/bin",                     // packages of postgresql.org for Red Hat
		"/opt/homebrew/opt/postgresql@*/bin",   // Homebrew, ARM
		"/usr/local/opt/postgresql@*/bin",      // Homebrew, Intel
		"/usr/libexec/postgresql*",             // Alpine
		"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	} {
		dirs, _ := filepath.Glob(pattern) // fails for a bad pattern only
		slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
		places = append(places, dirs...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		places = append(places, filepath.Dir(path))
	}
	return places
}

var number = regexp.MustCompile(`\d+`)

// versionIn returns the last number in a directory's name, so that 15 sorts
// above 9.
func versionIn(dir string) int {
	all := number.FindAllString(dir, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1]) // digits; too many of them sort as 0
	return n
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// programVersion asks postgres for its major version, as in PG_VERSION.
func programVersion(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s/postgres for its version: %w", dir, err)
	}
	version := number.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("%s/postgres --version says %q", dir, out)
	}
	return version, nil
}
