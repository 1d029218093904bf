package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/account"
)

// handler is an endpoint: decode, one call, encode. Its error is answered by handle, so a handler that returns one
// has written nothing.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle turns a handler into what the router takes. It is the one place where errors become answers.
func (a *API) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			a.fail(w, r, err)
		}
	}
}

// contextKey names what this package keeps in a request's context.
type contextKey int

const (
	principalKey contextKey = iota
	requestIDKey
)

// who returns the session's principal; the zero value is nobody.
func who(r *http.Request) account.Principal {
	p, _ := r.Context().Value(principalKey).(account.Principal)
	return p
}

// requestID returns the id under which the log knows the request.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// limits gives the request its id, bounds its body and refuses what no endpoint could store.
func (a *API) limits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey, id))
		if r.ContentLength > maxBody {
			a.fail(w, r, errBodyTooLarge)
			return
		}
		if path, query := r.URL.Path, r.URL.Query(); !storable(path) || !storableQuery(query) {
			a.fail(w, r, &FieldError{Problem: "요청 주소가 올바르지 않습니다."})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// storable reports whether PostgreSQL could keep a text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func storableQuery(query map[string][]string) bool {
	for name, values := range query {
		if !storable(name) {
			return false
		}
		for _, value := range values {
			if !storable(value) {
				return false
			}
		}
	}
	return true
}

// recoverPanics answers 500 for a handler that panicked and logs where.
func (a *API) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
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

// logRequests writes one event per request. The path of a route, not of the request: the latter may hold a key.
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

// statusRecorder remembers the status for the log.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader remembers and passes on.
func (w *statusRecorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach what is behind.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// user is layer 1: there must be a session.
func (a *API) user(h handler) http.HandlerFunc {
	return a.handle(func(w http.ResponseWriter, r *http.Request) error {
		if !who(r).Anybody() {
			return errNoSession
		}
		return h(w, r)
	})
}

// customer is layer 1 for endpoints that make sense for customers only.
func (a *API) customer(h handler) http.HandlerFunc {
	return a.user(func(w http.ResponseWriter, r *http.Request) error {
		if who(r).Administrator() {
			return errNotCustomer
		}
		return h(w, r)
	})
}

// look is layer 2: an administrator, also one who may only look.
func (a *API) look(h handler) http.HandlerFunc {
	return a.user(func(w http.ResponseWriter, r *http.Request) error {
		if !who(r).Administrator() {
			return errNotAdministrator
		}
		return h(w, r)
	})
}

// admin is layer 2 for endpoints that change something.
func (a *API) admin(h handler) http.HandlerFunc {
	return a.look(func(w http.ResponseWriter, r *http.Request) error {
		if !who(r).MayChange() {
			return errNotAdministrator
		}
		return h(w, r)
	})
}

// scope refuses a branch that the administrator may not use. An unknown branch is not found for the head quarters and
// out of scope for everyone else.
func (a *API) scope(r *http.Request, branch string) error {
	if !who(r).Reaches(branch) {
		return errBranchForbidden
	}
	return nil
}

// fail answers an error. Every error a client can cause has a row in the table of errors.go; all others are ours.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer, known := answerTo(err)
	if !known {
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return // the client is gone
		}
		attrs := []any{"request_id", requestID(r.Context()), "method", r.Method, "error", err}
		if p := new(panicError); errors.As(err, &p) {
			attrs = append(attrs, "panic", p.value, "stack", stack())
		}
		a.Log.ErrorContext(r.Context(), "request failed", attrs...)
	}
	if answer.retryAfter > 0 {
		w.Header().Set("Retry-After", answer.retryAfterSeconds())
	}
	body := envelope{Status: "error", ErrorType: &answer.errorType, ErrorCode: answer.errorCode, Message: &answer.message, Data: answer.data}
	if err := writeEnvelope(w, answer.status, body); err != nil {
		a.Log.ErrorContext(r.Context(), "answer cannot be encoded", "error", err)
	}
}
