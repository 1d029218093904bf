package main

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPackageClient fetches from a server whose certificate only a private authority vouches for, on a machine whose clock has stopped
// before the certificate is valid: an agent that connects must be able to fetch its updates from the same server.
func TestPackageClient(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	valid := server.Certificate().NotBefore.Add(time.Hour)
	for _, tt := range []struct {
		name, ca string
		now      time.Time
		ok       bool
	}{
		{"private authority", ca, valid, true},
		{"no authority", "", valid, false},
		{"an authority that cannot be read", filepath.Join(dir, "none.pem"), valid, false},
		{"before the certificate", ca, server.Certificate().NotBefore.Add(-time.Hour), false},
	} {
		response, err := packageClient(tt.ca, func() time.Time { return tt.now }).Get(server.URL)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want success %v", tt.name, err, tt.ok)
		}
	}
	f := files{State: dir}
	updater, _ := f.updater(ca, newCertificateClock(f).now, nil)
	response, err := updater.Client.Get(server.URL)
	if err != nil {
		t.Fatalf("the client of the updater: %v", err)
	}
	_ = response.Body.Close()
}

// TestInstallationWaitsForTheLock installs while unattended-upgrades runs: dpkg fails at once, which is no fault of the update.
func TestInstallationWaitsForTheLock(t *testing.T) {
	t.Parallel()
	const frontend = "dpkg: error: dpkg frontend lock was locked by another process with pid 718\nNote: removing the lock file is always wrong\n"
	for _, tt := range []struct {
		name   string
		out    string
		locked time.Duration // 0: dpkg fails with out always
		took   time.Duration
		want   string // in the error; "": none
	}{
		{"for minutes", frontend, 4 * time.Minute, 4 * time.Minute, ""},
		{"the database", "dpkg: error: dpkg database lock was locked by another process with pid 1013\n", time.Minute, time.Minute, ""},
		{"for hours", frontend, 5 * time.Hour, lockTimeout, "frontend lock was locked"},
		{"another failure", "dpkg: error processing archive: no space left on device", 0, 0, "no space left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := whenUnlocked(t.Context(), func() ([]byte, error) {
					if tt.locked == 0 || time.Since(began) < tt.locked {
						return []byte(tt.out), errors.New("exit status 2")
					}
					return nil, nil
				})
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v, want an error with %q", err, tt.want)
				}
			})
		})
	}
}

// TestRequestThatCannotBeRemoved leaves a request that cannot be removed, as on a card that became read-only: systemd starts the installation
// again as soon as it has ended, so it takes a while.
func TestRequestThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		request := filepath.Join(dir, "request.json")
		if err := os.MkdirAll(filepath.Join(request, "not-empty"), 0o700); err != nil {
			t.Fatal(err)
		}
		c, failed := installUpdateCommand{Dir: dir}, errors.New("read-only file system")
		began := time.Now()
		if err := c.slowly(t.Context(), func() error { return failed }); !errors.Is(err, failed) || time.Since(began) != stuckDelay {
			t.Errorf("got %v after %v, want the error after %v", err, time.Since(began), stuckDelay)
		}
		began = time.Now()
		if err := os.RemoveAll(request); err != nil {
			t.Fatal(err)
		}
		if err := c.slowly(t.Context(), func() error { return failed }); !errors.Is(err, failed) || time.Since(began) != 0 {
			t.Errorf("without a request: got %v after %v, want the error at once", err, time.Since(began))
		}
	})
}
