package httpapi_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestRolloutIsOfOneKind rejects a request for a version and for changed settings: neither is left out in silence.
func TestRolloutIsOfOneKind(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	newCast(t, s).HQ.Post("/v2/admin/agents/rollout", map[string]any{"version": "1.2.0", "change": map[string]any{"old": "a", "new": "b"}}).
		Fails(t, 400, "IllegalArguemntError", "바꿀 설정(change) 값은 version과 함께 보낼 수 없습니다.")
}
