package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWalkThrough runs the script of docs/walk-through.md unchanged.
func TestWalkThrough(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk-through needs %s", tool)
		}
	}
	page, err := os.ReadFile(filepath.Join(root(), "docs", "walk-through.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```sh\n")
	if !found {
		t.Fatal("docs/walk-through.md holds no script")
	}
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
