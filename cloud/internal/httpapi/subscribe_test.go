package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// By default a subscriber waits seven seconds from the subscription. If an EventSource has received the result and reconnects
// automatically, the answer 204 stops it.
func TestSevenSeconds(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.StandaloneKeypads(t)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{})
	waitOnline(t, a)
	a.Fail(agenttest.Faults{Silent: true})
	admin := s.Admin(t, "gangnam-manager", "gangnam-demo")
	path := "/admin/door/v2/unlock/subscribe?requestId=" + requestID(t, admin, adminUnlock+"gangnam/front", nil)
	began := time.Now()
	says(t, "nothing is heard", admin.Get(path), reply{503, "AsyncRequestTimeoutException", "요청 시간이 초과되었습니다."})
	if took := time.Since(began); took < 7*time.Second {
		t.Errorf("answered after %s, want 7s", took)
	}
	eventually(t, "the request has ended", func() bool { // a subscription before waits for a report again
		return only(t, s, `select state::text from door_request`) == "UNKNOWN"
	})
	answer := admin.Send("GET", path, nil, nil)
	event := answer.Event(t)
	if event.Status != "TIMEOUT" || *event.Device != "front" || event.FailoverKey == nil {
		t.Errorf("afterwards %+v", event)
	}
	id := path[len("/admin/door/v2/unlock/subscribe?requestId="):]
	if again := admin.Send("GET", path, nil, http.Header{"Last-Event-Id": {id}}); again.HTTP != 204 || len(again.Raw) != 0 {
		t.Errorf("again: %d %s", again.HTTP, again.Raw)
	}
}
