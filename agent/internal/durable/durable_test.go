package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/durable"
)

func TestReplaceWritesAndReplaces(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	for _, want := range []string{"first", "second"} {
		if err := durable.Replace(name, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestFailedReplaceLeavesNothing replaces what cannot be replaced, a directory: a torn file beside it would take the space of a full
// disk.
func TestFailedReplaceLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(name, []byte("text")); err == nil {
		t.Fatal("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
