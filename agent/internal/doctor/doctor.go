// Package doctor looks at the machine an agent runs on, or is to run on, and says what would fail and how to mend it. It
// drives nothing and takes nothing over: it may be asked while the agent works and a guest stands at the door.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/yeolda/yeolda/agent/internal/config"
)

// Doctor examines one machine.
type Doctor struct {
	Root            fs.FS  // of the file system: /sys, /proc and /dev are looked at below it
	SettingsFile    string // as `yeolda-agent run` takes them
	CredentialsFile string
	Out             io.Writer

	failed int
}

// Examine writes down everything there is to say and returns how many things have to be mended.
func (d *Doctor) Examine(ctx context.Context) int {
	settings, err := config.ReadSettings(d.SettingsFile)
	if err != nil {
		d.fail("settings", err.Error(), "mend the file; every setting is explained in the one the package brought")
	} else {
		d.ok("settings", fmt.Sprintf("%d doors, %d air conditioners, %d sensors", len(settings.Doors), len(settings.AirConditioners), len(settings.Sensors)))
	}
	credentials, err := config.ReadCredentials(d.CredentialsFile)
	if err != nil {
		d.fail("credentials", err.Error(), "run the command that `yeolda agent enroll BRANCH` prints on the server")
	} else {
		d.ok("credentials", fmt.Sprintf("branch %s, as %s", credentials.Branch, credentials.Username))
	}
	d.lines(settings.Doors)
	d.persistence()
	d.infrared(settings.AirConditioners)
	d.sensors(ctx, settings.Sensors)
	d.clock()
	d.watchdog()
	if settings.Broker = cmp.Or(settings.Broker, credentials.Broker); settings.Broker != "" {
		d.connection(ctx, settings)
	} else {
		d.fail("broker", "neither the settings nor the credentials name one", "enrolment writes it down; or set broker in the settings")
	}
	return d.failed
}

func (d *Doctor) ok(subject, text string) {
	_, _ = fmt.Fprintf(d.Out, "ok    %-12s %s\n", subject, text)
}

func (d *Doctor) warn(subject, text, fix string) { d.finding("warn", subject, text, fix) }

func (d *Doctor) fail(subject, text, fix string) {
	d.failed++
	d.finding("FAIL", subject, text, fix)
}

func (d *Doctor) finding(level, subject, text, fix string) {
	_, _ = fmt.Fprintf(d.Out, "%-5s %-12s %s\n%19s→ %s\n", level, subject, text, "", fix) // who cannot read it still gets the count of failures
}
