package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeWalkThrough runs the commands of the README unchanged.
func TestReadmeWalkThrough(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk-through needs %s", tool)
		}
	}
	readme, err := os.ReadFile(filepath.Join(root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "<!-- walk-through:")
	if !found {
		t.Fatal("README.md marks no walk-through")
	}
	_, after, _ = strings.Cut(after, "```sh\n")
	script, _, _ := strings.Cut(after, "```")

	s := startStack(t, nil)
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Env = append(os.Environ(),
		"YEOLDA_HTTP_ADDR="+strings.TrimPrefix(s.Pages, "http://"),
		"YEOLDA_SANDBOX_ADDR="+strings.TrimPrefix(s.SandboxAt, "http://"),
		"YEOLDA_SIM_ADDR="+strings.TrimPrefix(s.SimAt, "http://"),
	)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "event: door-result") || !strings.Contains(text, `"status":"SUCCESS"`) {
		t.Fatalf("the walk-through did not open a door:\n%s", text)
	}
	if list := actuations(t, s, "gangnam"); len(list) != 1 || list[0].Device != "room_5" {
		t.Fatalf("actuations %+v", list)
	}
}
