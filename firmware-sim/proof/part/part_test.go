package part_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

func TestWrittenAndRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if parts, err := part.ReadAll(root); err != nil || len(parts) != 0 {
		t.Fatalf("nothing was written: %v %v", parts, err)
	}
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	want := []part.Part{
		{Name: "bench", Machine: "m", Began: began, Figures: []part.Figure{{Name: "p50", Value: 0.25, Unit: "ms", Bar: "at most 4 < 5", Met: true}}},
		{Name: "soak", Machine: "m", Began: began, Series: []part.Series{{Name: "hold", X: []float64{1, 2}, Y: []float64{3, 4}}}, Notes: []string{"note"}},
		{Name: "soak-2", Machine: "m", Began: began, Checks: []part.Check{{ID: "M1", Observations: 3}}},
	}
	if err := part.Write(root, want[1], want[2]); err != nil {
		t.Fatal(err)
	}
	if err := part.Write(root, want[0]); err != nil {
		t.Fatal(err)
	}
	got, err := part.ReadAll(root)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWhatCannotBeShownIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, p := range map[string]part.Part{
		"no name": {}, "another directory": {Name: "../x"}, "uneven": {Name: "x", Series: []part.Series{{X: []float64{1}}}},
	} {
		if err := part.Write(root, p); err == nil {
			t.Errorf("Write accepted a part with %s", name)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, part.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, part.Dir, "x.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := part.ReadAll(root); err == nil {
		t.Error("ReadAll accepted a truncated part")
	}
}

func TestMisses(t *testing.T) {
	t.Parallel()
	got := part.Part{
		Checks: []part.Check{
			{ID: "M1", Observations: 5},
			{ID: "M2", Observations: 5, Violations: 1, Rule: "money"},
			{ID: "M3", Rule: "unseen"},
			{ID: "M4", Elsewhere: "TestM4"},
		},
		Figures: []part.Figure{{Name: "fast", Bar: "1", Met: true}, {Name: "slow", Value: 12.34, Unit: "ms", Bar: "at most 4"}, {Name: "only told"}},
	}.Misses()
	want := []string{"M2: 1 violations in 5 observations: money", "M3: nothing was observed: unseen", "slow: 12.3 ms, the bar is at most 4"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMachineNamesNoHost(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if m := part.Machine(); m == "" || strings.Contains(m, host) || strings.Contains(m, "/usr") {
		t.Error(m)
	}
}
