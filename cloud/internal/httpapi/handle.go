package httpapi

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// handler is an endpoint: decode, one call, encode. A handler that returns an error has written nothing; handle answers.
type handler func(w http.ResponseWriter, r *http.Request) error

// branch returns the branch of the path if it is in the administrator's scope.
func (a *API) branch(r *http.Request) (booking.Branch, error) {
	code := chi.URLParam(r, "branch")
	if err := wire.Scope(r, code); err != nil {
		return booking.Branch{}, err
	}
	return a.Backoffice.Branch(r.Context(), code)
}

// handle wraps a handler for the router: the layer, checkRole and validateRequest run before it. Errors become answers here only.
func (a *API) handle(allow layer, h handler) http.HandlerFunc {
	run := a.idempotent(h)
	return func(w http.ResponseWriter, r *http.Request) {
		err := allow(wire.Principal(r))
		if err == nil {
			err = checkRole(r)
		}
		if err == nil {
			err = validateRequest(r)
		}
		if err == nil {
			awaitUpload(w, r)
			err = run(w, r)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	}
}

// validateRequest rejects requests that no endpoint accepts: a body that is too large, or text that the database cannot
// store.
func validateRequest(r *http.Request) error {
	if r.ContentLength > bodyLimit(r) {
		return wire.ErrBodyTooLarge
	}
	params := chi.RouteContext(r.Context()).URLParams
	for i, value := range params.Values {
		if name := params.Keys[i]; name != "*" && !validText(value) { // the router's own wildcard
			return wire.Malformed(name)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errMalformedQuery // Query would leave out what it cannot read, such as a filter
	}
	for name, values := range query {
		if !validText(name) || slices.ContainsFunc(values, func(value string) bool { return !validText(value) }) {
			return wire.Malformed(strings.ToValidUTF8(name, ""))
		}
	}
	return nil
}

var errMalformedQuery = &wire.FieldError{Problem: "주소의 쿼리 문자열 형식이 올바르지 않습니다."}

// validText reports whether PostgreSQL can store a text.
func validText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// identified assigns the request id and stores the request's origin for the audit log.
func (a *API) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set("X-Request-Id", id)
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		a.noteProxy(r)
		ctx := audit.WithOrigin(r.Context(), audit.Origin{Address: a.client(r), RequestID: id})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// session identifies the principal of a request before its layer runs.
func (a *API) session(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.Sessions.Identify(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if p.Authenticated() {
			r = wire.WithPrincipal(r, p)
		}
		next.ServeHTTP(w, r)
	})
}

// securityHeaders are part of every answer. No answer is a page: none may run, be framed or be cached, and an address
// that contains a key must not leave in a Referer header.
var securityHeaders = map[string]string{
	"X-Content-Type-Options":  "nosniff",
	"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	"Referrer-Policy":         "no-referrer",
	"Cache-Control":           "no-store",
}

// recoverPanics answers 500 if a handler panics, and logs the stack.
func (a *API) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the server, too, knows it only unwrapped
					panic(p)
				}
				a.fail(w, r, &panicError{p})
			}
		}()
		next.ServeHTTP(w, r)
	})
}

type panicError struct{ value any }

func (e *panicError) Error() string { return "panic" }

// logRequests logs one event per request, with the pattern of the route: the path itself may contain a key.
func (a *API) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		level := slog.LevelDebug
		if recorder.status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		a.Log.LogAttrs(r.Context(), level, "request",
			slog.String("method", r.Method),
			slog.String("route", chi.RouteContext(r.Context()).RoutePattern()),
			slog.Int("status", recorder.status),
			slog.Duration("took", time.Since(began)),
			slog.String("request_id", w.Header().Get("X-Request-Id")))
	})
}

// statusRecorder records the status for the log.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the status and forwards it.
func (w *statusRecorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap exposes the wrapped writer to http.ResponseController.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack hands the connection over to a WebSocket.
func (w *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status = http.StatusSwitchingProtocols
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// DenyCrossOrigin rejects a request that a browser sent on behalf of another site.
func (a *API) DenyCrossOrigin(w http.ResponseWriter, r *http.Request) { a.fail(w, r, errCrossOrigin) }

// fail answers an error. Errors that a client can cause are in the table of errors.go; all others are ours and logged.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer, known := answerTo(err)
	if !known {
		if a.Unavailable(err) {
			answer = unavailable
		}
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return // the client has disconnected
		}
		attrs := []any{"request_id", audit.OriginOf(r.Context()).RequestID, "method", r.Method, "error", err}
		if p := new(panicError); errors.As(err, &p) {
			attrs = append(attrs, "panic", p.value, "stack", stack())
		}
		a.Log.ErrorContext(r.Context(), "request failed", attrs...)
	}
	if answer.retryAfter > 0 {
		w.Header().Set("Retry-After", answer.retryAfterSeconds())
	}
	if challenge := challenge(r, err); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	body := wire.Envelope{Status: "error", ErrorType: &answer.errorType, ErrorCode: answer.errorCode, Message: &answer.message, Data: answer.data}
	if err := wire.WriteEnvelope(w, answer.status, body); err != nil {
		a.Log.ErrorContext(r.Context(), "answer cannot be encoded", "error", err)
	}
}
