package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/report"
)

func TestReport(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, p := range []part.Part{
		{Name: "bench", Machine: "a machine", Began: began, Figures: []part.Figure{
			{Name: "slow <thing>", Value: 12, Unit: "ms", Bar: "at most 4"}, {Name: "fast", Value: 1, Bar: "at most 4", Met: true}, {Name: "only told", Value: 7},
		}, Series: []part.Series{{Name: "a & b", Plot: "growth", XName: "rooms", YName: "ms", X: []float64{1, 10, 100}, Y: []float64{1, 2, 3}, LogX: true}, {Name: "c", Plot: "growth", X: []float64{1, 100}, Y: []float64{3, 3}}}},
		{Name: "soak", Title: "Random soak", Machine: "a machine", Began: began, Took: 90, Repeat: "make proof SEED=7", Notes: []string{"a note"}, Checks: []part.Check{
			{ID: "M1", Rule: "once | only", Observations: 5}, {ID: "M2", Rule: "two", Observations: 5, Violations: 2, Examples: []string{"order o1"}},
			{ID: "M3", Rule: "unseen"}, {ID: "M4", Rule: "by others", Elsewhere: "TestFour"},
		}},
	} {
		if err := part.Write(root, p); err != nil {
			t.Fatal(err)
		}
	}
	misses, err := report.Write(root, began)
	if err != nil || misses != 6 { // three, and three missing parts
		t.Fatalf("%d misses, want 6 (%v)", misses, err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, report.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, name := range []string{"report.md", "report.html"} {
		text := read(name)
		first := strings.Index(text, "What is not as it should be")
		for _, want := range []string{"M2: 2 violations in 5 observations", "M3: nothing was observed", "was not run", "at most 4", "Random soak", "make proof SEED=7", "a note", "MISSED", "VIOLATED", "shown elsewhere", "TestFour", "order o1", "a machine", "growth"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
		if i := strings.Index(text, "M2: 2 violations"); i < first || i > strings.Index(text, "make proof SEED=7") {
			t.Errorf("%s: misses do not come first", name)
		}
		if strings.Index(text, "make proof SEED=7") > strings.Index(text, "slow") && strings.LastIndex(text, "slow") < strings.Index(text, "make proof SEED=7") {
			t.Errorf("%s: the soak does not come before the others", name)
		}
	}
	html := read("report.html")
	if outside := regexp.MustCompile(`(src|href)="[^#]|url\(|@import|<script`).FindString(html); outside != "" {
		t.Errorf("the page loads an external resource: %s", outside)
	}
	if strings.Contains(html, "<thing>") || !strings.Contains(html, "a &amp; b") {
		t.Error("texts are not escaped")
	}
	if svg := read("plots/bench-1.svg"); strings.Count(svg, "<path d=\"M") < 6 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("the picture is not an SVG: %s", svg)
	}
	if !strings.Contains(read("report.md"), `once \| only`) {
		t.Error("a vertical bar in a cell is not escaped")
	}
}

func TestNothingMissed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"race", "soak", "simulation", "mutation", "bench"} {
		if err := part.Write(root, part.Part{Name: name, Machine: "m", Series: []part.Series{{Name: "empty"}, {Name: "zero", LogY: true, X: []float64{0}, Y: []float64{0}}}}); err != nil {
			t.Fatal(err)
		}
	}
	misses, err := report.Write(root, time.Now())
	if err != nil || misses != 0 {
		t.Fatalf("%d misses (%v)", misses, err)
	}
	text, err := os.ReadFile(filepath.Join(root, report.Dir, "report.html"))
	if err != nil || !strings.Contains(string(text), "None: every rule held") || strings.Contains(string(text), "NaN") {
		t.Errorf("%v", err)
	}
}
