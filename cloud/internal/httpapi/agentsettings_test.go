package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestAgentSettingsInTheConsole adds versions of the settings of an agent, which receives them. A change that does not know the last
// version is rejected.
func TestAgentSettingsInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	const path, text = "/v2/admin/agents/agent-gangnam/settings", "[[sensor]]\nlocation = '로비'\n"
	var list struct {
		Supported bool
		Trial     *int
		Versions  []struct {
			Version          int
			State, CreatedBy string
		}
	}
	manager.Get(path).OK(t).Into(t, &list)
	if list.Versions == nil || len(list.Versions) != 0 || list.Supported {
		t.Errorf("got %+v, want no versions, and an agent that has reported nothing", list)
	}
	states := map[string]bool{} // that consoles are notified of
	notice := func() {
		t.Helper()
		state, err := postgres.Live(t.Context(), s.DB.Pool, "gangnam", booking.Interval{Start: time.Now(), End: time.Now().Add(time.Hour)}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		states[state.Settings] = true
	}
	notice()
	manager.Put(path, map[string]any{"base": 0}).Fails(t, 400, "IllegalArguemntError", "설정(settings) 값은 필수입니다.")
	manager.Put(path, map[string]any{"settings": "a\x01", "base": 0}).Fails(t, 400, "IllegalArguemntError", "설정(settings)은 제어 문자가 없는 24KB 이하의 텍스트여야 합니다.")
	manager.Put(path, map[string]any{"settings": text, "base": 0}).OK(t)
	notice()
	manager.Put(path, map[string]any{"settings": text, "base": 0}).Fails(t, 409, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요.")
	manager.Get(path+"/2").Fails(t, 404, "ResourceNotFoundException", "해당 설정 버전을 찾을 수 없습니다.")
	var version struct{ Settings, State, CreatedBy string }
	manager.Get(path+"/1").OK(t).Into(t, &version)
	if version.Settings != text || version.State != "asked" || version.CreatedBy != "admin:gangnam-manager" {
		t.Errorf("got %+v, want the settings, asked", version)
	}
	connectAgent(t, s, "gangnam", protocol.Inventory{})
	for deadline := time.Now().Add(time.Minute); version.State != "in-use"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want in use", version)
		}
		manager.Get(path+"/1").OK(t).Into(t, &version)
	}
	notice()
	if len(states) != 3 {
		t.Errorf("got %d states %v, want one each before, while the agent is awaited, and in use", len(states), states)
	}
	manager.Get(path).OK(t).Into(t, &list)
	if len(list.Versions) != 1 || !list.Supported || list.Trial != nil {
		t.Errorf("got %+v, want one version, no trial, and an agent that takes settings", list)
	}
}
