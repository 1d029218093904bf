package main

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

var update = flag.Bool("update", false, "write golden files")

// asCommand is the variable of the environment with which the test program is `yeolda`, for tests that need a process of its own.
const asCommand = "YEOLDA_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m,
		// scs.New creates a store in memory before it is replaced by ours.
		goleak.IgnoreTopFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"))
}

// shell runs commands against a database of the test's own. Commands read the environment, so tests are not parallel.
type shell struct{ *testing.T }

func newShell(t *testing.T) shell {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "YEOLDA_") && !strings.HasPrefix(name, "YEOLDA_TEST_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("YEOLDA_MODE", "demo")
	t.Setenv("SUDO_USER", "tester")
	t.Setenv("COLUMNS", "100")
	return shell{t}
}

func (s shell) withDatabase() shell {
	s.Helper()
	s.Setenv("YEOLDA_DATABASE_URL", pgtest.URL(s.T))
	return s
}

// run returns what a command said and its exit code.
func (s shell) run(input string, args ...string) (out, errOut string, code int) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	code = run(context.WithoutCancel(s.Context()), args, strings.NewReader(input), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// ok runs a command that must succeed.
func (s shell) ok(args ...string) string {
	s.Helper()
	out, errOut, code := s.run("", args...)
	if code != 0 {
		s.Fatalf("yeolda %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// transcript is what a person would see, with what differs from run to run blotted out.
func (s shell) transcript(name string, steps ...[]string) {
	s.Helper()
	var text strings.Builder
	for _, args := range steps {
		input := ""
		if len(args) > 0 && strings.HasPrefix(args[0], "<") {
			input, args = args[0][1:], args[1:]
		}
		out, errOut, code := s.run(input, args...)
		text.WriteString("$ yeolda " + strings.Join(args, " ") + "\n" + out + errOut)
		if code != 0 {
			text.WriteString("[exit code " + string(rune('0'+code)) + "]\n")
		}
		text.WriteString("\n")
	}
	golden(s.T, name, blot(text.String()))
}

var blots = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`agent-([a-z]+)-[a-z2-7]{8}\b`), "agent-$1-xxxxxxxx"},
	{regexp.MustCompile(`sh -s -- [A-Z2-7]{26}\.[A-Za-z0-9_-]{22}`), "sh -s -- <26 letters>.<22 letters>"},
	{regexp.MustCompile(`PASSWORD=[A-Z2-7]{26}`), "PASSWORD=<26 letters>"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2} \d{2}:\d{2}`), "<date and time>"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{43}=`), "<key, 43 letters and =>                      "},
	{regexp.MustCompile(`postgres://\S+`), "<database>"},
	{regexp.MustCompile(`PostgreSQL \d+\.\d+.*`), "PostgreSQL <version>"},
	{regexp.MustCompile(`today( +)(available|holiday|closed).*`), "today$1<status>"},
	{regexp.MustCompile(`(warn|FAIL)  database     (fsync|full_page_writes|synchronous_commit) is off.*\n.*\n`), ""}, // of the server tests run on
	{regexp.MustCompile(`(ok  |warn|FAIL)  disk         .*\n( +→.*\n)?`), "ok    disk         <space>\n"},
	{regexp.MustCompile(`holidays of \d+`), "holidays of <year>"},
	{regexp.MustCompile(`migration \d+`), "migration <number>"},
	{regexp.MustCompile(os.TempDir() + `\S*/`), "<dir>/"},
}

