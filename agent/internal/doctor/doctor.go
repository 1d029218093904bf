// Package doctor examines the machine that an agent runs on, or will run on, and reports what would fail and how to fix it.
// It drives nothing and requests no line, so it is safe while the agent is running.
package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/protocol"
)

// Doctor examines one machine.
type Doctor struct {
	Root            fs.FS  // the root of the file system; /sys, /proc and /dev are read below it
	SettingsFile    string // as for `yeolda-agent run`
	CredentialsFile string
	HealthFile      string           // in the state directory; the agent writes there whether it is connected; it may be missing
	Now             func() time.Time // the time for certificates; nil: time.Now
	// Learn corrects Now by the error of a TLS handshake, with the authorities that are trusted; it reports whether it has. It may be nil.
	Learn func(err error, roots *x509.CertPool) bool
	Out   io.Writer

	failed int
}

// Examine reports every finding and returns the number of failures.
func (d *Doctor) Examine(ctx context.Context) int {
	settings, err := config.ReadSettings(d.SettingsFile)
	if err != nil {
		d.fail("settings", err.Error(), "fix the file; the packaged settings.toml documents every setting")
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
	for _, f := range machine(d.Root, settings.Doors, filepath.Dir(d.HealthFile)) {
		if f.fix == "" {
			d.ok(f.subject, f.text)
		} else {
			d.warn(f.subject, f.text, f.fix)
		}
	}
	d.infrared(settings.AirConditioners)
	d.sensors(ctx, settings.Sensors)
	if settings.Broker = cmp.Or(settings.Broker, credentials.Broker); settings.Broker != "" {
		d.connection(ctx, settings.Broker, cmp.Or(settings.CA, credentials.CA))
	} else {
		d.fail("broker", "neither the settings nor the credentials name a broker", "enroll the machine, or set broker in the settings")
	}
	d.connected()
	return d.failed
}

// finding is a property of the machine. fix is empty if it is all right.
type finding struct{ subject, name, text, fix string }

// SelfTests returns the findings about the machine for the agent's status, so that the console shows them. state is the state
// directory of the agent.
func SelfTests(root fs.FS, doors []config.Door, state string) []protocol.SelfTest {
	findings := machine(root, doors, state)
	tests := make([]protocol.SelfTest, len(findings))
	for i, f := range findings {
		tests[i] = protocol.SelfTest{Name: "machine " + f.name, OK: f.fix == ""}
		if f.fix != "" {
			tests[i].Detail = protocol.Clip(f.text + ": " + f.fix)
		}
	}
	return tests
}

// machine examines what does not depend on the kernel's GPIO, I²C or LIRC devices.
func machine(root fs.FS, doors []config.Door, state string) []finding {
	var findings []finding
	for _, door := range doors {
		findings = append(findings, bootLevel(door)...)
	}
	return append(append(findings, persistence(root)...), clock(unix.Adjtimex, uptime()), watchdog(root), storage(state, space))
}

func (d *Doctor) ok(subject, text string) {
	_, _ = fmt.Fprintf(d.Out, "ok    %-12s %s\n", subject, text)
}

func (d *Doctor) warn(subject, text, fix string) { d.print("warn", subject, text, fix) }

func (d *Doctor) fail(subject, text, fix string) {
	d.failed++
	d.print("FAIL", subject, text, fix)
}

// print ignores write errors: the exit status still shows the number of failures.
func (d *Doctor) print(level, subject, text, fix string) {
	_, _ = fmt.Fprintf(d.Out, "%-5s %-12s %s\n%19s→ %s\n", level, subject, text, "", fix)
}
