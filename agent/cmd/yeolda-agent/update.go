package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/update"
	"github.com/yeolda/yeolda/protocol"
)

// The files of updates. updateFailed exists if root could not install the last one; it contains the reason.
const (
	releaseKeys  = "/usr/share/yeolda-agent/release-keys" // of the package
	fleetKeys    = "/etc/yeolda-agent/release-keys"       // of the administrator; may be missing
	updateFailed = "/var/lib/yeolda-agent-update/failed"
)

// updater returns the part of updates that needs no privileges. ca is the file of a private certificate authority, or empty, and now
// the time for certificates. changed receives a value when the status of the update changes.
func (f *files) updater(ca string, now func() time.Time, log *slog.Logger) (u *update.Updater, changed <-chan struct{}) {
	architecture := runtime.GOARCH
	if architecture == "arm" {
		architecture = "armhf"
	}
	announced := make(chan struct{}, 1)
	u = &update.Updater{Dir: f.stateFile("update"), Work: filepath.Dir(updateFailed), Version: release(), Architecture: architecture, Log: log,
		Client: packageClient(ca, now),
		Keys: func() ([]ed25519.PublicKey, error) {
			if f.State == "" {
				return nil, errors.New("this agent has no state directory")
			}
			return update.Keys(releaseKeys, fleetKeys)
		},
		Outcomes: func() []update.Outcome {
			return update.Outcomes(map[string]protocol.UpdateState{updateResult: protocol.UpdateRolledBack, updateFailed: protocol.UpdateFailed})
		},
		Changed: func() {
			select {
			case announced <- struct{}{}:
			default: // it is noticed with the previous change
			}
		}}
	if f.State != "" {
		u.Load()
	}
	return u, announced
}

// packageClient returns a client that fetches packages as the agent connects: with the private authority, and the same time for
// certificates. An authority that cannot be read is a problem of the settings.
func packageClient(ca string, now func() time.Time) *http.Client {
	trust, err := config.PackageTLS(ca, now)
	if err != nil {
		trust, _ = config.PackageTLS("", now)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	return &http.Client{Transport: transport}
}

type installUpdateCommand struct {
	Dir string `default:"/var/lib/yeolda-agent/update" help:"Where the agent left the package."`
}

// stuckDelay is how long an installation takes whose request cannot be removed.
const stuckDelay = time.Minute

// Run installs an update. systemd starts it as root when the agent has left a request.
func (c *installUpdateCommand) Run(ctx context.Context) error {
	return c.slowly(ctx, func() error { return c.install(ctx) })
}

// slowly runs an installation, and waits if it has failed and its request is still there, as on a card that became read-only: systemd would
// start it again at once, without end.
func (c *installUpdateCommand) slowly(ctx context.Context, install func() error) error {
	err := install()
	if err != nil && update.Requested(c.Dir) {
		select {
		case <-ctx.Done():
		case <-time.After(stuckDelay):
		}
	}
	return err
}

func (c *installUpdateCommand) install(ctx context.Context) error {
	if err := update.Share(filepath.Dir(updateFailed)); err != nil {
		return err
	}
	if err := os.Remove(updateFailed); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	keys, err := update.Keys(releaseKeys, fleetKeys)
	if err != nil {
		_ = os.Remove(filepath.Join(c.Dir, "request.json")) // or systemd would start this again without end
	} else {
		err = update.Install(c.Dir, filepath.Dir(updateFailed), keys, func(deb string) error {
			return whenUnlocked(ctx, func() ([]byte, error) {
				dpkg := exec.CommandContext(ctx, "dpkg", "--install", "--force-confold", deb)
				dpkg.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
				return dpkg.CombinedOutput()
			})
		})
	}
	if err != nil {
		return errors.Join(err, os.WriteFile(updateFailed, []byte(protocol.Clip(err.Error())), 0o644)) //nolint:gosec // the agent reads it
	}
	return nil
}

const (
	// lockTimeout is how long an installation waits for other programs that install packages, such as unattended-upgrades. With it, dpkg has
	// two minutes of the ten that systemd grants.
	lockTimeout  = 8 * time.Minute
	lockInterval = 5 * time.Second
)

// whenUnlocked runs dpkg, and again while another program holds its lock: dpkg itself does not wait.
func whenUnlocked(ctx context.Context, dpkg func() ([]byte, error)) error {
	for began := time.Now(); ; {
		out, err := dpkg()
		if err == nil {
			return nil
		}
		if err = fmt.Errorf("%w: %s", err, protocol.Clip(string(out))); time.Since(began) >= lockTimeout || !bytes.Contains(out, []byte("locked by another process")) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockInterval):
		}
	}
}
