package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestParseSizes(t *testing.T) {
	t.Parallel()
	if got, err := parseSizes("1000,200000"); err != nil || !slices.Equal(got, []int{1000, 200_000}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, list := range []string{"", "1000,", "100", "x", "200001"} {
		if got, err := parseSizes(list); err == nil {
			t.Errorf("%q: got %v, want an error", list, got)
		}
	}
}

func TestStat(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stat")
	const text = "42 (a (b) c) S 7 42 42 0 -1 4194560 100 200 0 0 150 50 30 20 20 0 1 0 100 0 0 0\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for times, want := range map[int]time.Duration{2: 2 * time.Second, 4: 2500 * time.Millisecond} {
		if parent, took, err := stat(file, times); err != nil || parent != 7 || took != want {
			t.Errorf("%d times: got parent %d, %s, %v; want 7, %s", times, parent, took, err, want)
		}
	}
}
