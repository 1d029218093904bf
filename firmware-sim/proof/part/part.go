// Package part is the format in which a measurement delivers its result. A command writes its [Part] with [Write] to
// docs/proof/parts/<name>.json, and the report shows every part there. Measurements do not depend on the report, nor
// the report on them.
//
// A file contains JSON lines, one per part; most contain one.
package part

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Dir is the directory of the parts, below the checkout.
const Dir = "docs/proof/parts"

// Part is the result of one command.
type Part struct {
	Name    string    `json:"name"`            // such as soak; also the file's
	Title   string    `json:"title,omitempty"` // heading in the report; default: the name
	Machine string    `json:"machine"`         // of [Machine]
	Began   time.Time `json:"began"`
	Took    float64   `json:"took,omitempty"` // seconds
	Repeat  string    `json:"repeat,omitempty"`
	Checks  []Check   `json:"checks,omitempty"`
	Figures []Figure  `json:"figures,omitempty"`
	Series  []Series  `json:"series,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
}

// Figure is a number with an optional bar.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Bar   string  `json:"bar,omitempty"` // such as "at most 4"; empty: none
	Met   bool    `json:"met"`           // meaningless without a bar
}

// Check is a rule and the result of its check.
type Check struct {
	ID           string   `json:"id"` // such as M1
	Rule         string   `json:"rule"`
	Observations int      `json:"observations"` // number of observations checked
	Violations   int      `json:"violations"`
	Excused      int      `json:"excused,omitempty"`  // observations set aside; a note says why
	Examples     []string `json:"examples,omitempty"` // of violations, or of an unmet expectation
	// Elsewhere names what shows the rule where this part cannot: a test, or another part.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// Series is one line of a plot. Series of one part with the same Plot share a picture.
type Series struct {
	Name  string    `json:"name"`
	Plot  string    `json:"plot,omitempty"`  // heading of the picture
	XName string    `json:"xName,omitempty"` // meaning and unit of X
	YName string    `json:"yName,omitempty"`
	LogX  bool      `json:"logX,omitempty"`
	LogY  bool      `json:"logY,omitempty"`
	Dots  bool      `json:"dots,omitempty"` // points without lines
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
}

// Misses returns every violation and missed bar of a part, one line each.
func (p Part) Misses() (misses []string) {
	for _, c := range p.Checks {
		switch {
		case c.Violations > 0:
			misses = append(misses, fmt.Sprintf("%s: %d violations in %d observations: %s", c.ID, c.Violations, c.Observations, c.Rule))
		case c.Observations == 0 && c.Elsewhere == "":
			misses = append(misses, fmt.Sprintf("%s: nothing was observed: %s", c.ID, c.Rule))
		}
	}
	for _, f := range p.Figures {
		if f.Bar != "" && !f.Met {
			misses = append(misses, fmt.Sprintf("%s: %s %s, the bar is %s", f.Name, f.Text(), f.Unit, f.Bar))
		}
	}
	return misses
}

// Text formats a figure's value: three significant digits, or all digits of an integer.
func (f Figure) Text() string {
	switch size := math.Abs(f.Value); {
	case f.Value == math.Trunc(f.Value) && size < 1e15:
		return fmt.Sprintf("%.0f", f.Value)
	case size >= 100:
		return fmt.Sprintf("%.0f", f.Value)
	case size >= 10:
		return fmt.Sprintf("%.1f", f.Value)
	case size >= 1:
		return fmt.Sprintf("%.2f", f.Value)
	default:
		return fmt.Sprintf("%.3g", f.Value)
	}
}

// Write writes parts into the file with the first one's name, below the checkout at root, and replaces it.
func Write(root string, parts ...Part) error {
	if len(parts) == 0 {
		return errors.New("part: nothing to write")
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, p := range parts {
		if err := p.valid(); err != nil {
			return err
		}
		if err := encoder.Encode(p); err != nil {
			return fmt.Errorf("part: %s: %w", p.Name, err)
		}
	}
	dir := filepath.Join(root, Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the report is public
		return fmt.Errorf("part: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, parts[0].Name+".json"), text.Bytes(), 0o644); err != nil { //nolint:gosec // the report is public
		return fmt.Errorf("part: %w", err)
	}
	return nil
}

// valid returns an error if a report cannot show the part.
func (p Part) valid() error {
	if p.Name == "" || strings.ContainsAny(p.Name, `/\ `) {
		return fmt.Errorf("part: %q is not a name for a part and its file", p.Name)
	}
	for _, s := range p.Series {
		if len(s.X) != len(s.Y) {
			return fmt.Errorf("part: %s: series %s has %d x and %d y", p.Name, s.Name, len(s.X), len(s.Y))
		}
	}
	return nil
}

// ReadAll returns the parts below the checkout at root, ordered by file name. There may be none.
func ReadAll(root string) ([]Part, error) {
	files, err := filepath.Glob(filepath.Join(root, Dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	slices.Sort(files)
	var parts []Part
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("part: %w", err)
		}
		of, err := Decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("part: %s: %w", filepath.Base(file), err)
		}
		parts = append(parts, of...)
	}
	return parts, nil
}

// Decode reads JSON lines.
func Decode(r io.Reader) (parts []Part, err error) {
	decoder := json.NewDecoder(r)
	for {
		var p Part
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return parts, nil
		} else if err != nil {
			return nil, err
		}
		if err := p.valid(); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
}
