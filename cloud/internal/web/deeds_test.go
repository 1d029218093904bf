package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestConsoleNamesEveryAuditAction checks that the audit screen has a name for each action that the product writes, and an
// option of its filter for each kind of action.
func TestConsoleNamesEveryAuditAction(t *testing.T) {
	t.Parallel()
	texts := read(t, "src/locales/console-ko.ts")
	options := read(t, "src/console/audit.ts")
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile(`auditGroup_([a-z-]+)`).FindAllStringSubmatch(texts, -1) {
		kinds[m[1]] = true
		if !strings.Contains(options, strconv.Quote(m[1])) {
			t.Errorf("the filter of the audit screen lacks the option %q", m[1])
		}
	}
	actions := auditActions(t, "../..", kinds)
	if len(actions) < 50 {
		t.Fatalf("the source names %d actions, want at least 50", len(actions))
	}
	for action, file := range actions {
		if !strings.Contains(texts, `"deed_`+action+`":`) {
			t.Errorf("%s writes the action %q, which has no text deed_%s", file, action, action)
		}
		if kind, _, _ := strings.Cut(action, "."); !kinds[kind] {
			t.Errorf("%s writes the action %q, which has no text auditGroup_%s", file, action, kind)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// auditActions returns the actions that the sources in dir name, each with a file: the field Action of an entry, and every
// other literal of a known kind, because helpers receive the action as an argument.
func auditActions(t *testing.T, dir string, kinds map[string]bool) map[string]string {
	t.Helper()
	shape := regexp.MustCompile(`^([a-z]+(?:-[a-z]+)*)(\.[a-z]+(-[a-z]+)*)+$`)
	found := map[string]string{}
	note := func(e ast.Expr, file string, any bool) {
		literal, ok := e.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		text, err := strconv.Unquote(literal.Value)
		if m := shape.FindStringSubmatch(text); err == nil && m != nil && (any || kinds[m[1]]) {
			found[text] = file
		}
	}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "node_modules") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.SelectorExpr); ok {
					if of, ok := called.X.(*ast.Ident); ok && (of.Name == "failpoint" || of.Name == "tracing" || of.Name == "span") {
						return false
					}
					if called.Sel.Name == "Exported" && len(n.Args) > 2 { // the name of a list, to which it adds the kind
						if list, ok := n.Args[2].(*ast.BasicLit); ok {
							found["export."+strings.Trim(list.Value, `"`)] = file
						}
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Action" {
					note(n.Value, file, true)
				}
			case ast.Expr:
				note(n, file, false)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
