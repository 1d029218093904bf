package check

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/proof/record"
)

func TestTry(t *testing.T) {
	text, err := os.ReadFile("/tmp/p/record.json")
	if err != nil {
		t.Skip(err)
	}
	var r record.Record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range All(&r) {
		t.Logf("%-4s %6d observed %3d violated  %s", c.ID, c.Observations, c.Violations, c.Rule)
		for _, e := range c.Examples {
			t.Log("        ", e)
		}
	}
}
