package tracing

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a part of a trace. The zero value is that of a service without traces and has no effect.
type Span struct{ span trace.Span }

// Root begins a trace: an HTTP request.
func Root(ctx context.Context, name string) (context.Context, Span) {
	t := started.Load()
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := (*t).Start(ctx, name, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{span}
}

// Part begins a part of the trace of ctx. Without a trace it returns the zero value.
func Part(ctx context.Context, name string) (context.Context, Span) {
	t := started.Load()
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, Span{}
	}
	ctx, span := (*t).Start(ctx, name)
	return ctx, Span{span}
}

// Door begins a part of the trace of a door request, regardless of the replica that began it.
func Door(ctx context.Context, request uuid.UUID, name string) (context.Context, Span) {
	t := started.Load()
	if t == nil {
		return ctx, Span{}
	}
	if trace.SpanContextFromContext(ctx).TraceID() != trace.TraceID(request) {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(request), SpanID: rootOf(request), TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	ctx, span := (*t).Start(ctx, name)
	return ctx, Span{span}
}

// Name renames the span.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Set adds an attribute, named by OpenTelemetry's conventions if there is one.
func (s Span) Set(key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// End ends the span; err is its failure.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}
