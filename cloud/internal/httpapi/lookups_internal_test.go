package httpapi

import (
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// TestLookUpsAreBounded holds that many questions, or long answers, do not fill the memory.
func TestLookUpsAreBounded(t *testing.T) {
	t.Parallel()
	var kept lookUps
	answer, err := wire.EncodeData(strings.Repeat("x", lookUpLimit/10))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		kept.keep(lookUp{version: i % 20}, keptAnswer{Answer: answer})
	}
	size := 0
	for _, a := range kept.kept.Values() {
		size += a.bytes()
	}
	if size != kept.size || size > lookUpLimit || size < lookUpLimit/2 {
		t.Errorf("%d bytes are kept and %d counted, want at most %d", size, kept.size, lookUpLimit)
	}
	if _, ok := kept.get(lookUp{version: 9}); !ok {
		t.Error("the latest answer is not kept")
	}
	for i := range 2 * lookUpLimit / lookUpOverhead {
		kept.keep(lookUp{version: i}, keptAnswer{})
	}
	if n := kept.kept.Len(); n > lookUpLimit/lookUpOverhead || kept.size > lookUpLimit {
		t.Errorf("%d answers of %d bytes are kept", n, kept.size)
	}
}