func blot(text string) string {
	for _, b := range blots {
		text = b.pattern.ReplaceAllString(text, b.by)
	}
	// Columns are as wide as what was blotted out.
	return regexp.MustCompile(`(<[^>\n]+>|x{8}) {2,}`).ReplaceAllString(text, "$1  ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const demoFile = "../../../deploy/demo/branches.yaml"

func TestHelp(t *testing.T) {
	s := newShell(t)
	s.transcript("help", []string{"--help"}, []string{"serve", "--help"}, []string{"branch", "apply", "--help"}, []string{"admin", "add", "--help"},
		[]string{}, []string{"serf"}, []string{"branch", "apply"}, []string{"branch", "apply", "-f", "no.yaml", "--froce"})
}

func TestConfigCommand(t *testing.T) {
	s := newShell(t)
	t.Setenv("YEOLDA_HTTP_ADDR", "0.0.0.0:8080")
	t.Setenv("YEOLDA_TOSS_API_SECRET_KEY", "live_sk_not_to_be_seen")
	s.transcript("config", []string{"config"}, []string{"config", "--http-addr=127.0.0.1:8081", "--log-level=loud"}, []string{"serve"}, []string{"version"})
}

// complete returns an environment that production accepts.
func complete() map[string]string {
	return map[string]string{
		"YEOLDA_ENCRYPTION_KEY": seal.NewKey(), "YEOLDA_GRANT_KEY": seal.NewKey(),
		"YEOLDA_PUBLIC_URL": "https://rooms.example", "YEOLDA_TRUSTED_PROXIES": "127.0.0.1/32",
		"YEOLDA_TOSS_URL": "https://api.tosspayments.com", "YEOLDA_TOSS_CLIENT_KEY": "live_gck_x",
		"YEOLDA_TOSS_WIDGET_SECRET_KEY": "live_gsk_x", "YEOLDA_TOSS_API_SECRET_KEY": "live_sk_x",
		"YEOLDA_SOLAPI_API_KEY": "key", "YEOLDA_SOLAPI_API_SECRET": "secret", "YEOLDA_SOLAPI_SENDER": "021234567", "YEOLDA_SMTP_URL": "off",
	}
}

// TestServeNamesMissingSettings starts the service in production without each required setting, without each two of them, and
// without all. TestProductionNamesEveryMissingSetting checks all subsets with the function that decides.
func TestServeNamesMissingSettings(t *testing.T) {
	s := newShell(t)
	t.Setenv("YEOLDA_MODE", "") // production is the default
	variables := slices.Sorted(maps.Keys(complete()))
	for i, first := range variables {
		for _, second := range variables[i:] {
			for name, value := range complete() {
				if name == first || name == second {
					value = ""
				}
				t.Setenv(name, value)
			}
			want := slices.Compact([]string{first, second})
			if first == "YEOLDA_PUBLIC_URL" && second == "YEOLDA_TRUSTED_PROXIES" { // a proxy is recognised by the public URL
				want = want[:1]
			}
			_, errOut, code := s.run("", "serve")
			if code != exitUsage || strings.Count(errOut, "\n") != len(want) {
				t.Errorf("serve without %v: exit code %d, want %d and a line for each: %s", want, code, exitUsage, errOut)
			}
			for _, variable := range want {
				if !regexp.MustCompile(`(?m)^yeolda: ` + variable + ": ").MatchString(errOut) {
					t.Errorf("serve without %v does not name %s: %s", want, variable, errOut)
				}
			}
		}
	}
	for _, variable := range variables {
		t.Setenv(variable, "")
	}
	s.transcript("production", []string{"serve"}, []string{"config"}, []string{"branch", "apply", "-f", demoFile})
}

func TestBranchCommands(t *testing.T) {
	s := newShell(t).withDatabase()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("branches:\n  - code: a\n    adress: x\n"), 0o600); err != nil { //nolint:misspell // on purpose
		t.Fatal(err)
	}
	s.transcript("branch",
		[]string{"branch", "list"},
		[]string{"branch", "apply", "-f", demoFile, "--dry-run"},
		[]string{"branch", "list"},
		[]string{"branch", "apply", "-f", demoFile},
		[]string{"branch", "apply", "-f", demoFile},
		[]string{"branch", "list"},
		[]string{"branch", "show", "hongdae"},
		[]string{"branch", "show", "busan"},
		[]string{"branch", "apply", "-f", bad},
		[]string{"branch", "apply", "-f", "nowhere.yaml"},
		[]string{"<branches: [{code: b, name: {ko: 나, en: B}, rooms: [{no: 1, enabled: false}]}]\n", "branch", "apply", "-f", "-"},
		[]string{"branch", "show", "b"},
	)
}

func TestAdminCommands(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	const password = "<correct horse battery\n"
	s.transcript("admin",
		[]string{password, "admin", "add", "minsu", "--branch=gangnam,jamsil", "--password-stdin"},
		[]string{password, "admin", "add", "minsu", "--branch=gangnam", "--password-stdin"},
		[]string{password, "admin", "add", "boss", "--role=hq", "--password-stdin"},
		[]string{password, "admin", "add", "jiwoo", "--role=viewer", "--password-stdin"},
		[]string{password, "admin", "add", "jiwoo", "--branch=busan", "--password-stdin"},
		[]string{password, "admin", "add", "Ji Woo", "--branch=gangnam", "--password-stdin"},
		[]string{"<short\n", "admin", "add", "jiwoo", "--branch=gangnam", "--password-stdin"},
		[]string{"admin", "add", "jiwoo", "--branch=gangnam"},
		[]string{"admin", "list"},
		[]string{password, "admin", "passwd", "hq", "--password-stdin"},
		[]string{"admin", "disable", "minsu"},
		[]string{"admin", "list"},
		[]string{"admin", "enable", "minsu"},
		[]string{"admin", "remove", "minsu"},
		[]string{"admin", "disable", "boss"},
		[]string{"admin", "disable", "hq"},
		[]string{"admin", "remove", "hq"},
		[]string{"admin", "remove", "boss"},
		[]string{"admin", "list"},
	)
}

func TestAgentCommands(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	file := filepath.Join(t.TempDir(), "agent.env")
	s.transcript("agent",
		[]string{"agent", "enroll", "gangnam"},
		[]string{"agent", "enroll", "gangnam", "--show"},
		[]string{"agent", "enroll", "jamsil", "--file", file},
		[]string{"agent", "enroll", "jamsil", "--file", file},
		[]string{"agent", "enroll", "busan"},
		[]string{"agent", "enroll", "gangnam", "--show", "--replace=agent-hongdae"},
		[]string{"agent", "revoke", "agent-hongdae"},
		[]string{"agent", "revoke", "agent-busan"},
		[]string{"<# the hall\n", "agent", "settings", "set", "agent-gangnam", "-"},
		[]string{"<# the hall\n", "agent", "settings", "set", "agent-gangnam", "-", "--base=0"},
		[]string{"<# the hall, again\n", "agent", "settings", "set", "agent-gangnam", "-", "--base=1"},
		[]string{"<\n\x00", "agent", "settings", "set", "agent-gangnam", "-"},
		[]string{"<x\n", "agent", "settings", "set", "agent-busan", "-"},
		[]string{"agent", "settings", "list", "agent-gangnam"},
		[]string{"agent", "settings", "replace", "hall", "lobby"},
		[]string{"agent", "settings", "replace", "", "lobby"},
		[]string{"agent", "settings", "show", "agent-gangnam"},
		[]string{"agent", "settings", "show", "agent-gangnam", "--version=1"},
		[]string{"agent", "settings", "show", "agent-gangnam", "--version=9"},
		[]string{"agent", "logs", "agent-gangnam", "--wait=0s"},
		[]string{"agent", "logs", "agent-busan"},
		[]string{"agent", "doctor", "agent-gangnam", "--wait=0s"},
		[]string{"agent", "doctor", "agent-gangnam", "--wait=10ms"},
		[]string{"agent", "logs", "agent-gangnam", "--close"},
		[]string{"agent", "logs", "agent-busan", "--close"},
		[]string{"agent", "rollout", "--resume"},
		[]string{"agent", "rollout", "--stop"},
		[]string{"agent", "rollout", "1.2.0", "--resume"},
		[]string{"agent", "list"},
		[]string{"agent", "acl"},
		[]string{"agent", "acl", "--service"},
	)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credential file %v, %v", info, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^YEOLDA_AGENT_USERNAME=agent-jamsil-[a-z2-7]{8}\nYEOLDA_AGENT_PASSWORD=[A-Z2-7]{26}$`).Match(content) {
		t.Errorf("credential file:\n%s", content)
	}
}

