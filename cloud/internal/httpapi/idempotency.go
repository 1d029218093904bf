package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/idempotency"
	"github.com/yeolda/yeolda/cloud/internal/limit"
)

// errKeyForm is returned for an Idempotency-Key that is empty, too long or not printable.
var errKeyForm = errors.New("httpapi: malformed idempotency key")

var keyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// idempotencyKeys bounds the answers that are kept for an address without an administrator's session: any client can send
// keys, and each answer is kept for a day.
var idempotencyKeys = limit.Rule{Name: "idempotency-key", Max: 1200, Window: 10 * time.Minute}

// notKept are the ends of paths whose answers are not kept: a session, and the data of a guest, which reading changes nothing.
var notKept = []string{"/login", "/personal-data/export"}

// ownKeys matches the paths whose handlers store the answer themselves, in the transaction of the change, so that a repetition
// after a crash finds it.
var ownKeys = regexp.MustCompile(`/v2/admin/reservations/[0-9]+/refunds$`)

// idempotent runs a POST with an Idempotency-Key at most once: a repetition receives the first answer, another request with
// the same key 409 (docs/specification.md, Tokens 6). Only successes are kept: a rejected request changed nothing and may be
// repeated with its key.
func (a *API) idempotent(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, given := r.Header["Idempotency-Key"]
		if r.Method != http.MethodPost || !given || slices.ContainsFunc(notKept, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }) {
			return h(w, r)
		}
		if len(key) != 1 || !keyForm.MatchString(key[0]) {
			return errKeyForm
		}
		if !wire.Principal(r).Administrator() {
			if err := a.Limits.TakeClient(r.Context(), idempotencyKeys, a.client(r)); err != nil {
				return err
			}
		}
		body, err := wire.ReadUpTo(r, bodyLimit(r))
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", r.Method, r.URL.RequestURI(), body))
		request := idempotency.Request{Principal: a.keyOwner(r), Key: key[0], Hash: sum[:]}
		answer, err := a.Idempotency.Begin(r.Context(), request)
		if errors.Is(err, idempotency.ErrPending) && ownKeys.MatchString(r.URL.Path) {
			return h(w, r)
		}
		if err != nil {
			return err
		}
		if answer != nil {
			replay(w, answer)
			return nil
		}
		record := &answerRecorder{ResponseWriter: w, status: http.StatusOK}
		err = h(record, r)
		// The client may have disconnected: the outcome is stored nevertheless.
		a.finish(context.WithoutCancel(r.Context()), request, record, err)
		return err
	}
}

// finish stores the answer of a success and releases the key of a rejected request. After an unforeseen error the request may
// have changed something, so its key stays without an answer.
func (a *API) finish(ctx context.Context, request idempotency.Request, record *answerRecorder, failed error) {
	var err error
	if failed == nil {
		err = a.Idempotency.Finish(ctx, request, idempotency.Answer{Status: record.status, Header: record.kept(), Body: record.body.Bytes()})
	} else if _, known := answerTo(failed); known {
		err = a.Idempotency.Release(ctx, request)
	}
	if err != nil {
		a.Log.WarnContext(ctx, "the answer of an idempotent request was not stored", "error", err)
	}
}

func replay(w http.ResponseWriter, answer *idempotency.Answer) {
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Idempotent-Replayed", "true")
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // the client has closed the connection
}

// keyOwner names the client whose keys are compared: two clients may choose the same key.
func (a *API) keyOwner(r *http.Request) string {
	p := wire.Principal(r)
	if p.Administrator() {
		return p.AdminLoginID
	}
	return a.Idempotency.Pseudonym(p.LoginID + "\n" + audit.OriginOf(r.Context()).Address)
}

// answerRecorder keeps a copy of an answer.
type answerRecorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader records the status and forwards it.
func (w *answerRecorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write records the body and forwards it.
func (w *answerRecorder) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

// kept returns the headers that belong to the answer and not to the request.
func (w *answerRecorder) kept() map[string][]string {
	kept := map[string][]string{}
	for _, name := range []string{"Content-Type", "Content-Length", "Cache-Control", "Set-Cookie", "Content-Disposition"} {
		if values := w.Header()[name]; values != nil {
			kept[name] = values
		}
	}
	return kept
}

// Unwrap exposes the wrapped writer to http.ResponseController.
func (w *answerRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
