package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A proxy may send its own name of the service in the header Host. Browsers without Sec-Fetch-Site, and all with a WebSocket, send only
// the public origin.
func TestPublicOriginIsAccepted(t *testing.T) {
	t.Parallel()
	const public = "http://127.0.0.9:4711"
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.PublicURL = public })
	hq := s.Admin(t, "hq", "hq-demo")
	session := "JSESSIONID=" + cookie(t, s, hq, "JSESSIONID")
	for origin, accepted := range map[string]bool{
		public: true, s.Root: true, "http://127.0.0.9.evil.example:4711": false, "https://127.0.0.9:4711": false, "http://127.0.0.9:4712": false, "null": false,
	} {
		answer := s.Client(t).Send(http.MethodPost, "/account/logout", nil, http.Header{"Origin": {origin}})
		if got := answer.HTTP == http.StatusOK; got != accepted {
			t.Errorf("POST from %s: HTTP %d, want accepted: %v", origin, answer.HTTP, accepted)
		}
		conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/v2/admin/live",
			http.Header{"Origin": {origin}, "Cookie": {session}})
		if err == nil {
			conn.Close()
		}
		if response == nil {
			t.Fatalf("live updates from %s: %v", origin, err)
		}
		response.Body.Close()
		if got := response.StatusCode == http.StatusSwitchingProtocols; got != accepted {
			t.Errorf("live updates from %s: HTTP %d, want accepted: %v", origin, response.StatusCode, accepted)
		}
	}
}
