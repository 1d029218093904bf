package cloud_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/yeolda/yeolda/cloud/internal/"

// layers are the packages of each layer, from the lowest to the highest. A package may import packages of lower layers.
var layers = [][]string{
	{"booking", "seal", "failpoint", "tracing"},
	{"audit", "door", "money", "toss", "notify", "channel", "discord", "pgserver"},
	{"postgres"},
	{"config", "queue", "limit", "grantkey"},
	{"account", "company", "gallery", "installation"},
	{"reserve", "access", "climate", "device", "franchise", "live", "idempotency", "events", "alert", "proof", "archive"},
	{"chatops", "branchfile", "partner", "enroll", "pass", "rollout", "doctor"},
	{"backoffice"},
	{"broker", "httpapi", "jobs", "web"},
	{"service"},
}

// testOnly packages are imported by tests and by the sandbox's program.
var testOnly = map[string]bool{"sandbox": true, "pgtest": true, "servicetest": true, "agenttest": true, "contract": true, "moneytest": true, "torture": true, "crowdsim": true, "attack": true, "integrators": true, "clientgen": true}

// rules forbid an import, each with its reason.
var rules = []struct{ in, imports, because string }{
	{"booking", "*", "nouns and rules are standard library only: no I/O, no clock, no wire format"},
	{"!postgres,pgtest,pgserver,service", "github.com/jackc/pgx/v5/pgconn", "SQL states are translated in package postgres"},
	{"!httpapi,web,service,servicetest,sandbox,broker,discord,toss,notify,channel,partner,enroll,events,rollout,doctor,cmd", "net/http", "transport stays at the edges"},
	{"!broker,agenttest", "github.com/mochi-mqtt/server/v2", "the broker is behind access.Link and climate.Link"},
	{"!tracing", "go.opentelemetry.io/otel/trace", "traces are package tracing's, which costs nothing while they are off"},
	{"httpapi", module + "postgres", "handlers call verbs; storage stays below them"},
	{"httpapi", "github.com/jackc/pgx/v5", "handlers call verbs; storage stays below them"},
	{"!httpapi,service,web,broker,sandbox,partner", "github.com/go-chi/chi/v5", "routing is transport"},
}

func TestImports(t *testing.T) {
	floor := map[string]int{}
	for i, layer := range layers {
		for _, name := range layer {
			floor[name] = i
		}
	}
	files := 0
	err := filepath.WalkDir("internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		name := strings.Split(filepath.ToSlash(path), "/")[1]
		if testOnly[name] {
			return nil
		}
		level, known := floor[name]
		if !known {
			t.Errorf("%s: package %s is in no layer of arch_test.go", path, name)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkRules(t, path, name, imported)
			other, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			other, _, _ = strings.Cut(other, "/")
			if testOnly[other] {
				t.Errorf("%s imports %s, which is for tests", path, other)
			} else if other != name && floor[other] >= level {
				t.Errorf("%s imports %s, which is not in a lower layer", path, other)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("found only %d files", files)
	}
}

// TestPaymentRuleHasNoDatabase holds that the payment rule and everything it depends on are free of a database driver.
func TestPaymentRuleHasNoDatabase(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./internal/reserve/rule").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.Contains(dep, "pgx") || strings.HasSuffix(dep, "internal/postgres") || dep == "database/sql" {
			t.Errorf("the payment rule depends on %s", dep)
		}
	}
}

func checkRules(t *testing.T, path, name, imported string) {
	t.Helper()
	for _, rule := range rules {
		applies := rule.in == name
		if except, ok := strings.CutPrefix(rule.in, "!"); ok {
			applies = true
			for _, allowed := range strings.Split(except, ",") {
				applies = applies && allowed != name
			}
		}
		forbidden := imported == rule.imports || rule.imports == "*" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
		if applies && forbidden {
			t.Errorf("%s imports %s: %s", path, imported, rule.because)
		}
	}
}

// TestReleasesAreStatic checks that every way to build a release has the build tag without which the encoders of photos link the
// program to the C library (package gallery).
func TestReleasesAreStatic(t *testing.T) {
	for _, name := range []string{"../Makefile", "../.goreleaser.yaml", "../deploy/Dockerfile", "../deploy/package.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "nodynamic") {
			t.Errorf("%s builds without the tag nodynamic", name)
		}
	}
}
