package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const packaging = "../../../deploy/agent"

// TestExampleSettings: the file the package brings is valid, and so is all of it that is commented out.
func TestExampleSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "settings.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.ParseSettings(text); err != nil {
		t.Error(err)
	}
	// Settings are commented out without a space, prose with one. The line of the expander is another choice of relay.
	text = regexp.MustCompile(`(?m)^#relay = \{ chip.*$`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAll(text, []byte("$1"))
	s, err := config.ParseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Doors) != 1 || s.Doors[0].Exit == nil || len(s.AirConditioners) != 1 || len(s.Sensors) != 2 || s.Broker == "" {
		t.Errorf("read as %+v", s)
	}
}

// TestTrial: an update that does not run is taken back, and one that does is kept.
func TestTrial(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		active, restarts string
		want             string
	}{
		"runs":                {"0", "0", "new"},
		"started twice again": {"0", "2", "new"},
		"dies all the time":   {"0", "40", "old"},
		"does not start":      {"3", "0", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			systemctl := "#!/bin/sh\ncase $1 in show) echo " + tt.restarts + ";; is-active) exit " + tt.active + ";; *) echo \"$@\" >>" + dir + "/calls;; esac\n"
			for file, text := range map[string]string{"systemctl": systemctl, "program": "new", "previous": "old", "trial": ""} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			trial := exec.Command(filepath.Join(packaging, "trial"))
			trial.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "YEOLDA_AGENT_TRIAL=0", "YEOLDA_AGENT_STATE=" + dir, "YEOLDA_AGENT_PROGRAM=" + filepath.Join(dir, "program")}
			if out, err := trial.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			program, err := os.ReadFile(filepath.Join(dir, "program"))
			if err != nil || string(program) != tt.want {
				t.Errorf("the %s program, want the %s one (%v)", program, tt.want, err)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if restarted := bytes.Contains(calls, []byte("restart")); restarted != (tt.want == "old") {
				t.Errorf("restarted: %v", restarted)
			}
			if _, err := os.Stat(filepath.Join(dir, "trial")); err == nil {
				t.Error("it is still on trial")
			}
		})
	}
}

// TestUnit: what must never be lost from the unit.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(packaging, "yeolda-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type=notify", "WatchdogSec=10", "Restart=always", "RestartSec=1", "StartLimitIntervalSec=0", "User=yeolda-agent", "DeviceAllow=char-gpiochip rw"} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"network-online", "PrivateDevices=yes", "Requires="} {
		if strings.Contains(string(text), never+"\n") {
			t.Errorf("%s", never)
		}
	}
}
