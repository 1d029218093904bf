package keypad

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Requests of linux/input.h.
const (
	evIOCGrab       = 0x40044590 // EVIOCGRAB: _IOW('E', 0x90, int)
	evIOCSetClockID = 0x400445a0 // EVIOCSCLOCKID: _IOW('E', 0xa0, int)
)

// grab opens an input device for this program alone. Its events have the time of the monotonic clock, which no program can set.
func grab(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // non-blocking, so that Close ends a Read
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err == nil {
		ctlErr := raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), evIOCSetClockID, unix.CLOCK_MONOTONIC); err == nil {
				err = unix.IoctlSetInt(int(fd), evIOCGrab, 1)
			}
		})
		if err == nil {
			err = ctlErr
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
