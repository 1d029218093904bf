//go:build hw

package hwtest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// The folders of a Pi that updates use.
const (
	stateDir  = "/var/lib/yeolda-agent"
	updateDir = "/var/lib/yeolda-agent-update"
	installed = "/usr/bin/yeolda-agent"
)

var releaseKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// TestBadUpdate asks the agent for three updates: one that the release key has not signed, one whose file is another than the
// signed one, and a signed one whose program ends at once. The door opens after each, the last one is rolled back by the
// package's own trial. The test plays systemd and dpkg; the Debian machine has the real ones.
func TestBadUpdate(t *testing.T) {
	pi(t)
	b := brokertest.Start(t, "127.0.0.1:0")
	bad := []byte("#!/bin/sh\nexit 1\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bad) }))
	t.Cleanup(server.Close)
	agent := protocol.Agent{Branch: branch, Username: "agent-" + branch}
	ask := func(version string, key ed25519.PrivateKey, content []byte) {
		sum := sha256.Sum256(content)
		b.SendTo(agent, protocol.Update{Version: version, Packages: []protocol.Package{protocol.SignPackage(key, version,
			protocol.Package{Architecture: "amd64", URL: server.URL + "/agent.deb", SHA256: hex.EncodeToString(sum[:])})}})
	}
	run := func() *process { return startProgram(t, b, installed, fmt.Sprintf(settings, b.Addr)) }
	n := 60
	opens := func() {
		t.Helper()
		n++
		if r, _ := unlock(t, b, n, protocol.MinPulse, "front_1"); r.Outcome != protocol.Opened || level(t, gpioHigh) != 1 {
			t.Fatalf("got %+v and level %d, want the line to be driven", r, level(t, gpioHigh))
		}
	}
	requested := func() bool { _, err := os.Stat(stateDir + "/update/request.json"); return err == nil }

	p := run()
	ask("8.0.0", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize)), bad)
	awaitUpdate(t, b, "8.0.0", protocol.UpdateFailed)
	opens()
	ask("8.0.1", releaseKey, []byte("another file"))
	awaitUpdate(t, b, "8.0.1", protocol.UpdateFetching)
	opens()
	if requested() {
		t.Fatal("the installer was asked for a package that is not the signed one")
	}

	ask("9.0.0", releaseKey, bad)
	awaitUpdate(t, b, "9.0.0", protocol.UpdateInstalling)
	if !requested() {
		t.Fatal("the installer was not asked")
	}
	if out, err := exec.Command(installed, "install-update").CombinedOutput(); err != nil {
		t.Fatalf("install-update: %v\n%s", err, out)
	}
	if program, err := os.ReadFile(installed); err != nil || !bytes.Equal(program, bad) {
		t.Fatalf("the new version was not installed: %v", err)
	}
	p.end(syscall.SIGTERM)
	if err := exec.Command(installed, "run").Run(); err == nil {
		t.Fatal("the new version does not end at once")
	}
	trial := exec.Command("/testdata/trial")
	trial.Env = append(os.Environ(), "YEOLDA_AGENT_TRIAL=0", "YEOLDA_AGENT_TRIAL_LIMIT=0")
	if out, err := trial.CombinedOutput(); err != nil {
		t.Fatalf("trial: %v\n%s", err, out)
	}
	p = run()
	if u := p.status.Update; u == nil || u.Version != "9.0.0" || u.State != protocol.UpdateRolledBack || !reports(p.status, "update") {
		t.Errorf("got update %+v and self-tests %+v, want rolled back", u, p.status.SelfTest)
	}
	opens()
	ask("9.0.0", releaseKey, bad) // repeated: a version that was rolled back is not installed again
	opens()
	if requested() {
		t.Error("the version that was rolled back is installed again")
	}
}

// awaitUpdate waits for a status in which the update has a state, with a reason if nothing was installed.
func awaitUpdate(t *testing.T, b *brokertest.Broker, version string, state protocol.UpdateState) {
	t.Helper()
	for {
		u := brokertest.Await[protocol.Status](b).Update
		if u != nil && u.Version == version && u.State == state && (u.Detail != "" || state == protocol.UpdateInstalling) {
			t.Logf("%+v", *u)
			return
		}
	}
}

// pi lays out the files of an installed package. dpkg runs the package's own preinst before it copies the program.
func pi(t *testing.T) {
	t.Helper()
	t.Setenv("STATE_DIRECTORY", stateDir)
	for _, dir := range []string{stateDir, updateDir, filepath.Dir(installed), "/usr/share/yeolda-agent", "/etc/yeolda-agent"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/bin/yeolda-agent")
	if err != nil {
		t.Fatal(err)
	}
	commands := t.TempDir()
	for name, text := range map[string]string{
		installed:                            string(program),
		filepath.Join(commands, "dpkg"):      "#!/bin/sh\nset -e\n/testdata/preinst upgrade\nfor deb; do :; done\ncp $deb " + installed + ".new\nchmod 755 " + installed + ".new\nmv " + installed + ".new " + installed + "\n",
		filepath.Join(commands, "systemctl"): "#!/bin/sh\ncase $1 in is-active) exit 3;; show) echo 0;; esac\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", commands+":"+os.Getenv("PATH"))
	write(t, "/etc/yeolda-agent/credentials", "")
	write(t, "/usr/share/yeolda-agent/release-keys", base64.StdEncoding.EncodeToString(releaseKey.Public().(ed25519.PublicKey))+"\n")
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(stateDir), os.RemoveAll(updateDir)); err != nil {
			t.Error(err)
		}
	})
}
