// Package report renders the parts of the proof: docs/proof/report.md with pictures beside it, and
// docs/proof/report.html, which is self-contained. Misses come first.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

// Dir is the directory of the report, below the checkout.
const Dir = "docs/proof"

//go:embed report.md.tmpl report.html.tmpl
var files embed.FS

// page is the data of the templates.
type page struct {
	Written  string
	Machines []string
	Misses   []miss
	Parts    []section
}

type miss struct{ Part, What string }

type section struct {
	part.Part
	Anchor string
	Plots  []picture
}

type picture struct {
	Title, File string
	SVG         template.HTML
}

// first is the order of the parts of a complete proof; others follow by name. A missing part is a miss.
var first = []string{"soak", "race", "simulation", "mutation", "bench"}

// Write reads the parts below the checkout at root and writes the report.
func Write(root string, now time.Time) (misses int, err error) {
	parts, err := part.ReadAll(root)
	if err != nil {
		return 0, err
	}
	p := newPage(parts, now)
	dir := filepath.Join(root, Dir)
	if err := writePlots(filepath.Join(dir, "plots"), p.Parts); err != nil {
		return 0, err
	}
	var text strings.Builder
	if err := texttemplate.Must(texttemplate.New("report.md.tmpl").Funcs(functions).ParseFS(files, "report.md.tmpl")).Execute(&text, p); err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(text.String()), 0o644); err != nil { //nolint:gosec // the report is public
		return 0, fmt.Errorf("report: %w", err)
	}
	text.Reset()
	if err := template.Must(template.New("report.html.tmpl").Funcs(functions).ParseFS(files, "report.html.tmpl")).Execute(&text, p); err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.html"), []byte(text.String()), 0o644); err != nil { //nolint:gosec // the report is public
		return 0, fmt.Errorf("report: %w", err)
	}
	return len(p.Misses), nil
}

func newPage(parts []part.Part, now time.Time) page {
	rank := func(p part.Part) int {
		if i := slices.Index(first, p.Name); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(parts, func(a, b part.Part) int { return rank(a) - rank(b) })
	p := page{Written: now.UTC().Format("2006-01-02 15:04 MST")}
	for _, name := range first {
		if !slices.ContainsFunc(parts, func(p part.Part) bool { return p.Name == name }) {
			p.Misses = append(p.Misses, miss{name, "was not run"})
		}
	}
	for _, one := range parts {
		if one.Machine != "" && !slices.Contains(p.Machines, one.Machine) {
			p.Machines = append(p.Machines, one.Machine)
		}
		for _, what := range one.Misses() {
			p.Misses = append(p.Misses, miss{one.Name, what})
		}
		s := section{Part: one, Anchor: slug(one.Name)}
		for i, picture1 := range plots(one) {
			s.Plots = append(s.Plots, picture{Title: picture1.title, File: fmt.Sprintf("%s-%d.svg", s.Anchor, i+1), SVG: template.HTML(picture1.svg())}) //nolint:gosec // our own drawing, with escaped texts
		}
		p.Parts = append(p.Parts, s)
	}
	return p
}

// writePlots writes the pictures of the Markdown into a directory and replaces those of an earlier report.
func writePlots(dir string, sections []section) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the report is public
		return fmt.Errorf("report: %w", err)
	}
	for _, s := range sections {
		for _, p := range s.Plots {
			if err := os.WriteFile(filepath.Join(dir, p.File), []byte(p.SVG), 0o644); err != nil { //nolint:gosec // the report is public
				return fmt.Errorf("report: %w", err)
			}
		}
	}
	return nil
}

var notInSlugs = regexp.MustCompile(`[^a-z0-9]+`)

func slug(text string) string {
	return strings.Trim(notInSlugs.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

var functions = template.FuncMap{
	"heading": func(p section) string {
		if p.Title != "" {
			return p.Title
		}
		return p.Name
	},
	"met": func(f part.Figure) string {
		switch {
		case f.Bar == "":
			return ""
		case f.Met:
			return "met"
		}
		return "MISSED"
	},
	"verdict": func(c part.Check) string {
		switch {
		case c.Violations > 0:
			return "VIOLATED"
		case c.Observations == 0 && c.Elsewhere != "":
			return "shown elsewhere"
		case c.Observations == 0:
			return "NOT OBSERVED"
		}
		return "holds"
	},
	"seconds": func(s float64) string { return time.Duration(s * float64(time.Second)).Round(time.Second).String() },
	"day":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") },
	"cell":    func(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) },
	"examples": func(p section) (list []string) {
		for _, c := range p.Checks {
			for _, e := range c.Examples {
				list = append(list, c.ID+": "+e)
			}
		}
		return list
	},
}
