package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/rpi"
)

const (
	sensorTimeout  = 8 * time.Second // the slowest sensor needs five seconds after power-on
	connectTimeout = 20 * time.Second
)

func (d *Doctor) sensors(ctx context.Context, settings []config.Sensor) {
	buses, _ := fs.Glob(d.Root, "dev/i2c-*") // the pattern is valid
	for _, bus := range buses {
		d.ok("i2c", "/"+bus)
	}
	d.access("i2c", "dev/i2c-*")
	if onBus := slices.ContainsFunc(settings, func(s config.Sensor) bool { return s.Kind != rpi.KindHwmon }); onBus && len(buses) == 0 {
		d.fail("i2c", "there is no /dev/i2c-*", "dtparam=i2c_arm=on in config.txt, and `modprobe i2c-dev`, which the package's modules-load.d does at boot")
	}
	if len(settings) == 0 {
		return
	}
	sys, err := fs.Sub(d.Root, "sys")
	if err != nil {
		d.fail("sensor", err.Error(), "mount /sys")
		return
	}
	sensors, err := rpi.Sensors(settings, sys)
	if err != nil {
		d.fail("sensor", err.Error(), "fix the settings")
	}
	for _, s := range sensors {
		ctx, cancel := context.WithTimeout(ctx, sensorTimeout)
		reading, err := s.Reader.Read(ctx)
		cancel()
		if err != nil {
			d.fail("sensor", fmt.Sprintf("%s: %v", s.Location, err),
				"check the wiring; i2cdetect -y 1 lists the chips that respond; the agent's user must be in the group i2c")
			continue
		}
		d.ok("sensor", fmt.Sprintf("%s: %.1f °C, %.0f %%", s.Location, reading.Celsius, reading.RelativeHumidity))
	}
}

// syncTime is how long after its start the machine's clock may be unsynchronised. A Pi has no clock battery and gets the time from the
// network, at about the moment when the agent connects, so without this delay each start would raise an alert.
const syncTime = 5 * time.Minute

// clock reports a clock that the kernel counts as unsynchronised, once syncTime has passed since the start of the machine. Doors do not
// depend on the clock, but certificates and timestamps do.
func clock(kernel func(*unix.Timex) (state int, err error), uptime time.Duration) finding {
	f := finding{subject: "clock", name: "clock", text: time.Now().Format(time.RFC3339)}
	var t unix.Timex
	if state, err := kernel(&t); err != nil || state != unix.TIME_ERROR {
		return f
	}
	if uptime < syncTime {
		f.text = "the clock is not synchronised yet"
		return f
	}
	f.text, f.fix = "the clock is not synchronised", "systemctl enable --now systemd-timesyncd; a Pi has no clock battery"
	return f
}

// uptime returns the time since the start of the machine; 0: unknown.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func watchdog(root fs.FS) finding {
	f := finding{subject: "watchdog", name: "watchdog", text: "/dev/watchdog; systemd feeds it if RuntimeWatchdogSec is set (the package sets 14 s)"}
	if _, err := fs.Stat(root, "dev/watchdog"); errors.Is(err, fs.ErrNotExist) {
		f.text, f.fix = "the kernel has no watchdog, so a kernel that hangs is not restarted", "dtparam=watchdog=on in config.txt"
	}
	return f
}

// spaceNeeded is the free space without which the state directory counts as full: the journal of the keypads may grow to half of it,
// and is written anew beside itself.
const spaceNeeded = 8 << 20

// storage reports whether the agent can store its state, which space returns for a directory. Doors open for the service without it, but
// keypads refuse every code, and keys, settings and passes of before are in use after a restart.
func storage(dir string, space func(dir string) (free uint64, err error)) finding {
	f := finding{subject: "storage", name: "storage"}
	free, err := space(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.text = dir + " does not exist yet; systemd creates it"
	case errors.Is(err, fs.ErrPermission):
		f.text = fmt.Sprintf("%s cannot be written: %v", dir, err)
		f.fix = "only the agent's user may write there: run the doctor as root"
	case err != nil:
		f.text = fmt.Sprintf("%s cannot be written: %v", dir, err)
		f.fix = "a card that fails becomes read-only: look at `dmesg`, and replace it; keypads open nothing until then"
	case free < spaceNeeded:
		f.text = fmt.Sprintf("%s has %d KiB of free space", dir, free>>10)
		f.fix = "remove files (`journalctl --vacuum-size=50M`, `apt-get clean`); on a full disk keypads open nothing"
	default:
		f.text = fmt.Sprintf("%s can be written, %d MiB are free", dir, free>>20)
	}
	return f
}

// space returns the free space of a directory's disk, or the reason why this user cannot write there.
func space(dir string) (free uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return 0, err
	}
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	if s.Files > 0 && s.Ffree == 0 {
		return 0, nil
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // the size of a block is positive
}

func (d *Doctor) connection(ctx context.Context, addresses, ca string) {
	brokers, err := link.ParseURLs(addresses)
	if err != nil {
		d.fail("broker", err.Error(), "fix broker in the settings")
		return
	}
	trust, err := config.TLS(ca, d.Now)
	if err != nil {
		d.fail("broker", err.Error(), "fix ca in the settings, or enroll again")
		return
	}
	for _, u := range brokers {
		if link.Exposed(u) {
			d.warn("broker", u.Redacted()+" is not encrypted: the network can read the agent's password", "use wss:// or mqtts://")
		}
		limited, cancel := context.WithTimeout(ctx, connectTimeout)
		err := link.Probe(limited, u, link.Config{TLS: trust})
		if err != nil && d.Learn != nil && d.Learn(err, trust.RootCAs) { // as the agent does
			err = link.Probe(limited, u, link.Config{TLS: trust})
		}
		cancel()
		if err != nil {
			d.fail("broker", err.Error(), "check the network and its firewall; wss:// on port 443 passes nearly everywhere")
			continue
		}
		d.ok("broker", u.Redacted()+" answers")
	}
}

// startTime is how long an agent that has just started may take to connect.
const startTime = 30 * time.Second

// connected reports whether the agent itself is connected. Only the agent itself can find out whether the service accepts its credentials: a
// connection of the doctor with them would end that of the agent.
func (d *Doctor) connected() {
	text, err := os.ReadFile(d.HealthFile)
	health, healthErr := os.Stat(d.HealthFile)
	if err != nil || healthErr != nil {
		return // it has never run, or only its user may read the file
	}
	enrolled, err := os.Stat(d.CredentialsFile)
	switch {
	case err == nil && health.ModTime().Before(enrolled.ModTime()): // with other credentials
	case strings.Contains(string(text), "connected=yes\n"):
		d.ok("agent", "connected to the service when it last reported")
	case time.Since(health.ModTime()) < startTime:
	default:
		d.fail("agent", "it is not connected to the service",
			"journalctl -u yeolda-agent says why; if the broker rejects the credentials, they were revoked or replaced: enroll this machine again")
	}
}
