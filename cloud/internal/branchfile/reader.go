package branchfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A Problem is a mistake in a file with its position.
type Problem struct {
	File         string
	Line, Column int
	Text         string // what was found and what was expected
}

func (p Problem) Error() string { return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text) }

// Problems are all mistakes in a file, by position.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// maxProblems limits the report on a file that is not a branch file.
const maxProblems = 100

// reader walks the nodes of a document and collects problems.
type reader struct {
	file      string
	usernames map[string]int // of agents, with their lines: they must be unique across branches
	problems  Problems
}

func (r *reader) problem(n *yaml.Node, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{r.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

// sorted returns the problems as an error, or nil.
func (r *reader) sorted() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.problems
}

// A field is a key of a mapping and the function that reads its value.
type field struct {
	key      string
	required bool
	read     func(*yaml.Node)
}

func required(key string, read func(*yaml.Node)) field { return field{key, true, read} }
func optional(key string, read func(*yaml.Node)) field { return field{key, false, read} }

// mapping reads a mapping, its fields in the order of the arguments. what names the mapping in problems.
func (r *reader) mapping(n *yaml.Node, what string, fields ...field) {
	if n.Kind != yaml.MappingNode {
		r.problem(n, "%s is %s; expected a mapping with %s", what, kindOf(n), keys(fields))
		return
	}
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		known := slices.ContainsFunc(fields, func(f field) bool { return f.key == key.Value })
		first, again := values[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.problem(key, "a key of %s is %s; expected one of %s", what, kindOf(key), keys(fields))
		case !known:
			r.problem(key, "%s has no %q; expected %s", what, key.Value, suggest(key.Value, fields))
		case again:
			r.problem(key, "%s has %q twice, first in line %d", what, key.Value, first.Line)
		default:
			values[key.Value] = value
		}
	}
	for _, f := range fields {
		value, given := values[f.key]
		switch {
		case given:
			f.read(value)
		case f.required:
			r.problem(n, "%s has no %q, which is required", what, f.key)
		}
	}
}

// list reads a sequence.
func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.problem(n, "%s is %s; expected a list", what, kindOf(n))
		return
	}
	for _, item := range n.Content {
		read(item)
	}
}

// text reads a string of at most max characters. A number or a date counts as the text in the file.
func (r *reader) text(n *yaml.Node, what string, max int) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!bool" {
		r.problem(n, "%s is %s; expected text", what, kindOf(n))
		return "", false
	}
	value := strings.TrimSpace(n.Value)
	switch {
	case value == "":
		r.problem(n, "%s is empty", what)
	case len([]rune(value)) > max:
		r.problem(n, "%s has %d characters; expected at most %d", what, len([]rune(value)), max)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\uFFFD' }):
		r.problem(n, "%s contains a control character", what)
	default:
		return value, true
	}
	return "", false
}

// quotedText reads text that must be quoted, because YAML would read it as a number and drop leading zeros.
func (r *reader) quotedText(n *yaml.Node, what string, max int) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") {
		r.problem(n, "%s is a number; expected text in quotes, because leading zeros matter", what)
		return "", false
	}
	return r.text(n, what, max)
}

// whole reads an integer within [low, high].
func (r *reader) whole(n *yaml.Node, what string, low, high int) (int, bool) {
	var value int
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&value) != nil {
		r.problem(n, "%s is %s; expected a whole number from %d to %d", what, kindOf(n), low, high)
		return 0, false
	}
	if value < low || value > high {
		r.problem(n, "%s is %d; expected %d to %d", what, value, low, high)
		return 0, false
	}
	return value, true
}

// truth reads true or false.
func (r *reader) truth(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.problem(n, "%s is %s; expected true or false", what, kindOf(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// noAliases reports anchors and aliases: a file without them is easier to read, and nested aliases grow exponentially.
func (r *reader) noAliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		r.problem(n, "an alias; expected the value itself, anchors and aliases are not supported")
	}
	for _, child := range n.Content {
		r.noAliases(child)
	}
}

// kindOf describes a node without quoting its value, which could be a secret.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}

func keys(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return strings.Join(names, ", ")
}

// suggest returns the field with the most similar name, or all fields.
func suggest(key string, fields []field) string {
	best, least := "", 3
	for _, f := range fields {
		if d := distance(strings.ToLower(key), strings.ToLower(f.key)); d < least {
			best, least = f.key, d
		}
	}
	if best != "" {
		return best
	}
	return "one of " + keys(fields)
}

// distance returns the Levenshtein distance of two texts, or a large number if one is longer than any key.
func distance(a, b string) int {
	const longest = 40
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
