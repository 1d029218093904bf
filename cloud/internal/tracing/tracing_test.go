package tracing

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

// TestOffCostsNothing checks that no memory is allocated and no trace begun.
func TestOffCostsNothing(t *testing.T) {
	ctx, id := t.Context(), uuid.New()
	if n := testing.AllocsPerRun(1000, func() {
		ctx, root := Root(ctx, "root")
		ctx, part := Part(ctx, "part")
		_, door := Door(ctx, id, "door")
		door.Set("key", "value")
		door.End(nil)
		part.End(context.Canceled)
		root.Name("other")
		root.End(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if On() || RequestID(ctx) == RequestID(ctx) { //nolint:staticcheck // without a trace each call makes another
		t.Error("something is traced")
	}
}

// TestIDs checks that trace ids can be ids of door requests and identify their root.
func TestIDs(t *testing.T) {
	t.Parallel()
	trace, root := ids{}.NewIDs(t.Context())
	if id := uuid.UUID(trace); id.Version() != 4 || id.Variant() != uuid.RFC4122 || root != rootOf(id) || !root.IsValid() {
		t.Errorf("trace %s, root %s", trace, root)
	}
	if a, b := (ids{}).NewSpanID(t.Context(), trace), (ids{}).NewSpanID(t.Context(), trace); a == b || a == root {
		t.Errorf("spans %s, %s", a, b)
	}
}
