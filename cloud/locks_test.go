package cloud_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Two kinds of work that take the same advisory lock would keep each other from running.
func TestAdvisoryLocksAreDistinct(t *testing.T) {
	t.Parallel()
	key := regexp.MustCompile(`0x79656f6c_[0-9a-f]{4}`)
	owner := map[string]string{}
	root := os.DirFS("internal")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for _, lock := range key.FindAllString(string(source), -1) {
			if other, taken := owner[lock]; taken {
				t.Errorf("%s and %s have the lock %s", other, path, lock)
			}
			owner[lock] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(owner) < 10 {
		t.Errorf("found %d locks", len(owner))
	}
}
