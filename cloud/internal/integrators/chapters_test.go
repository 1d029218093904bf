package integrators

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// chapters are the chapters for integrators, each with what its program prints in every language.
var chapters = map[string][]string{
	"start":   {`"status":"SUCCESS"`},
	"booking": {`key: [0-9a-f-]{36}`},
	"doors":   {`room: SUCCESS`, `front: SUCCESS`},
	"events":  {`last: [1-9][0-9]*`},
	"errors":  {`rejected: SettingConflictException`},
}

// also is what a program prints in some languages only.
var also = map[string]string{
	"events go": `verified`, "events ts": `verified`,
	"errors sh": `(?i)200[^\n]*\n+idempotent-replayed: true`, "errors go": `repeated: false\nheld, repeated: true`, "errors ts": `repeated: false\nheld, repeated: true`,
}

var fence = regexp.MustCompile("(?s)```(sh|go|ts)\n(.*?)```")

// programs returns the program of a chapter for each language.
func programs(t *testing.T, chapter string) map[string]string {
	t.Helper()
	text, err := cloud.Chapters.ReadFile("docs/" + chapter + ".md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		if found[block[1]] != "" {
			t.Errorf("%s has two programs in %s", chapter, block[1])
		}
		found[block[1]] = block[2]
	}
	if chapter == "start" {
		return found // curl alone
	}
	if len(found) != 3 {
		t.Fatalf("%s has programs in %d languages, want sh, go and ts", chapter, len(found))
	}
	return found
}

// TestChapters runs each program of each chapter, unchanged, against one service.
func TestChapters(t *testing.T) {
	t.Parallel()
	entries, err := cloud.Chapters.ReadDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(chapters) {
		t.Errorf("%d chapters, want %d", len(entries), len(chapters))
	}
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Webhooks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	// A program that has computed the current slot is not late if the slot ends meanwhile.
	s.Clock.Advance(-time.Minute)
	connectAgent(t, s)
	env := append(addresses(s), "YEOLDA_TOKEN="+newToken(t, s, "read", "book", "doors"), "YEOLDA_KEY="+paidKey(t, s, 6))
	run := map[string]func(*testing.T, string, ...string) string{
		"sh": func(t *testing.T, program string, env ...string) string {
			requireProgram(t, "curl")
			return runProgram(t, exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", program), env...)
		},
		"go": runGo,
		"ts": runNode,
	}
	for chapter, prints := range chapters {
		for language, program := range programs(t, chapter) {
			t.Run(chapter+" "+language, func(t *testing.T) {
				out := run[language](t, program, append(env, "RECEIVER="+freeAddr(t))...)
				for _, want := range append(prints, also[chapter+" "+language]) {
					if !regexp.MustCompile(want).MatchString(out) {
						t.Errorf("the program printed %q, want %s", out, want)
					}
				}
			})
		}
	}
}

// TestTypes checks the types of the TypeScript client, of the chapters' programs and of the examples against openapi.yaml.
func TestTypes(t *testing.T) {
	t.Parallel()
	requireModules(t)
	for chapter := range chapters {
		if programs(t, chapter)["ts"] == "" {
			continue
		}
		file := filepath.Join(typescriptDir, "generated", chapter+".ts")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(programs(t, chapter)["ts"]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runProgram(t, exec.CommandContext(t.Context(), "npm", "run", "--silent", "--prefix", typescriptDir, "typecheck"))
}

// newToken returns a token of all branches.
func newToken(t *testing.T, s *servicetest.Stack, scopes ...string) string {
	t.Helper()
	var created struct{ Token string }
	s.Admin(t, "hq", "hq-demo").Post("/v2/admin/tokens", map[string]any{"name": "integrator", "scopes": scopes}).OK(t).Into(t, &created)
	return created.Token
}

// paidKey returns the key of a reservation of a room of gangnam that is in progress.
func paidKey(t *testing.T, s *servicetest.Stack, room int) string {
	t.Helper()
	staff := s.Admin(t, "hq", "hq-demo")
	start := s.Clock.Now().Truncate(10 * time.Minute)
	local := func(at time.Time) string { return at.In(time.FixedZone("", 9*60*60)).Format("200601021504") }
	staff.Post("/admin/reservation", map[string]any{
		"branch": "gangnam", "room": room, "startDateTime": local(start), "endDateTime": local(start.Add(time.Hour)),
	}).OK(t)
	staff.Post("/admin/payment", map[string]any{"name": "홍길동", "mobileNum": "010-1234-5678"}).OK(t)
	var id int64
	if err := s.DB.Pool.QueryRow(t.Context(), `select max(id) from reservation where state = 'DONE'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return s.OwnerKey(t, id)
}

// freeAddr returns an address to listen on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
