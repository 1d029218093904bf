//go:build unix

package pgserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Tool returns the path of one of PostgreSQL's client programs, such as pg_dump, for a server of the major version: of
// the same version if there is one, else of a newer one. PostgreSQL's tools reject servers that are newer than they
// are.
func Tool(ctx context.Context, name string, major int) (string, error) {
	var places []string
	if dir := os.Getenv("YEOLDA_PG_BIN"); dir != "" {
		places = []string{dir}
	} else {
		places = usualPlaces(ctx)
		if path, err := exec.LookPath(name); err == nil {
			places = append(places, filepath.Dir(path))
		}
	}
	best, bestVersion := "", 0
	for _, dir := range places {
		path := filepath.Join(dir, name)
		out, err := exec.CommandContext(ctx, path, "--version").Output() //nolint:gosec // the operator sets where PostgreSQL is
		if err != nil {
			continue // not installed
		}
		version, err := strconv.Atoi(number.FindString(string(out)))
		if err != nil || version < major || best != "" && version >= bestVersion {
			continue
		}
		best, bestVersion = path, version
	}
	if best == "" {
		return "", fmt.Errorf("%s of PostgreSQL %d or newer is not here: install it (Debian, Ubuntu: apt install postgresql-client-%d), or name its directory in YEOLDA_PG_BIN", name, major, major)
	}
	return best, nil
}
