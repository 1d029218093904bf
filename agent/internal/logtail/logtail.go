// Package logtail keeps the newest lines of the agent's log in memory, for a window of diagnostics (docs/specification.md, Agent
// protocol 29).
package logtail

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"

	"github.com/yeolda/yeolda/protocol"
)

// Size is the number of lines that a Tail keeps.
const Size = 512

// Tail keeps the newest lines of a log. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	text  bytes.Buffer           // of the line that is being written
	lines [Size]protocol.LogLine // line n, from 1, is at n % Size
	last  uint64                 // number of the newest line
}

// Handler returns a handler that keeps each line and passes it on to next. Lines of the level info and above are kept even if next
// does not write them.
func (t *Tail) Handler(next slog.Handler) slog.Handler {
	text := slog.NewTextHandler(&t.text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{} // they are before the attributes, or fields of their own
		}
		return a
	}})
	return handler{t, next, text}
}

// handler writes to the tail and to the next handler.
type handler struct {
	tail       *Tail
	next, text slog.Handler
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.keep(ctx, r)
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h handler) keep(ctx context.Context, r slog.Record) {
	t := h.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Reset()
	_ = h.text.Handle(ctx, r) // a buffer takes everything
	attributes := strings.TrimSuffix(t.text.String(), "\n")
	text := strings.TrimSuffix(r.Message+" "+attributes, " ")
	t.last++
	t.lines[t.last%Size] = protocol.LogLine{At: r.Time, Level: r.Level.String(), Text: protocol.ClipLine(text)}
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.tail, h.next.WithAttrs(attrs), h.text.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.tail, h.next.WithGroup(name), h.text.WithGroup(name)}
}

// After returns the newest lines behind the line with the number after, in order: at most limit, of at most size bytes as JSON. last
// is the number of the newest line, and omitted that of the lines behind after which are not returned.
func (t *Tail) After(after uint64, limit, size int) (lines []protocol.LogLine, omitted, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.last + 1
	for first > after+1 && t.last-first+1 < uint64(min(limit, Size)) {
		encoded, err := json.Marshal(t.lines[(first-1)%Size])
		if size -= len(encoded) + 1; size < 0 || err != nil {
			break
		}
		first--
	}
	for n := first; n <= t.last; n++ {
		lines = append(lines, t.lines[n%Size])
	}
	return lines, first - after - 1, t.last
}
