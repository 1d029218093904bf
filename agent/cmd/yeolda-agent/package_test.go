package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const packaging = "../../../deploy/agent"

// TestExampleSettings checks that the packaged file is valid, with and without its commented settings.
func TestExampleSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "settings.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.ParseSettings(text); err != nil {
		t.Error(err)
	}
	// Settings are commented out without a space, prose with one. Two lines are alternatives for the relay.
	text = regexp.MustCompile(`(?m)^#relay = \{ (chip|offset).*$`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAll(text, []byte("$1"))
	s, err := config.ParseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Doors) != 1 || s.Doors[0].Exit == nil || len(s.AirConditioners) != 1 || len(s.Sensors) != 2 || s.Broker == "" {
		t.Errorf("got %+v", s)
	}
}

// TestTrial checks that an update that does worse than the old version is rolled back, and any other one is kept.
func TestTrial(t *testing.T) {
	t.Parallel()
	const online, offline = "connected=yes\nfailed=1\n", "connected=no\nfailed=1\n"
	for name, tt := range map[string]struct {
		active, restarts string
		before, after    string // health files
		reason           string // empty: kept
	}{
		"runs":                     {"0", "0", online, online, ""},
		"restarted twice":          {"0", "2", online, online, ""},
		"keeps restarting":         {"0", "40", online, online, "it keeps restarting"},
		"does not start":           {"3", "0", online, online, "it is not running"},
		"does not connect":         {"0", "0", online, offline, "it does not connect"},
		"writes no health":         {"0", "0", online, "", "it does not connect"},
		"was offline before":       {"0", "0", offline, offline, ""},
		"fails a further test":     {"0", "0", online, "connected=yes\nfailed=2\n", "it fails 2 self-tests, the old version failed 1"},
		"fixes a test":             {"0", "0", online, "connected=yes\nfailed=0\n", ""},
		"previous wrote no health": {"0", "0", "", online, ""},
		"commands in the file":     {"0", "0", "connected=$(touch x)\nfailed=`false`\n", online, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			systemctl := "#!/bin/sh\ncase $1 in show) echo " + tt.restarts + ";; is-active) exit " + tt.active + ";; *) echo \"$@\" >>" + dir + "/calls;; esac\n"
			for file, text := range map[string]string{
				"systemctl": systemctl, "dpkg-query": "#!/bin/sh\necho 1.2.3\n", "program": "new", "previous": "old", "trial": "", "health": tt.before, "now": tt.after,
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			trial := exec.Command(filepath.Join(packaging, "trial"))
			trial.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "YEOLDA_AGENT_TRIAL=0", "YEOLDA_AGENT_TRIAL_LIMIT=0", "YEOLDA_AGENT_UPDATE=" + dir,
				"YEOLDA_AGENT_HEALTH=" + filepath.Join(dir, "now"), "YEOLDA_AGENT_PROGRAM=" + filepath.Join(dir, "program")}
			if out, err := trial.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := "new"
			if tt.reason != "" {
				want = "old"
			}
			if program, err := os.ReadFile(filepath.Join(dir, "program")); err != nil || string(program) != want {
				t.Errorf("got the %s program, %v, want the %s one", program, err, want)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if restarted := bytes.Contains(calls, []byte("restart")); restarted != (want == "old") {
				t.Errorf("restarted: got %v, want %v", restarted, want == "old")
			}
			result, _ := os.ReadFile(filepath.Join(dir, "rolled-back"))
			if tt.reason == "" && len(result) > 0 || tt.reason != "" && string(result) != "the update to version 1.2.3 was rolled back: "+tt.reason+"\n" {
				t.Errorf("got result %q, want reason %q", result, tt.reason)
			}
			if _, err := os.Stat(filepath.Join(dir, "trial")); err == nil {
				t.Error("the trial is not over")
			}
		})
	}
}

