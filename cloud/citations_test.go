package cloud_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	chapterHeading = regexp.MustCompile(`^## (.+)$`)
	numberedRule   = regexp.MustCompile(`^(?:\| )?(\d+)(?:\.| \|) `)
	citation       = regexp.MustCompile(`docs/specification\.md, ([A-Z][a-z]+(?: [a-z]+)?)((?:(?:,| to| and)? \d+)*)`)
	foreignPage    = regexp.MustCompile(`\b(?:interface|decisions|contracts|providers|hardware|reliability|beyond|performance)\.md\b`)
	number         = regexp.MustCompile(`\d+`)
	commentBreak   = regexp.MustCompile(`\n\s*(?://|#|--|\*)? ?`)
)

// TestCitations checks that every cited chapter and rule of docs/specification.md exists.
func TestCitations(t *testing.T) {
	t.Parallel()
	root := ".."
	rules := readRules(t, filepath.Join(root, "docs", "specification.md"))
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (name[0] == '.' || name == "node_modules" || name == "data" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".ts", ".sql", ".sh", ".md", ".yaml", ".yml", ".env"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if page := foreignPage.Find(text); page != nil {
			t.Errorf("%s cites %s, which is not part of this repository: cite docs/specification.md", path, page)
		}
		for _, found := range citation.FindAllStringSubmatch(commentBreak.ReplaceAllString(string(text), " "), -1) {
			chapter, cited := found[1], found[2]
			if _, ok := rules[chapter]; !ok {
				chapter, _, _ = strings.Cut(chapter, " ") // the second word belongs to the sentence
			}
			if _, ok := rules[chapter]; !ok {
				t.Errorf("%s cites %q: docs/specification.md has no such chapter", path, found[0])
			}
			for _, n := range number.FindAllString(cited, -1) {
				if !slices.Contains(rules[chapter], n) {
					t.Errorf("%s cites %q: the chapter %s has no rule %s", path, found[0], chapter, n)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readRules returns the numbers of the rules of each chapter, which must be 1, 2, 3, ... without gaps.
func readRules(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	chapter := ""
	for line := range strings.Lines(string(text)) {
		if found := chapterHeading.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			chapter = found[1]
			if _, twice := rules[chapter]; twice {
				t.Errorf("%s: two chapters are named %s", path, chapter)
			}
			if link := "[" + chapter + "](#" + strings.ReplaceAll(strings.ToLower(chapter), " ", "-") + ")"; !strings.Contains(string(text), link) {
				t.Errorf("%s: the list of chapters lacks %s", path, link)
			}
			rules[chapter] = nil
		} else if found := numberedRule.FindStringSubmatch(line); found != nil {
			rules[chapter] = append(rules[chapter], found[1])
			if want := strconv.Itoa(len(rules[chapter])); found[1] != want {
				t.Errorf("%s: rule %s of the chapter %s: want number %s", path, found[1], chapter, want)
			}
		}
	}
	if len(rules) < 20 {
		t.Fatalf("%s: found %d chapters, want at least 20", path, len(rules))
	}
	return rules
}
