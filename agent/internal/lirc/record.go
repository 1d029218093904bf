package lirc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Receiving in LIRC_MODE_MODE2: the kernel delivers 32-bit samples, whose highest byte is the type and whose rest is a duration
// in µs (linux/lirc.h).
const (
	setReceiveMode  = 0x40046912
	canReceiveMode2 = 0x40000
	modeMode2       = 4

	samplePulse    = 0x01000000
	sampleSpace    = 0x00000000
	sampleOverflow = 0x04000000 // other types, such as frequency and timeout, are no durations
	sampleType     = 0xFF000000

	signalEnd   = 300 * time.Millisecond // silence that ends a signal; longer than any gap within one
	pollLimit   = 50 * time.Millisecond  // between checks of the context
	minRecorded = 20                     // shorter recordings are noise
)

// ErrNoise is returned for a recording that is too short to be a signal.
var ErrNoise = errors.New("noise instead of a signal")

// Record waits for one signal on a receiver and returns its durations in µs, alternating marks and spaces, beginning and ending
// with a mark. The receiver is given by its driver or path; empty: the only receiver.
func Record(ctx context.Context, sys fs.FS, name string) (durations []uint32, err error) {
	path, err := receiver(sys, name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if features, err := unix.IoctlGetUint32(fd, getFeatures); err != nil || features&canReceiveMode2 == 0 {
		return nil, fmt.Errorf("%s cannot receive: %w", path, errors.Join(err, errors.ErrUnsupported))
	}
	if err := unix.IoctlSetPointerInt(fd, setReceiveMode, modeMode2); err != nil {
		return nil, fmt.Errorf("%s: receive mode: %w", path, err)
	}
	if durations, err = record(ctx, fd); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return durations, nil
}

func receiver(sys fs.FS, name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return name, nil
	}
	devices, err := Devices(sys)
	if err != nil {
		return "", err
	}
	var found []Transmitter
	for _, d := range devices {
		if d.Driver == name || name == "" && !isTransmitter(d.Driver) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("there is no infrared receiver; add dtoverlay=gpio-ir to config.txt and restart")
	case 1:
		return found[0].Path, nil
	}
	return "", fmt.Errorf("%s and %s are both receivers: name the device", found[0].Path, found[1].Path)
}

func record(ctx context.Context, fd int) ([]uint32, error) {
	var r recording
	buffer := make([]byte, 4*256)
	for last := time.Now(); len(r.durations) == 0 || time.Since(last) < signalEnd; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(pollLimit/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		if ready <= 0 {
			continue
		}
		n, err := unix.Read(fd, buffer)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("receive: %w", errors.Join(err, errEnd(n)))
		}
		for b := buffer[:n]; len(b) >= 4; b = b[4:] {
			if err := r.add(binary.NativeEndian.Uint32(b)); err != nil {
				return nil, err
			}
		}
		last = time.Now()
	}
	return r.signal()
}

func errEnd(n int) error {
	if n == 0 {
		return errors.New("the device was closed")
	}
	return nil
}

// recording collects samples: marks at even indices, spaces at odd ones.
type recording struct{ durations []uint32 }

func (r *recording) add(sample uint32) error {
	value := sample &^ sampleType
	n := len(r.durations)
	switch sample & sampleType {
	case samplePulse:
		if n%2 == 1 { // two marks in a row are one
			r.durations[n-1] += value
		} else {
			r.durations = append(r.durations, value)
		}
	case sampleSpace:
		if n%2 == 1 {
			r.durations = append(r.durations, value)
		} else if n > 0 {
			r.durations[n-1] += value
		} // else the silence before the signal
	case sampleOverflow:
		return errors.New("the receiver lost samples")
	}
	return nil
}

func (r *recording) signal() ([]uint32, error) {
	d := r.durations
	if len(d)%2 == 0 && len(d) > 0 { // the silence after the signal
		d = d[:len(d)-1]
	}
	if len(d) < minRecorded {
		return nil, ErrNoise
	}
	return d, nil
}