func TestAgentKeysCommands(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	s.transcript("agent-keys",
		[]string{"agent", "keys", "list"},
		[]string{"agent", "keys", "finish"},
		[]string{"agent", "keys", "rotate"},
		[]string{"agent", "keys", "rotate"},
		[]string{"agent", "keys", "list"},
		[]string{"agent", "keys", "finish"},
		[]string{"agent", "keys", "list"},
		[]string{"agent", "keys", "rotate", "--encryption-key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
	)
}

func TestDoctorCommand(t *testing.T) {
	s := newShell(t)
	t.Setenv("YEOLDA_DATA_DIR", t.TempDir())
	t.Setenv("YEOLDA_HTPP_ADDR", "127.0.0.1:1")
	s.transcript("doctor-new", []string{"doctor", "--offline"})

	t.Setenv("YEOLDA_HTPP_ADDR", "")
	s = s.withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	s.transcript("doctor", []string{"doctor", "--offline"}, []string{"doctor", "--offline", "--backups=off", "--http-addr=0.0.0.0:8080", "--public-url=http://yeolda.example"},
		[]string{"doctor", "--offline", "--encryption-key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})

	t.Setenv("YEOLDA_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	out, _, code := s.run("", "doctor", "--offline")
	if code != 1 || !strings.Contains(out, "FAIL  database") {
		t.Errorf("an unreachable database: %d\n%s", code, out)
	}
}

func TestHealthcheckCommand(t *testing.T) {
	s := newShell(t)
	if _, errOut, code := s.run("", "healthcheck", "--metrics-addr=127.0.0.1:1"); code != 1 || errOut == "" {
		t.Errorf("without a service: exit code %d %s, want 1 and a message", code, errOut)
	}
}

// defect is a writer with a defect.
type defect struct{}

func (defect) Write([]byte) (int, error) { panic("a defect") }

// TestPanicIsAFailure checks that a command that ends with a panic does not look like one that succeeded.
func TestPanicIsAFailure(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"version"}, nil, defect{}, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "internal error: a defect") {
		t.Errorf("got exit code %d and %q, want %d and the defect", code, stderr.String(), exitFailed)
	}
}
