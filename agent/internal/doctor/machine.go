package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/rpi"
)

const (
	sensorTimeout  = 8 * time.Second // the slowest needs five from power-on
	connectTimeout = 5 * time.Second
)

func (d *Doctor) sensors(ctx context.Context, settings []config.Sensor) {
	buses, _ := fs.Glob(d.Root, "dev/i2c-*") // the pattern is right
	for _, bus := range buses {
		d.ok("i2c", "/"+bus)
	}
	if len(settings) == 0 {
		return
	}
	sys, err := fs.Sub(d.Root, "sys")
	if err != nil {
		d.fail("sensor", err.Error(), "is /sys mounted?")
		return
	}
	sensors, err := rpi.Sensors(settings, sys)
	if err != nil {
		d.fail("sensor", err.Error(), "mend the settings")
	}
	for _, s := range sensors {
		ctx, cancel := context.WithTimeout(ctx, sensorTimeout)
		reading, err := s.Reader.Read(ctx)
		cancel()
		if err != nil {
			d.fail("sensor", fmt.Sprintf("%s: %v", s.Location, err),
				"dtparam=i2c_arm=on in config.txt, the agent's user in the group i2c; i2cdetect -y 1 shows who answers")
			continue
		}
		d.ok("sensor", fmt.Sprintf("%s: %.1f °C, %.0f %%", s.Location, reading.Celsius, reading.RelativeHumidity))
	}
}

// clock: doors do not depend on it, certificates and time stamps do.
func (d *Doctor) clock() {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if now := time.Now(); err == nil && state == unix.TIME_ERROR {
		d.warn("clock", "is not synchronised and says "+now.Format(time.RFC3339), "systemctl enable --now systemd-timesyncd; a Pi has no battery")
	} else {
		d.ok("clock", now.Format(time.RFC3339))
	}
}

func (d *Doctor) watchdog() {
	if _, err := fs.Stat(d.Root, "dev/watchdog"); errors.Is(err, fs.ErrNotExist) {
		d.warn("watchdog", "the kernel has none: a machine that hangs stays so", "dtparam=watchdog=on in config.txt")
		return
	}
	d.ok("watchdog", "/dev/watchdog; systemd feeds it when RuntimeWatchdogSec is set (the package sets 14 s)")
}

func (d *Doctor) connection(ctx context.Context, settings config.Settings) {
	u, err := link.ParseURL(settings.Broker)
	if err != nil {
		d.fail("broker", err.Error(), "mend broker in the settings")
		return
	}
	trust, err := settings.TLS()
	if err != nil {
		d.fail("broker", err.Error(), "mend ca in the settings")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := link.Probe(ctx, link.Config{URL: u, TLS: trust}); err != nil {
		d.fail("broker", err.Error(), "is there a network, and does it let this through? wss:// on port 443 passes nearly everywhere")
		return
	}
	d.ok("broker", u.Redacted()+" answers")
}
