package hardware

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/yeolda/yeolda/agent/keypad"
	"github.com/yeolda/yeolda/protocol"
)

// Reasons of entries that reach no agent.
const (
	reasonOff        = "off"        // the agent is not running
	reasonIncomplete = "incomplete" // no # completes the entry
)

// keys is the keypad of one door, read by the agent of one power supply.
type keys struct {
	power *supply
	typed chan typed
}

// typed is a row of keys and where its result goes.
type typed struct {
	keys   string
	result chan keypad.Verdict
}

// Read implements keypad.Reader.
func (k *keys) Read(ctx context.Context, enter keypad.Enter) {
	var entry keypad.Entry
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.power.off:
			return
		case t := <-k.typed:
			v := keypad.Verdict{Reason: reasonIncomplete}
			for _, key := range []byte(t.keys) {
				at := time.Now()
				if digits, ok := entry.Press(key, at); ok {
					v = enter(digits, at)
				}
			}
			t.result <- v
		}
	}
}

// Err implements keypad.Reader.
func (*keys) Err() error { return nil }

// Type types keys at the keypad of a door and returns the result of the last completed entry. A standalone keypad compares it
// with its own PIN.
func (r *Installation) Type(ctx context.Context, device, text string) (keypad.Verdict, error) {
	if !validKeys(text) {
		return keypad.Verdict{}, fmt.Errorf("%w: digits has 1 to 64 of 0 to 9, * and #", ErrValue)
	}
	r.mu.Lock()
	d, err := r.door(device)
	if err != nil {
		r.mu.Unlock()
		return keypad.Verdict{}, err
	}
	k, power, standalone := d.keys, r.power, !d.plan.Agent
	r.mu.Unlock()
	if standalone {
		return r.typeStandalone(device, text)
	}
	off := keypad.Verdict{Reason: reasonOff}
	if k == nil || power != k.power {
		return off, nil
	}
	t := typed{text, make(chan keypad.Verdict, 1)}
	select {
	case k.typed <- t:
	case <-k.power.off:
		return off, nil
	case <-ctx.Done():
		return off, nil
	}
	select {
	case v := <-t.result:
		return v, nil
	case <-k.power.off:
		return off, nil
	case <-ctx.Done():
		return off, nil
	}
}

func (r *Installation) typeStandalone(device, text string) (keypad.Verdict, error) {
	var entry keypad.Entry
	v := keypad.Verdict{Reason: reasonIncomplete}
	for _, key := range []byte(text) {
		if key == '*' { // the key page tells guests with a static PIN to press it
			key = '#'
		}
		digits, ok := entry.Press(key, time.Now())
		if !ok {
			continue
		}
		right, err := r.EnterPIN(device, digits)
		if err != nil {
			return v, err
		}
		if v = (keypad.Verdict{Reason: protocol.ReasonWrong}); right {
			v = keypad.Verdict{Accepted: true, Reason: string(protocol.EntryOpened)}
		}
	}
	return v, nil
}

// validKeys reports whether a keypad has these keys.
func validKeys(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "0123456789*#") == ""
}
