package tracing

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// started receives spans; nil: tracing is off.
var started atomic.Pointer[trace.Tracer]

// On reports whether tracing is on.
func On() bool { return started.Load() != nil }

// Start sends spans to a collector by OTLP over HTTP (http://collector:4318). The collector may be absent: spans that
// it does not accept in time are dropped. OpenTelemetry's own variables, such as OTEL_EXPORTER_OTLP_HEADERS, apply as
// well. stop sends the remaining spans.
func Start(ctx context.Context, url string) (stop func(context.Context) error, err error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	host, _ := os.Hostname()
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithIDGenerator(ids{}),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "yeolda"), attribute.String("service.instance.id", host))))
	tracer := provider.Tracer("github.com/yeolda/yeolda/cloud")
	started.Store(&tracer)
	return func(ctx context.Context) error {
		started.CompareAndSwap(&tracer, nil)
		return provider.Shutdown(ctx)
	}, nil
}
