package contract_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

const tableFile = "../../../docs/interface-tests.md"

// TestTable checks docs/interface-tests.md, which names the test of each line of the interface: every named test exists,
// every line names one, and everything that openapi.yaml describes has a line.
func TestTable(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	sections := map[string][]string{} // heading -> the first columns of its rows
	heading := ""
	tests := testNames(t)
	rows := 0
	for i, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.Trim(name, "# `")
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| line ") || strings.HasPrefix(line, "| endpoint | what") || strings.HasPrefix(line, "| --- ") {
			continue
		}
		rows++
		columns := strings.Split(strings.Trim(line, "| "), " | ")
		sections[heading] = append(sections[heading], strings.Trim(columns[0], "`"))
		named := regexp.MustCompile("`([a-z0-9]+\\.Test[^`]*)`").FindAllStringSubmatch(columns[len(columns)-1], -1)
		if len(named) == 0 {
			t.Errorf("line %d names no test: %s", i+1, line)
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("line %d: test %s does not exist", i+1, name[1])
			}
		}
	}
	t.Logf("%d lines", rows)

	for _, o := range contract.Operations() {
		name := o.Method + " " + o.Path
		lines, own := sections[name]
		if !own {
			if !slices.Contains(sections["Additions"], name) {
				t.Errorf("%s has no line", name)
			}
			continue
		}
		for _, line := range described(o) {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: %s has no line", name, line)
			}
		}
	}
	for schema, ref := range contract.Document().Components.Schemas {
		for _, part := range ref.Value.AllOf {
			for _, property := range []string{"errorType", "message"} {
				if p := part.Value.Properties[property]; p != nil && p.Value.Const != nil && !strings.Contains(text, fmt.Sprint(p.Value.Const)) && schema != "Exists" {
					t.Errorf("the %s %q of %s has no line", property, p.Value.Const, schema)
				}
			}
		}
	}
}

// described returns the lines that an endpoint must have: the endpoint, its access level, its parameters, the fields of
// its request body and of its response data.
func described(o contract.Operation) []string {
	lines := []string{"endpoint", "access"}
	for _, p := range slices.Concat(o.Parameters, o.Item.Parameters) {
		lines = append(lines, p.Value.Name)
	}
	if o.RequestBody != nil {
		lines = append(lines, properties(o.RequestBody.Value.Content["application/json"].Schema, "", nil)...)
	}
	if ok := o.Responses.Value("200"); ok != nil && ok.Value.Content["application/json"] != nil && o.Extensions["x-envelope"] == nil {
		for _, field := range properties(ok.Value.Content["application/json"].Schema, "", nil) {
			if strings.HasPrefix(field, "data.") {
				lines = append(lines, field)
			}
		}
	}
	return lines
}

// properties returns the names of a schema's properties, nested names separated by dots.
func properties(ref *openapi3.SchemaRef, prefix string, above []*openapi3.Schema) (names []string) {
	if ref == nil || ref.Value == nil || slices.Contains(above, ref.Value) {
		return nil
	}
	above = append(slices.Clone(above), ref.Value)
	for _, part := range slices.Concat(ref.Value.AllOf, ref.Value.AnyOf, ref.Value.OneOf) {
		names = append(names, properties(part, prefix, above)...)
	}
	for name, property := range ref.Value.Properties {
		names = append(names, prefix+name)
		names = append(names, properties(property, prefix+name+".", above)...)
	}
	return append(names, properties(ref.Value.Items, prefix, above)...)
}

// testNames returns all tests below cloud/internal as package.TestName, and their named subtests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	var files []string
	for _, pattern := range []string{"../*/*_test.go", "../*/*/*_test.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		where := filepath.Base(filepath.Dir(file))
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(function.Name.Name, "Test") {
				continue
			}
			name := where + "." + function.Name.Name
			names[name] = true
			ast.Inspect(function.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 {
					selector, isMethod := call.Fun.(*ast.SelectorExpr)
					literal, isLiteral := call.Args[0].(*ast.BasicLit)
					if isMethod && isLiteral && selector.Sel.Name == "Run" {
						if part, err := strconv.Unquote(literal.Value); err == nil {
							names[name+"/"+part] = true
						}
					}
				}
				return true
			})
		}
	}
	return names
}
