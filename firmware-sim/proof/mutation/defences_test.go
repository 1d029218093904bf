package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Each row of SECURITY.md has a defence that can be removed, and the row names the test that must then fail.
func TestDefences(t *testing.T) {
	t.Chdir("../../..")
	security, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	text := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (A\d+) .*$`).FindAllStringSubmatch(string(security), -1) {
		rows = append(rows, row[1])
		text[row[1]] = row[0]
	}
	var covered []string
	for _, d := range defences {
		covered = append(covered, d.row)
		m, err := d.mutant()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, test := range regexp.MustCompile(`Test\w+|A\d+/[\w-]+`).FindAllString(d.test, -1) {
			if test != "TestAttacks" && !regexp.MustCompile("`"+test+"`").MatchString(text[d.row]) {
				t.Errorf("%s does not name %s", d.row, test)
			}
		}
		if filepath.Ext(d.file) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), d.file, m.text, 0); err != nil {
			t.Errorf("%s: %v", d.row, err)
		}
	}
	if !slices.Equal(rows, slices.Compact(covered)) {
		t.Errorf("defences of %v, want of %v", covered, rows)
	}
}