// TestTrialOnAFullDisk rolls an update back although nothing can be written.
func TestTrialOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"systemctl": "#!/bin/sh\ncase $1 in show) echo 40;; is-active) ;; *) ln -s x " + dir + "/called-$1;; esac\n", "dpkg-query": "#!/bin/sh\necho 1.2.3\n",
		"program": "new", "previous": "old", "trial": "", "health": "connected=yes\nfailed=1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	trial := exec.Command("/bin/sh", "-c", "trap '' XFSZ; ulimit -f 0; exec "+filepath.Join(packaging, "trial"))
	trial.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "YEOLDA_AGENT_TRIAL=0", "YEOLDA_AGENT_TRIAL_LIMIT=0", "YEOLDA_AGENT_UPDATE=" + dir,
		"YEOLDA_AGENT_HEALTH=" + filepath.Join(dir, "now"), "YEOLDA_AGENT_PROGRAM=" + filepath.Join(dir, "program")}
	out, err := trial.StderrPipe() // a file would have the limit, too
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Start(); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(out)
	if err := trial.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if program, err := os.ReadFile(filepath.Join(dir, "program")); err != nil || string(program) != "old" {
		t.Errorf("got the %s program, %v, want the old one\n%s", program, err, text)
	}
	for _, file := range []string{"called-restart", "rolled-back"} {
		if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
			t.Errorf("the agent is not restarted, or does not report the outcome: %v", err)
		}
	}
	for _, file := range []string{"trial", "previous", "program.old"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s remains", file)
		}
	}
}

// maintainer runs a maintainer script with commands that only record their arguments.
func maintainer(t *testing.T, script string, args ...string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"systemctl", "getent", "groupadd", "useradd", "userdel", "chown", "chmod", "udevadm", "modprobe", "rm"} {
		text := "#!/bin/sh\necho \"" + name + " $*\" >>" + dir + "/calls\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(filepath.Join(packaging, script), args...)
	c.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "calls"))
	return string(text)
}

// TestInstallation checks that the agent is enabled even if systemd is not running, as while an image is built.
func TestInstallation(t *testing.T) {
	t.Parallel()
	calls := maintainer(t, "postinst", "configure")
	if !strings.Contains(calls, "systemctl enable --quiet yeolda-agent.service yeolda-agent-trial.service yeolda-agent-update.path\n") {
		t.Errorf("the units are not enabled:\n%s", calls)
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil && strings.Contains(calls, "restart") {
		t.Errorf("a restart without systemd:\n%s", calls)
	}
}

// TestRemoval checks that a removal disables every unit that the installation enables.
func TestRemoval(t *testing.T) {
	t.Parallel()
	_, enabled, _ := strings.Cut(maintainer(t, "postinst", "configure"), "systemctl enable --quiet ")
	units, _, _ := strings.Cut(enabled, "\n")
	if calls := maintainer(t, "prerm", "remove"); units == "" || !strings.Contains(calls, "systemctl disable --quiet "+units+"\n") {
		t.Errorf("got the calls\n%s\nwant %s disabled", calls, units)
	}
	if calls := maintainer(t, "prerm", "upgrade"); calls != "" {
		t.Errorf("an upgrade calls\n%s", calls)
	}
}

// TestPreinst keeps the working version for the trial. On a full disk the update fails, and leaves the version of a trial that is not
// over, and nothing more on the disk.
func TestPreinst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cp    string // the command; empty: the real one
		kept  string
		fails bool
	}{
		"space":     {"", "working", false},
		"full disk": {"#!/bin/sh\necho -n work >$2\nexit 1\n", "of a trial", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, commands := t.TempDir(), t.TempDir()
			update := filepath.Join(dir, "update")
			if err := os.Mkdir(update, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"program": "working", "credentials": "", "health": "connected=yes\n", "update/previous": "of a trial"} {
				write(t, filepath.Join(dir, file), text)
			}
			if tt.cp != "" {
				if err := os.WriteFile(filepath.Join(commands, "cp"), []byte(tt.cp), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command(filepath.Join(packaging, "preinst"), "upgrade")
			c.Env = []string{"PATH=" + commands + ":/usr/bin:/bin", "YEOLDA_AGENT_UPDATE=" + update, "YEOLDA_AGENT_HEALTH=" + dir + "/health",
				"YEOLDA_AGENT_PROGRAM=" + dir + "/program", "YEOLDA_AGENT_CREDENTIALS=" + dir + "/credentials"}
			if out, err := c.CombinedOutput(); (err != nil) != tt.fails {
				t.Fatalf("got %v, want failure %v\n%s", err, tt.fails, out)
			}
			if text, err := os.ReadFile(filepath.Join(update, "previous")); err != nil || string(text) != tt.kept {
				t.Errorf("kept %q, %v, want %q", text, err, tt.kept)
			}
			if _, err := os.Stat(filepath.Join(update, "trial")); (err != nil) != tt.fails {
				t.Errorf("trial: got %v, want none: %v", err, tt.fails)
			}
			if _, err := os.Stat(filepath.Join(update, "previous.new")); err == nil {
				t.Error("a torn copy remains")
			}
		})
	}
}

