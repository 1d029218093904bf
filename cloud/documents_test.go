package cloud_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	setting    = regexp.MustCompile(`\bYEOLDA_[A-Z0-9_]*[A-Z0-9]\b`)
	testName   = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9_]*`)
	makeTarget = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z-]*)")
	localLink  = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	madeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// TestNamesInDocuments checks that settings, tests, targets of make and files that documents name exist.
func TestNamesInDocuments(t *testing.T) {
	t.Parallel()
	root := ".."
	var programs strings.Builder
	documents := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (name[0] == '.' || name == "node_modules" || name == "data" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		document := filepath.Ext(path) == ".md"
		if name == "CHANGELOG.md" || !document && filepath.Ext(path) != ".go" && filepath.Ext(path) != ".sh" && name != "Makefile" && name != "postinst" && name != "preinst" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if document {
			documents[path] = string(text)
		} else {
			programs.Write(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settings, tests, targets := names(setting, programs.String()), names(testName, programs.String()), map[string]bool{}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range madeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	for path, text := range documents {
		for name := range names(setting, text) {
			if !settings[name] {
				t.Errorf("%s: no program reads %s", path, name)
			}
		}
		for name := range names(testName, text) {
			if !tests[name] {
				t.Errorf("%s: there is no %s", path, name)
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: there is no target %s", path, m[1])
			}
		}
		for _, m := range localLink.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "/") { // a page of the service
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, m[1])
			}
		}
	}
}

func names(pattern *regexp.Regexp, text string) map[string]bool {
	found := map[string]bool{}
	for _, name := range pattern.FindAllString(text, -1) {
		found[name] = true
	}
	return found
}

// TestMapOfRooms checks that ARCHITECTURE.md names each package of the cloud and of the agent.
func TestMapOfRooms(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## The map of rooms")
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, folder := range []string{"internal", "../agent/internal"} {
		packages, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packages {
			if !regexp.MustCompile("[`/]" + p.Name() + "`").MatchString(section) {
				t.Errorf("the map of rooms does not name %s/%s", folder, p.Name())
			}
		}
	}
}
