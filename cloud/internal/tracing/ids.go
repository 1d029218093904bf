package tracing

import (
	"context"
	"crypto/rand"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// ids creates trace ids that are UUIDs. It implements the SDK's IDGenerator.
type ids struct{}

// NewIDs creates the ids of a root span.
func (ids) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	id := uuid.New()
	return trace.TraceID(id), rootOf(id)
}

// NewSpanID creates the id of another span.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// rootOf returns the span that began a trace.
func rootOf(id uuid.UUID) trace.SpanID { return trace.SpanID(id[:8]) }

// RequestID returns the id for the one door request of an HTTP request: that of its trace, if it is traced.
func RequestID(ctx context.Context) uuid.UUID {
	if started.Load() != nil {
		if here := trace.SpanContextFromContext(ctx); here.IsValid() {
			return uuid.UUID(here.TraceID())
		}
	}
	return uuid.New()
}
