// Package lirc sends infrared through the kernel's LIRC devices. The kernel modulates and times the signal, because a
// user-space program cannot keep 26 µs cycles (38 kHz).
//
//	durations ─► split at the kernel's limits ─► carrier, duty ─► write, blocks for the signal's length ─┐
//	                         ▲                                                                          │
//	                         └──────────────────── sleep the gap in between ◄───────────────────────────┘
//
// A Unix signal interrupts the kernel's wait for the end of a transmission, and Go's scheduler sends itself such signals
// (SIGURG). The package therefore waits for the remaining time itself; otherwise the next part would overlap.
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
	dutyPercent    = 33          // the usual duty cycle of remotes: bright marks that do not overheat the LED
	transmitGrace  = time.Second // time a write may take beyond its signal before the device counts as hanging
)

// Device is one transmitter. It is safe for concurrent use. Carrier and duty cycle are settings of the kernel device and not
// of the open file, so signals are sent one at a time.
type Device struct {
	sys  fs.FS
	name string
	turn chan struct{}
}

var _ ir.Transmitter = (*Device)(nil)

// Open returns the transmitter with the given driver or path, or the only one if name is empty; see Choose. The device is
// looked up below sys, the root of sysfs, for each signal, so a missing device is an error of that signal only.
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

// Send implements ir.Transmitter. If the driver hangs, the device stays busy and every later Send fails when its context is
// done.
func (d *Device) Send(ctx context.Context, carrierHz int, durations []uint32) error {
	parts, err := ir.Split(durations)
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
	select { // the transmission may be about to end
	case err := <-done:
		return err
	case <-time.After(transmitGrace):
		return fmt.Errorf("%s hangs: %w", path, ctx.Err())
	}
}

func transmit(ctx context.Context, path string, carrierHz int, parts []ir.Part) (err error) {
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
		if err := write(fd, p.Durations); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		select {
		case <-time.After(time.Until(began.Add(p.Length() + p.Gap))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func prepare(fd int, carrierHz uint32) error {
	features, err := unix.IoctlGetUint32(fd, getFeatures)
	if err != nil {
		return fmt.Errorf("not a LIRC device: %w", err)
	}
	if features&canSendPulse == 0 {
		return errors.New("the device cannot transmit")
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
