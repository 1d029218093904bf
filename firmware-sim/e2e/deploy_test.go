package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tool runs an installed program on files of the repository. If the program is not installed, it skips the test.
func tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	command := exec.Command(path, args...)
	command.Dir, command.Env = filepath.Join(root(), "deploy"), append(os.Environ(), env...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, problems.String())
	}
	return string(out) + problems.String()
}

// TestDeployFiles validates the files of deploy/ with the program of each format.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	t.Run("kubernetes", func(t *testing.T) {
		t.Parallel()
		out := tool(t, nil, "kubectl", "kustomize", "kubernetes")
		for _, want := range []string{"kind: Deployment", "kind: Cluster", "kind: StatefulSet", "kind: Gateway", "kind: HTTPRoute", "replicas: 2", "readOnlyRootFilesystem: true",
			"EMQX_DASHBOARD__DEFAULT_PASSWORD", "value: verify-full", "verify = verify_peer"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %s", want)
			}
		}
		if strings.Contains(out, "verify_none") {
			t.Error("a connection does not verify the certificate of the database")
		}
	})
	t.Run("caddy", func(t *testing.T) {
		t.Parallel()
		tool(t, []string{"YEOLDA_DOMAIN=rooms.example", "YEOLDA_REPLICAS=a:8080 b:8080", "HOME=" + t.TempDir()},
			"caddy", "validate", "--config", "caddy/Caddyfile", "--adapter", "caddyfile")
	})
	t.Run("systemd", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		for _, name := range []string{"yeolda.service", "yeolda-backup.service", "yeolda-backup.timer"} {
			unit, err := os.ReadFile(filepath.Join(root(), "deploy/systemd", name))
			if err != nil {
				t.Fatal(err)
			}
			// The programs of the units are not installed here; the rest of the unit is unchanged.
			text := strings.NewReplacer("/usr/bin/yeolda ", "/bin/true ", "/usr/lib/yeolda/backup.sh", "/bin/true").Replace(string(unit))
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out := tool(t, nil, "systemd-analyze", "verify", filepath.Join(dir, "yeolda.service"), filepath.Join(dir, "yeolda-backup.service"), filepath.Join(dir, "yeolda-backup.timer"))
		if strings.TrimSpace(out) != "" {
			t.Error(out)
		}
	})
	t.Run("exposure of the units", func(t *testing.T) {
		t.Parallel()
		// The units of the agent's updates are missing: the scripts of a package may change anything.
		for _, unit := range []string{"systemd/yeolda.service", "systemd/yeolda-backup.service", "agent/yeolda-agent.service"} {
			tool(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=25", unit) // 2.5 of 10
		}
	})
	t.Run("compose's secrets", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "compose")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root(), "deploy/compose"))); err != nil {
			t.Fatal(err)
		}
		tool(t, nil, "sh", filepath.Join(dir, "prepare.sh"))
		first, err := os.ReadFile(filepath.Join(dir, "secrets/encryption_key"))
		if err != nil || len(first) != 44 {
			t.Fatalf("encryption key of %d letters, %v", len(first), err)
		}
		tool(t, nil, "sh", filepath.Join(dir, "prepare.sh"))
		if again, _ := os.ReadFile(filepath.Join(dir, "secrets/encryption_key")); !bytes.Equal(first, again) {
			t.Error("an existing key was replaced")
		}
	})
}

// TestImagesAreNamedByDigest refuses an image by tag. Those of our own that compose.yaml builds from the checkout have none.
func TestImagesAreNamedByDigest(t *testing.T) {
	t.Parallel()
	image := regexp.MustCompile(`(?m)^\s*(?:-\s+)?(?:image:|imageName:|FROM(?: --platform=\S+)?)\s+(\S+)(?: AS (\S+))?`)
	digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	found := 0
	err := filepath.WalkDir(filepath.Join(root(), "deploy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") && filepath.Base(path) != "Dockerfile" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range image.FindAllSubmatch(text, -1) {
			name := string(match[1])
			own := name == "yeolda" || strings.HasPrefix(name, "yeolda:${") || strings.HasPrefix(name, "yeolda-tools:${")
			if !own && !digest.MatchString(name) {
				t.Errorf("%s: %s has no digest", path, name)
			}
			found++
		}
		if bytes.Contains(text, []byte("newTag")) {
			t.Errorf("%s: an image by tag", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("only %d images were found", found)
	}
}

// TestBackupScript checks that the script keeps the newest backups and that it deletes none after a failure.
func TestBackupScript(t *testing.T) {
	t.Parallel()
	programs, backups := t.TempDir(), t.TempDir()
	fake := "#!/bin/sh\n[ -e " + programs + "/broken ] && exit 1\necho backup > \"$2\"\n"
	if err := os.WriteFile(filepath.Join(programs, "yeolda"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{"20200101T000000Z", "20200102T000000Z", "20200103T000000Z"} {
		if err := os.WriteFile(filepath.Join(backups, "yeolda-"+old+".dump"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(backups, "yeolda-20200104T000000Z.dump.123.part")
	if err := os.WriteFile(killed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(killed, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	running := filepath.Join(backups, "yeolda-20200105T000000Z.dump.124.part")
	if err := os.WriteFile(running, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() error {
		command := exec.Command("sh", filepath.Join(root(), "deploy/backup.sh"), backups, "2")
		command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		return command.Run()
	}
	if err := os.WriteFile(filepath.Join(programs, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Error("no error for a backup that failed")
	}
	if left, _ := filepath.Glob(filepath.Join(backups, "*.dump")); len(left) != 3 {
		t.Fatalf("after a failure: %v", left)
	}
	if err := os.Remove(filepath.Join(programs, "broken")); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(backups, "*.part")); len(left) != 1 || left[0] != running {
		t.Errorf("parts: got %v, want that of the running backup only", left)
	}
	left, _ := filepath.Glob(filepath.Join(backups, "*.dump"))
	if len(left) != 2 || !strings.HasSuffix(left[0], "yeolda-20200103T000000Z.dump") {
		t.Errorf("left: %v", left)
	}
}
