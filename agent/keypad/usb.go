package keypad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// USB reads a keypad, or a scanner that types what it reads, from an input device of the kernel. The device is grabbed, so that
// no other program, and no console, receives its keys. It may be unplugged and plugged in again.
type USB struct {
	open  func() (io.ReadCloser, error)
	start func() time.Time // of the clock of its events

	mu  sync.Mutex
	err error
}

// NewUSB returns the keypad of an input device, as its name below /dev/input: by-id/usb-..., by-path/... or event3.
func NewUSB(name string) *USB {
	return &USB{open: func() (io.ReadCloser, error) { return grab(filepath.Join("/dev/input", name)) }, start: KernelStart}
}

// Err implements Reader.
func (u *USB) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

func (u *USB) setErr(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
}

// Read implements Reader.
func (u *USB) Read(ctx context.Context, enter Enter) {
	for ctx.Err() == nil {
		err := u.readDevice(ctx, enter)
		if ctx.Err() == nil {
			u.setErr(err)
			pause(ctx, reopenInterval)
		}
	}
}

// The types and codes of linux/input-event-codes.h that keypads and scanners send.
const (
	eventSyn   = 0
	eventKey   = 1
	synDropped = 3

	keyLeftShift, keyRightShift = 42, 54
	keyThree, keyEight          = 4, 9
)

var usbKeys = map[uint16]byte{
	2: '1', 3: '2', 4: '3', 5: '4', 6: '5', 7: '6', 8: '7', 9: '8', 10: '9', 11: '0',
	79: '1', 80: '2', 81: '3', 75: '4', 76: '5', 77: '6', 71: '7', 72: '8', 73: '9', 82: '0', // the number pad
	28: '#', 96: '#', // Enter
	1: '*', 14: '*', 55: '*', 111: '*', // Escape, Backspace, * of the number pad, Delete
}

// eventSize is the size of struct input_event: seconds and microseconds as longs, type, code and value.
const (
	longSize  = strconv.IntSize / 8
	eventSize = 2*longSize + 8
)

// readDevice reads until the device is lost or ctx is done.
func (u *USB) readDevice(ctx context.Context, enter Enter) error {
	device, err := u.open()
	if err != nil {
		return fmt.Errorf("keypad: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = device.Close() }) // ends Read
	defer func() {
		if stop() {
			_ = device.Close()
		}
	}()
	u.setErr(nil)
	start := u.start()
	var (
		entry Entry
		shift bool
		event [eventSize]byte
	)
	for {
		if _, err := io.ReadFull(device, event[:]); err != nil {
			return fmt.Errorf("keypad: %w", errors.Join(errGone, err))
		}
		fields := event[eventSize-8:]
		kind, code := binary.NativeEndian.Uint16(fields), binary.NativeEndian.Uint16(fields[2:])
		value := binary.NativeEndian.Uint32(fields[4:])
		at := start.Add(eventTime(event))
		switch {
		case kind == eventSyn && code == synDropped: // the kernel dropped keys
			entry.Press('*', at)
			shift = false // its release may be among them
		case kind == eventKey && (code == keyLeftShift || code == keyRightShift):
			shift = value != 0
		case kind == eventKey && value == 1:
			if digits, complete := entry.Press(usbKey(code, shift), at); complete {
				enter(digits, at)
			}
		}
	}
}

// eventTime returns when an event occurred, since the start of its clock.
func eventTime(event [eventSize]byte) time.Duration {
	var seconds, micros uint64
	if longSize == 8 {
		seconds, micros = binary.NativeEndian.Uint64(event[:]), binary.NativeEndian.Uint64(event[longSize:])
	} else {
		seconds, micros = uint64(binary.NativeEndian.Uint32(event[:])), uint64(binary.NativeEndian.Uint32(event[longSize:]))
	}
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond //nolint:gosec // the time since the machine started
}

// usbKey returns the key of a code, or 0. With shift, 3 and 8 are '#' and '*': a scanner types them as a keyboard does.
func usbKey(code uint16, shift bool) byte {
	switch {
	case shift && code == keyThree:
		return '#'
	case shift && code == keyEight:
		return '*'
	}
	return usbKeys[code]
}
