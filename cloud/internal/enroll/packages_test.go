package enroll_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/enroll"
)

// TestPackages holds that a service provides the signed package of its own version only under the short name, and no other file.
func TestPackages(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	folder := filepath.Join(parent, "agent")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"yeolda-agent_1.2.0_arm64.deb": "fits", "yeolda-agent_1.2.0_arm64.deb.sig": "1.2.0 signature",
		"yeolda-agent_1.3.0_arm64.deb": "newer", "yeolda-agent_1.3.0_arm64.deb.sig": "1.3.0 signature",
		"yeolda-agent_1.2.0_armhf.deb": "unsigned", "yeolda-agent_1.2.0.json": "{}", "secret.key": "secret", "../outside.deb": "outside",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside.deb", filepath.Join(folder, "yeolda-agent_1.2.0_riscv64.deb")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		version, file string
		status        int
		body          string
	}{
		"the package that fits":   {"1.2.0", "yeolda-agent_arm64.deb", 200, "fits"},
		"its signature":           {"v1.2.0", "yeolda-agent_arm64.deb.sig", 200, "1.2.0 signature"},
		"another version by name": {"1.2.0", "yeolda-agent_1.3.0_arm64.deb", 200, "newer"},
		"the manifest":            {"1.2.0", "yeolda-agent_1.2.0.json", 200, "{}"},
		"no such architecture":    {"1.2.0", "yeolda-agent_amd64.deb", 404, "of version 1.2.0 for amd64 in its YEOLDA_AGENT_FOLDER"},
		"not signed":              {"1.2.0", "yeolda-agent_armhf.deb", 404, "no signature of the agent's package of version 1.2.0"},
		"no such version":         {"1.4.0", "yeolda-agent_arm64.deb", 404, "of version 1.4.0 for arm64"},
		"another file":            {"1.2.0", "secret.key", 404, "no such file"},
		"outside the folder":      {"1.2.0", "../outside.deb", 404, "no such file"},
		"a link that leads out":   {"1.2.0", "yeolda-agent_1.2.0_riscv64.deb", 404, "no such file"},
		"an absent named version": {"1.2.0", "yeolda-agent_9_arm64.deb", 404, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			p := &enroll.Packages{Folder: folder, Version: tt.version}
			p.Serve(w, httptest.NewRequest(http.MethodGet, "/packages/"+tt.file, nil), tt.file)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, tt.status, tt.body)
			}
		})
	}
	w := httptest.NewRecorder()
	(&enroll.Packages{Folder: filepath.Join(parent, "none"), Version: "1.2.0"}).Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), "yeolda-agent_arm64.deb")
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no package of the agent of version 1.2.0 for arm64") {
		t.Errorf("without a folder: got %d %q, want 404 and the missing package", w.Code, w.Body)
	}
}
