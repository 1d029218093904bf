package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/protocol"
)

// TestAgentReleaseCommands makes a key and signs two packages. The signature holds for the version, the architecture and the
// content, and only with this key.
func TestAgentReleaseCommands(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	key, arm, amd := filepath.Join(dir, "key"), filepath.Join(dir, "yeolda-agent_1.2.0_arm64.deb"), filepath.Join(dir, "yeolda-agent_1.2.0_amd64.deb")
	for _, file := range []string{arm, amd} {
		if err := os.WriteFile(file, debianPackage(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public, err := protocol.ParseKey(strings.TrimSpace(s.ok("agent", "release", "key", key)))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v, want mode 0600", info, err)
	}
	if out := s.ok("agent", "release", "sign", "--key", key, arm, amd); !strings.Contains(out, "2 packages of version 1.2.0 signed") {
		t.Errorf("got %s", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "yeolda-agent_1.2.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	var update protocol.Update
	if err := json.Unmarshal(text, &update); err != nil {
		t.Fatal(err)
	}
	p, ok := update.For("arm64")
	if !ok || p.URL != "yeolda-agent_1.2.0_arm64.deb" || p.Verify("1.2.0", public) != nil {
		t.Errorf("got %+v, want a valid signature", p)
	}
	if sig, err := os.ReadFile(arm + ".sig"); err != nil || string(sig) != "1.2.0 "+p.Signature+"\n" {
		t.Errorf("signature beside the package: %q, %v, want that of the manifest", sig, err)
	}
	other := p
	other.Architecture = "armhf"
	if p.Verify("1.2.1", public) == nil || other.Verify("1.2.0", public) == nil {
		t.Error("the signature holds for another version or architecture")
	}
	misnamed := filepath.Join(dir, "agent.deb")
	later := filepath.Join(dir, "yeolda-agent_1.3.0_arm64.deb")
	part, empty := filepath.Join(dir, "yeolda-agent_1.4.0_arm64.deb"), filepath.Join(dir, "yeolda-agent_1.5.0_arm64.deb")
	whole := debianPackage("later")
	for file, content := range map[string][]byte{misnamed: whole, later: whole, part: whole[:len(whole)-2], empty: nil} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"an existing key":          {"agent", "release", "key", key},
		"a file that is not a key": {"agent", "release", "sign", "--key", arm, arm},
		"a package without a name": {"agent", "release", "sign", "--key", key, misnamed},
		"two versions":             {"agent", "release", "sign", "--key", key, arm, later},
		"part of a package":        {"agent", "release", "sign", "--key", key, part},
		"an empty file":            {"agent", "release", "sign", "--key", key, empty},
		"one package twice":        {"agent", "release", "sign", "--key", key, arm, arm},
	} {
		if _, errOut, code := s.run("", args...); code != 1 || errOut == "" {
			t.Errorf("%s: exit code %d, %q, want 1 and a reason", name, code, errOut)
		}
	}
}

// debianPackage returns an archive as that of a Debian package, with one member.
func debianPackage(content string) []byte {
	text := fmt.Sprintf("!<arch>\n%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", "debian-binary", 0, 0, 0, "100644", len(content), content)
	if len(content)%2 == 1 {
		text += "\n"
	}
	return []byte(text)
}
