package httpapi_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

// TestMain checks after all tests that every answer that openapi.yaml describes for the interface has occurred. Additions
// for pages are tested in the browser.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["test.parallel"] {
		_ = flag.Set("test.parallel", "4") // the tests mostly wait for databases, doors and deadlines
	}
	code := m.Run()
	if !given["test.run"] && !given["test.skip"] && !given["test.list"] && !testing.Short() && code == 0 {
		if unseen := contract.Uncovered(); len(unseen) > 0 {
			fmt.Printf("FAIL: openapi.yaml describes answers that no test has seen:\n  %s\n", strings.Join(unseen, "\n  "))
			code = 1
		}
	}
	os.Exit(code)
}
