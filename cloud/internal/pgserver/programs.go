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

// findPrograms returns the directory of initdb and postgres. A directory named by the option or by YEOLDA_PG_BIN is
// used or rejected. Otherwise the first of the usual places is used; for an existing cluster, the first with its major
// version.
func findPrograms(ctx context.Context, override, major string) (string, error) {
	if override == "" {
		override = os.Getenv("YEOLDA_PG_BIN")
	}
	if override == "" {
		return choosePrograms(ctx, usualPlaces(ctx), major)
	}
	if !hasPrograms(override) {
		return "", fmt.Errorf("no initdb and postgres in %s (YEOLDA_PG_BIN)", override)
	}
	return choosePrograms(ctx, []string{override}, major)
}

func choosePrograms(ctx context.Context, candidates []string, major string) (string, error) {
	var found []string
	for _, dir := range candidates {
		if !hasPrograms(dir) {
			continue
		}
		if major == "" {
			return dir, nil
		}
		version, err := programVersion(ctx, dir)
		if err != nil {
			return "", err
		}
		if version == major {
			return dir, nil
		}
		found = append(found, fmt.Sprintf("%s in %s", version, dir))
	}
	if found == nil {
		return "", errNoPrograms
	}
	return "", fmt.Errorf("the data were made by PostgreSQL %s, but found %s: install PostgreSQL %[1]s, or move the data with pg_upgrade",
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
		slices.SortFunc(dirs, newestFirst)
		places = append(places, dirs...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		places = append(places, filepath.Dir(path))
	}
	return places
}

var number = regexp.MustCompile(`\d+`)

// newestFirst compares the first number of each path, so that 15 comes before 9.
func newestFirst(a, b string) int {
	version := func(dir string) int {
		n, _ := strconv.Atoi(number.FindString(dir)) // no number, or one that is too long: last
		return n
	}
	return cmp.Compare(version(b), version(a))
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name)) //nolint:gosec // the operator sets where PostgreSQL is
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// programVersion returns the major version of postgres, as in PG_VERSION.
func programVersion(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // the operator sets where PostgreSQL is
	if err != nil {
		return "", fmt.Errorf("read the version of %s/postgres: %w", dir, err)
	}
	version := number.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("%s/postgres --version printed %q", dir, out)
	}
	return version, nil
}
