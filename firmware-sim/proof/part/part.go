// Package part is the form in which whatever supports a claim hands over what it found. A command writes its [Part] with
// [Write] to docs/proof/parts/<name>.json, and the report shows every part it finds there: whoever measures need not know
// how the report looks, and the report need not know what is measured.
//
// A file holds JSON lines, one part each; most hold one.
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

// Dir is where parts lie, below the checkout.
const Dir = "docs/proof/parts"

// Part is what one command found.
type Part struct {
	Name    string    `json:"name"`            // such as soak; also the file's
	Title   string    `json:"title,omitempty"` // heading in the report; the name otherwise
	Machine string    `json:"machine"`         // of [Machine]
	Began   time.Time `json:"began"`
	Took    float64   `json:"took,omitempty"` // seconds
	Repeat  string    `json:"repeat,omitempty"`
	Checks  []Check   `json:"checks,omitempty"`
	Figures []Figure  `json:"figures,omitempty"`
	Series  []Series  `json:"series,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
}

// Figure is a number and, if it has one, the bar it is held against.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Bar   string  `json:"bar,omitempty"` // in words or signs, such as "at most 4"; empty: there is none
	Met   bool    `json:"met"`           // meaningless without a bar
}

// Check is a rule that was held against what was observed.
type Check struct {
	ID           string   `json:"id"` // such as M1
	Rule         string   `json:"rule"`
	Observations int      `json:"observations"` // things the rule was held against
	Violations   int      `json:"violations"`
	Excused      int      `json:"excused,omitempty"`  // observations that were set aside; a note says why
	Examples     []string `json:"examples,omitempty"` // of violations, or what was not as hoped
	// Elsewhere names what shows the rule where this part cannot: a test, or another part.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// Series is one line of a plot. Series of one part with the same Plot are drawn into one picture.
type Series struct {
	Name  string    `json:"name"`
	Plot  string    `json:"plot,omitempty"`  // heading of the picture
	XName string    `json:"xName,omitempty"` // what X is, with its unit
	YName string    `json:"yName,omitempty"`
	LogX  bool      `json:"logX,omitempty"`
	LogY  bool      `json:"logY,omitempty"`
	Dots  bool      `json:"dots,omitempty"` // the points are not joined
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
}

// Misses returns what in a part is not as it should be, one line each.
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

// Text writes a figure's value as people read it: three digits that count, and all of a whole number.
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

// Write puts parts into the file of the first one's name below the checkout at root, in place of what was there.
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
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // everybody may read a report
		return fmt.Errorf("part: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, parts[0].Name+".json"), text.Bytes(), 0o644); err != nil { //nolint:gosec // everybody may read a report
		return fmt.Errorf("part: %w", err)
	}
	return nil
}

// valid is an error where a report could not show a part.
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

// ReadAll returns the parts below the checkout at root, by the names of their files. There may be none.
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
