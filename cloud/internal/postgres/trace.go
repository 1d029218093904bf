package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/tracing"
)

// spans adds each statement as a span to the trace of its request. It implements pgx.QueryTracer and pgx.BatchTracer.
// Statements are constants in the source and contain no secrets; arguments are not recorded.
type spans struct{}

type spanKey struct{}

func (spans) begin(ctx context.Context, statement string) context.Context {
	ctx, span := tracing.Part(ctx, "db")
	span.Set("db.system.name", "postgresql")
	span.Set("db.query.text", statement)
	return context.WithValue(ctx, spanKey{}, span)
}

func (spans) end(ctx context.Context, err error) {
	if span, ok := ctx.Value(spanKey{}).(tracing.Span); ok {
		span.End(err)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (s spans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return s.begin(ctx, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s spans) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	s.end(ctx, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer: a batch is one round trip.
func (s spans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	statement := ""
	if len(data.Batch.QueuedQueries) > 0 {
		statement = data.Batch.QueuedQueries[0].SQL
	}
	return s.begin(ctx, statement)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (spans) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (s spans) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	s.end(ctx, data.Err)
}
