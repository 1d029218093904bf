package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConsoleTable checks that docs/console-tests.md names only existing tests, and every address of the console.
func TestConsoleTable(t *testing.T) {
	t.Parallel()
	read := func(pattern string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(root(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		var all strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	table := read("docs/console-tests.md")
	places := map[string]string{"": read("firmware-sim/e2e/*_test.go"), "yeolda.": read("cloud/cmd/yeolda/*_test.go")}
	for _, name := range regexp.MustCompile("`([a-z]*\\.)?(Test[A-Za-z]+)(?:/([^`]+))?`").FindAllStringSubmatch(table, -1) {
		code, ok := places[name[1]]
		if !ok {
			code = read("cloud/internal/" + strings.TrimSuffix(name[1], ".") + "/*_test.go")
		}
		if !strings.Contains(code, "func "+name[2]+"(t *testing.T)") || name[3] != "" && !strings.Contains(code, `("`+name[3]+`", func(t *testing.T`) {
			t.Errorf("%s is in the table and is not a test", name[0])
		}
	}
	for _, route := range regexp.MustCompile(`path: "(/console[^"]*)"`).FindAllStringSubmatch(read("cloud/internal/web/src/console.ts"), -1) {
		if path := strings.TrimSuffix(route[1], "/"); !strings.Contains(table, "`"+path+"`") {
			t.Errorf("%s is not in the table", path)
		}
	}
}
