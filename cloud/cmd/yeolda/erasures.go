package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// A list of erased persons is kept beside the backups, so that an older backup does not bring them back: one pseudonym of the
// audit log a line, which only the encryption key leads to a person.

func erasuresBeside(backup string) string { return filepath.Join(filepath.Dir(backup), "erasures") }

// keepErasures adds the persons who were erased to a list. It removes none.
func (p *program) keepErasures(db *postgres.DB, file string) error {
	known, err := readErasures(file, true)
	if err != nil {
		return err
	}
	erased, err := postgres.Erasures(p.ctx, db.Pool)
	if err != nil {
		return err
	}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(known, erased))))
	if slices.Equal(all, known) {
		return nil
	}
	if err := os.WriteFile(file+".part", []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// pseudonym matches a pseudonym of the audit log.
var pseudonym = regexp.MustCompile(`^[0-9a-f]{16}$`)

// readErasures reads a list, which may be missing if it is optional.
func readErasures(file string, optional bool) ([]string, error) {
	content, err := os.ReadFile(file)
	if optional && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	persons := strings.Fields(string(content))
	if slices.ContainsFunc(persons, func(person string) bool { return !pseudonym.MatchString(person) }) {
		return nil, fmt.Errorf("%s is not a list of erasures", file)
	}
	return persons, nil
}
