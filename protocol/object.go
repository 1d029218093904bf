package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// maxDepth bounds the nesting of a payload. The deepest is a status: inventory, unit and maxOptions levels of options.
	maxDepth = 24
	// maxFields bounds the fields of an object, including unknown ones.
	maxFields = 64
)

// checkObject rejects JSON that encoding/json accepts: a top level that is not an object, and duplicate names, of which
// different readers may use different values. The text must be valid JSON.
func checkObject(text []byte) error {
	r := reader{text: text}
	if r.next() != '{' {
		return errors.New("not an object")
	}
	return r.members(1)
}

// reader reads valid JSON.
type reader struct {
	text []byte
	at   int
}

// next skips white space and returns the next byte without consuming it.
func (r *reader) next() byte {
	for ; ; r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
}

// value skips a value.
func (r *reader) value(depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch r.next() {
	case '{':
		return r.members(depth + 1)
	case '[':
		return r.elements(depth + 1)
	case '"':
		r.str()
	default:
		r.at += bytes.IndexAny(r.text[r.at:], ",]} \t\r\n") // a number or literal ends before the next delimiter
	}
	return nil
}

// members skips an object.
func (r *reader) members(depth int) error {
	names := make([][]byte, 0, 8)
	return r.list('}', func() error {
		name, err := unescaped(r.str())
		if err != nil {
			return err
		}
		for _, other := range names {
			if bytes.EqualFold(name, other) { // as encoding/json compares them
				return fmt.Errorf("duplicate field %q", name)
			}
		}
		if len(names) == maxFields {
			return fmt.Errorf("more than %d fields", maxFields)
		}
		names = append(names, name)
		r.next()
		r.at++ // the colon
		return r.value(depth)
	})
}

// elements skips an array.
func (r *reader) elements(depth int) error {
	return r.list(']', func() error { return r.value(depth) })
}

// list skips an opening bracket, items separated by commas, and the closing bracket.
func (r *reader) list(end byte, item func() error) error {
	for r.at++; r.next() != end; {
		if err := item(); err != nil {
			return err
		}
		if r.next() == ',' {
			r.at++
		}
	}
	r.at++
	return nil
}

// str skips a string and returns it with its quotes.
func (r *reader) str() []byte {
	from := r.at
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	return r.text[from:r.at]
}

// unescaped returns the content of a quoted string.
func unescaped(quoted []byte) ([]byte, error) {
	if !bytes.ContainsRune(quoted, '\\') {
		return quoted[1 : len(quoted)-1], nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return []byte(s), err
}
