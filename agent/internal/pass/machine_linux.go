package pass

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// System is the Machine that this program runs on.
type System struct{}

// Uptime implements Machine.
func (System) Uptime() (boot string, since time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(t.Nano())
}

// HardwareClock implements Machine. The kernel shows the clock to every user, so the agent needs no right to set it: a beacon
// sets it by recording how it relates to the time.
func (System) HardwareClock() (seconds int64, ok bool) {
	text, err := os.ReadFile("/sys/class/rtc/rtc0/since_epoch")
	if err != nil {
		return 0, false
	}
	seconds, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return seconds, err == nil
}
