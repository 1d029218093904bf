package e2e

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/capture"
)

// TestEnrolledAgent enrols the agent's own program through an ordinary HTTPS proxy as an installer does: the printed
// command connects the machine as an agent and works only once, and a revoked agent is disconnected.
func TestEnrolledAgent(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	service, err := url.Parse(s.Pages)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(service))
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	roots := filepath.Join(dir, "roots.pem")
	writeFile(t, roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})))
	program := filepath.Join(dir, "yeolda-agent")
	build := exec.Command("go", "build", "-o", program, "./agent/cmd/yeolda-agent")
	build.Dir = root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	agent := func(args ...string) *exec.Cmd {
		c := exec.Command(program, args...)
		c.Env = append(os.Environ(), "SSL_CERT_FILE="+roots)
		return c
	}

	offer, err := s.Command(t.Context(), "agent", "enroll", "jamsil")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`curl -fsS \S+/install\.sh \| sudo sh -s -- (\S+)`).FindStringSubmatch(offer)
	if command == nil {
		t.Fatalf("no command in %q", offer)
	}
	token, credentials := command[1], filepath.Join(dir, "etc", "credentials")
	if out, err := agent("enroll", "--server", proxy.URL, "--file", credentials, token[:len(token)-1]+"x").CombinedOutput(); err == nil {
		t.Errorf("a token for another server's keys was accepted: %s", out)
	}
	offer, err = s.Command(t.Context(), "agent", "enroll", "jamsil") // the first offer was consumed
	if err != nil {
		t.Fatal(err)
	}
	token = regexp.MustCompile(`sh -s -- (\S+)`).FindStringSubmatch(offer)[1]
	if out, err := agent("enroll", "--server", proxy.URL, "--file", credentials, token).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(credentials); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials: %v, %v", info, err)
	}
	if out, err := agent("enroll", "--server", proxy.URL, "--file", filepath.Join(dir, "again"), token).CombinedOutput(); err == nil || !strings.Contains(string(out), "already used") {
		t.Errorf("the token works twice: %s", out)
	}

	settings := filepath.Join(dir, "settings.toml")
	writeFile(t, settings, "")
	run := agent("run", "--settings", settings, "--credentials", credentials)
	var said capture.Output
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		if err := run.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	until(t, "connected", func() bool { return strings.Contains(said.String(), "connected to the broker") })
	text, err := os.ReadFile(credentials)
	if err != nil {
		t.Fatal(err)
	}
	username := regexp.MustCompile(`(?m)^YEOLDA_AGENT_USERNAME=(.+)$`).FindStringSubmatch(string(text))[1]
	until(t, "listed as online", func() bool { return onlineInList(t, s, username) })

	if _, err := s.Command(t.Context(), "agent", "revoke", username); err != nil {
		t.Fatal(err)
	}
	until(t, "cut off", func() bool {
		return strings.Contains(said.String(), "the broker ended the connection with reason 0x87")
	}) // reason 0x87: not authorized
	until(t, "listed as offline", func() bool { return !onlineInList(t, s, username) })
	if password := regexp.MustCompile(`(?m)^YEOLDA_AGENT_PASSWORD=(.+)$`).FindStringSubmatch(string(text))[1]; strings.Contains(said.String(), password) {
		t.Error("the agent logs its password")
	}
}

// onlineInList reports whether `yeolda agent list` shows the agent of a branch as online.
func onlineInList(t *testing.T, s *world.Stack, username string) bool {
	t.Helper()
	list, err := s.Command(t.Context(), "agent", "list")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(username) + `\s.*\byes\b`).MatchString(list)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
