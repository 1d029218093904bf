package integrators

import (
	"crypto/ed25519"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// typescriptDir holds the TypeScript client and, after npm install, what programs that use it import.
const typescriptDir = "../../client/typescript"

// require skips the test unless a program or file exists; with E2E_REQUIRED=1 it fails instead.
func require(t *testing.T, exists bool, missing string) {
	t.Helper()
	if exists {
		return
	}
	if os.Getenv("E2E_REQUIRED") == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// requireProgram skips the test unless a program is installed.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	require(t, err == nil, "no "+name)
}

// runNode runs a TypeScript program with Node and returns what it printed. A program that imports the
// TypeScript client ("yeolda") is skipped unless its modules are installed.
func runNode(t *testing.T, program string, env ...string) string {
	t.Helper()
	requireProgram(t, "node")
	if strings.Contains(program, `from "yeolda"`) {
		requireModules(t)
	}
	dir, err := filepath.Abs(typescriptDir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program.mjs")
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: program, ResolveDir: dir, Loader: api.LoaderTS},
		Alias:  map[string]string{"yeolda": dir},
		Bundle: true, Format: api.FormatESModule, Platform: api.PlatformNode, Target: api.ES2022, Outfile: file, Write: true,
	})
	for _, problem := range built.Errors {
		t.Fatalf("the program does not build: %+v", problem)
	}
	return runProgram(t, exec.CommandContext(t.Context(), "node", file), env...)
}

// runGo runs a Go program that may import the packages of this module, and returns what it printed.
func runGo(t *testing.T, program string, env ...string) string {
	t.Helper()
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	runProgram(t, exec.CommandContext(t.Context(), "go", "build", "-o", binary, source))
	return runProgram(t, exec.CommandContext(t.Context(), binary), env...)
}

// requireModules skips the test unless the modules of the TypeScript client are installed.
func requireModules(t *testing.T) {
	t.Helper()
	requireProgram(t, "npm")
	_, err := os.Stat(filepath.Join(typescriptDir, "node_modules", "openapi-fetch"))
	require(t, err == nil, "no openapi-fetch: run npm install in cloud/client/typescript")
}

// runProgram runs a program and returns what it printed.
func runProgram(t *testing.T, command *exec.Cmd, env ...string) string {
	t.Helper()
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// connectAgent connects the agent of gangnam.
func connectAgent(t *testing.T, s *servicetest.Stack) *agenttest.Agent {
	t.Helper()
	keys, err := config.Settings{Secrets: config.Secrets{Mode: config.ModeDemo}}.Effective().GrantKeys()
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Connect(t, agenttest.Config{
		Branch: "gangnam", Dial: agenttest.TCP(s.MQTT), Keys: []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)},
	})
}

// addresses returns the environment with which programs find the service and its sandbox.
func addresses(s *servicetest.Stack) []string {
	return []string{"YEOLDA_URL=" + s.Root, "YEOLDA_SANDBOX_URL=http://" + s.Settings.Sandbox.Addr}
}
