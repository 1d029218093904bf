// Package chromium finds the browser that tests drive.
package chromium

import (
	"os"
	"os/exec"
	"testing"
)

// programs are the browsers that tests can use, the preferred one first. The headless shell is Chromium without what draws its
// windows: the same pages need 0.6 of the processor time. Debian's command for it is a script that cannot be killed together with
// the browser.
var programs = []string{"/usr/lib/chromium/chromium-headless-shell", "headless-shell", "chromium", "chromium-browser", "google-chrome"}

// Path returns the path of a browser, or "" if none is installed.
func Path() string {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need skips the test if no browser is installed, or fails it if E2E_REQUIRED is 1.
func Need(t testing.TB) {
	t.Helper()
	if Path() != "" {
		return
	}
	const missing = "no browser: apt-get install -y --no-install-recommends chromium fonts-noto-cjk"
	if os.Getenv("E2E_REQUIRED") == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}
