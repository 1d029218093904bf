package keypad

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// evIOCGrab is EVIOCGRAB of linux/input.h: _IOW('E', 0x90, int).
const evIOCGrab = 0x40044590

// grab opens an input device for this program alone.
func grab(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // non-blocking, so that Close ends a Read
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err == nil {
		ctlErr := raw.Control(func(fd uintptr) { err = unix.IoctlSetInt(int(fd), evIOCGrab, 1) })
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
