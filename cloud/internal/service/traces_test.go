package service_test

import (
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// spans is what a collector received.
type spans struct {
	mu  sync.Mutex
	all []*wire.Span
}

// ServeHTTP takes spans by OTLP over HTTP.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// of returns the spans of a trace by their names.
func (s *spans) of(trace uuid.UUID) map[string][]*wire.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[string][]*wire.Span)
	for _, span := range s.all {
		if string(span.TraceId) == string(trace[:]) {
			found[span.Name] = append(found[span.Name], span)
		}
	}
	return found
}

// TestOneDoorOneTrace checks the trace from the request to the report, under the id that service, agent and their logs use.
// It runs alone, because the process has one exporter of traces.
func TestOneDoorOneTrace(t *testing.T) {
	var got spans
	receiver := httptest.NewServer(&got)
	t.Cleanup(receiver.Close)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	s := servicetest.Start(t, func(settings *config.Settings) { settings.Traces.URL = receiver.URL })
	keys, err := s.Settings.GrantKeys()
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(s.MQTT), Keys: []ed25519.PublicKey{keys[0].Public().(ed25519.PublicKey)}})
	hq := s.Admin(t, "hq", "hq-demo")
	var asked struct{ RequestID uuid.UUID }
	hq.Post("/admin/door/v2/unlock/gangnam/front", nil).OK(t).Into(t, &asked)
	if e := hq.Send("GET", "/admin/door/v2/unlock/subscribe?requestId="+asked.RequestID.String(), nil, nil).Event(t); e.Status != "SUCCESS" {
		t.Fatalf("%+v", e)
	}
	const post = "POST /api/admin/door/v2/unlock/{branch}/{doorType}"
	want := []string{post, "db", "door.ask", "door.claim", "door.grant", "door.result"}
	var trace map[string][]*wire.Span
	deadline := time.Now().Add(time.Minute)
	for missing := true; missing; time.Sleep(10 * time.Millisecond) { // spans come in batches
		trace = got.of(asked.RequestID)
		missing = slices.ContainsFunc(want, func(name string) bool { return trace[name] == nil })
		if missing && time.Now().After(deadline) {
			t.Fatalf("spans of the trace: %v", trace)
		}
	}
	root := trace[post][0]
	if len(root.ParentSpanId) != 0 || string(root.SpanId) != string(asked.RequestID[:8]) {
		t.Errorf("root %v", root)
	}
	for _, name := range []string{"door.ask", "door.claim", "door.result"} {
		if span := trace[name][0]; string(span.ParentSpanId) != string(root.SpanId) {
			t.Errorf("%s is not a part of the request: %v", name, span)
		}
	}
	if all, _ := json.Marshal(trace); strings.Contains(string(all), "hq-demo") || !strings.Contains(string(all), "door_request") {
		t.Errorf("want statements, and nothing that they were given: %s", all)
	}
}