// TestUpdateDuringATrial: the version on trial has proven nothing, so the version before it remains the one to return to, with its
// health as the standard. The trial ends first: its end would remove both while the next version is unpacked.
func TestUpdateDuringATrial(t *testing.T) {
	t.Parallel()
	dir, commands := t.TempDir(), t.TempDir()
	update := filepath.Join(dir, "update")
	if err := os.MkdirAll(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(update, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"program": "on trial", "credentials": "", "health": "connected=no\n", "update/trial": "", "update/previous": "proven", "update/health": "connected=yes\n"} {
		write(t, filepath.Join(dir, file), text)
	}
	stop := "#!/bin/sh\necho \"$*\" >>" + dir + "/calls\n"
	if err := os.WriteFile(filepath.Join(commands, "systemctl"), []byte(stop), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + commands + ":/usr/bin:/bin", "YEOLDA_AGENT_UPDATE=" + update, "YEOLDA_AGENT_HEALTH=" + dir + "/health",
		"YEOLDA_AGENT_PROGRAM=" + dir + "/program", "YEOLDA_AGENT_CREDENTIALS=" + dir + "/credentials", "YEOLDA_AGENT_SYSTEMD=" + dir + "/systemd"}
	for _, args := range [][]string{{"preinst", "upgrade"}, {"postrm", "abort-upgrade"}} {
		c := exec.Command(filepath.Join(packaging, args[0]), args[1:]...)
		c.Env = env
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for file, want := range map[string]string{"update/trial": "", "update/previous": "proven", "update/health": "connected=yes\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v, want %q", file, text, err, want)
		}
	}
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	want := "stop yeolda-agent-trial.service\ndaemon-reload\nstart --no-block yeolda-agent-trial.service\n"
	if string(calls) != want {
		t.Errorf("got the calls\n%s\nwant\n%s", calls, want)
	}
}

// TestUpdateThatIsNotUnpacked leaves no trial of the version that continues to run.
func TestUpdateThatIsNotUnpacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, text := range map[string]string{"program": "working", "previous": "working", "trial": "", "health": ""} {
		write(t, filepath.Join(dir, file), text)
	}
	c := exec.Command(filepath.Join(packaging, "postrm"), "abort-upgrade")
	c.Env = []string{"PATH=/usr/bin:/bin", "YEOLDA_AGENT_UPDATE=" + dir, "YEOLDA_AGENT_PROGRAM=" + dir + "/program", "YEOLDA_AGENT_SYSTEMD=" + dir + "/none"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want the program only", left, err)
	}
}

// TestPurge checks that nothing remains that could open the way into a branch.
func TestPurge(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"purge", "remove", "upgrade"} {
		calls := maintainer(t, "postrm", action)
		removed := strings.Contains(calls, "rm -rf /etc/yeolda-agent /var/lib/yeolda-agent /var/lib/yeolda-agent-update\n")
		if removed != (action == "purge") {
			t.Errorf("%s: removed %v\n%s", action, removed, calls)
		}
	}
}

// TestPackageContents checks that the package contains the device rules and that all its sources exist.
func TestPackageContents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"/usr/lib/udev/rules.d/60-yeolda-agent.rules", "/usr/lib/modules-load.d/yeolda-agent.conf", "postremove: postrm",
		"/usr/share/doc/yeolda-agent/copyright",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, source := range regexp.MustCompile(`src: ([a-z0-9./-]+)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(packaging, source[1])); err != nil {
			t.Error(err)
		}
	}
}

// TestUnit checks the essential settings of the unit.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "yeolda-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Type=notify", "WatchdogSec=10", "Restart=always", "RestartSec=1", "StartLimitIntervalSec=0", "User=yeolda-agent", "DeviceAllow=char-gpiochip rw",
		"RestartSteps=6", "RestartMaxDelaySec=30", "LimitMEMLOCK=infinity", "TimeoutStopSec=20", "StateDirectory=yeolda-agent",
		"SystemCallFilter=@system-service adjtimex", "SystemCallErrorNumber=EPERM",
		"ExecStartPre=-/usr/bin/yeolda-agent check --credentials /etc/yeolda-agent/credentials",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"network-online", "PrivateDevices=yes", "Requires="} {
		if strings.Contains(string(text), never+"\n") {
			t.Errorf("unexpected %s", never)
		}
	}
}

// TestTrialIsRepeated: if a version could not be returned to, as on a full disk, the trial begins again without a boot.
func TestTrialIsRepeated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "yeolda-agent-trial.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type=oneshot", "Restart=on-failure", "RestartSec=1min", "ConditionPathExists=/var/lib/yeolda-agent-update/trial"} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}
