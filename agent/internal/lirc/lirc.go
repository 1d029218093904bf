// Package lirc sends infrared through the kernel's LIRC devices, which modulate and time the signal where a program
// could not: 38 kHz is 26 µs a cycle.
//
//	durations ─► split at the kernel's limits ─► carrier, duty ─► write, blocks for the signal's length ─┐
//	                         ▲                                                                          │
//	                         └──────────────────── sleep the gap in between ◄───────────────────────────┘
//
// The kernel's wait for the signal's end is one that a signal of the process ends early, and Go's scheduler sends such
// signals to itself (SIGURG). What remains of the signal is therefore waited for here, or the next part would run into it.
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

	"github.com/yeolda/yeolda/agent/ir"
)

// ioctl numbers of linux/lirc.h; all take a pointer to a uint32.
const (
	getFeatures    = 0x80046900
	setSendMode    = 0x40046911
	setSendCarrier = 0x40046913
	setSendDuty    = 0x40046915
	canSendPulse   = 0x2
	canSetCarrier  = 0x100
	canSetDuty     = 0x200
	modePulse      = 2
	dutyPercent    = 33          // what remotes use: bright marks that do not burn the LED
	transmitGrace  = time.Second // what a write may take beyond its signal before the device counts as stuck
)

// Device is one transmitter. It is safe for concurrent use: carrier and duty belong to the kernel's device and not to who
// has it open, so one signal goes out at a time.
type Device struct {
	sys  fs.FS
	name string
	turn chan struct{}
}

var _ ir.Transmitter = (*Device)(nil)

// Open names a transmitter: by the driver behind it, or by its path, or "" for the only one there is; see Choose. It is
// looked for below sys, the root of sysfs, at each signal: one that is gone then is an error of that signal.
func Open(sys fs.FS, name string) *Device {
	return &Device{sys: sys, name: name, turn: make(chan struct{}, 1)}
}

func (d *Device) path() (string, error) {
	if strings.HasPrefix(d.name, "/") {
		return d.name, nil
	}
	devices, err := Devices(d.sys)
	if err != nil {
		return "", err
	}
	t, err := Choose(devices, d.name)
	return t.Path, err
}

// Send implements ir.Transmitter. A driver that hangs keeps the device, and every Send after it fails when its context
// ends.
func (d *Device) Send(ctx context.Context, carrierHz int, durations []uint32) error {
	parts, err := split(durations)
	if err != nil {
		return err
	}
	path, err := d.path()
	if err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s is busy: %w", path, ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-d.turn }()
		done <- transmit(ctx, path, carrierHz, parts)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // it may be about to end
	case err := <-done:
		return err
	case <-time.After(transmitGrace):
		return fmt.Errorf("%s hangs: %w", path, ctx.Err())
	}
}

func transmit(ctx context.Context, path string, carrierHz int, parts []part) (err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := prepare(fd, uint32(carrierHz)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range parts {
		began := time.Now()
		if err := write(fd, p.durations); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		select {
		case <-time.After(time.Until(began.Add(p.length() + p.gap))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func prepare(fd int, carrierHz uint32) error {
	features, err := unix.IoctlGetUint32(fd, getFeatures)
	if err != nil {
		return fmt.Errorf("no LIRC device: %w", err)
	}
	if features&canSendPulse == 0 {
		return errors.New("cannot send")
	}
	if err := unix.IoctlSetPointerInt(fd, setSendMode, modePulse); err != nil {
		return fmt.Errorf("send mode: %w", err)
	}
	if features&canSetCarrier != 0 {
		if err := unix.IoctlSetPointerInt(fd, setSendCarrier, int(carrierHz)); err != nil {
			return fmt.Errorf("carrier of %d Hz: %w", carrierHz, err)
		}
	}
	if features&canSetDuty != 0 {
		if err := unix.IoctlSetPointerInt(fd, setSendDuty, dutyPercent); err != nil {
			return fmt.Errorf("duty of %d %%: %w", dutyPercent, err)
		}
	}
	return nil
}

func write(fd int, durations []uint32) error {
	buffer := make([]byte, 0, 4*len(durations))
	for _, d := range durations {
		buffer = binary.NativeEndian.AppendUint32(buffer, d)
	}
	n, err := unix.Write(fd, buffer)
	if err != nil {
		return fmt.Errorf("send %d durations: %w", len(durations), err)
	}
	if n != len(buffer) {
		return fmt.Errorf("sent %d of %d durations", n/4, len(durations))
	}
	return nil
}
