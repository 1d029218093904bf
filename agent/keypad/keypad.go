// Package keypad reads what guests type or scan at a door: Wiegand keypads on two GPIO lines, and USB keypads and scanners that
// act as keyboards.
package keypad

import (
	"context"
	"strings"
	"time"
)

const (
	// entryTimeout is the pause after which the digits typed so far are discarded.
	entryTimeout = 15 * time.Second
	// maxDigits bounds an entry. Longer entries are truncated, so they count as wrong.
	maxDigits = 16
)

// Verdict is the result of an entry.
type Verdict struct {
	Accepted bool
	Reason   string
}

// Enter judges an entry. at is when its last key was pressed: keys that wait while an earlier entry is judged keep their age.
type Enter func(digits string, at time.Time) Verdict

// Reader is the keypad of one door. Read passes each completed entry to enter, one at a time, until ctx is done; it survives the
// loss of its device.
type Reader interface {
	Read(ctx context.Context, enter Enter)
	// Err returns why the keypad cannot be read at present, or nil.
	Err() error
}

// Entry collects keys to entries: digits followed by '#'. '*' discards the digits typed so far; so does a long pause.
type Entry struct {
	digits strings.Builder
	last   time.Time
}

// Press adds a key, '0' to '9', '*' or '#', at a time. ok is true if it completes an entry.
func (e *Entry) Press(key byte, at time.Time) (digits string, ok bool) {
	if at.Sub(e.last) > entryTimeout {
		e.digits.Reset()
	}
	e.last = at
	switch {
	case key == '#':
		digits = e.digits.String()
		e.digits.Reset()
		return digits, digits != ""
	case key == '*':
		e.digits.Reset()
	case key >= '0' && key <= '9' && e.digits.Len() < maxDigits:
		e.digits.WriteByte(key)
	}
	return "", false
}
