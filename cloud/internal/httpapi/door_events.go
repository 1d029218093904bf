package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireDoorResult is the data of the door-result event (docs/specification.md, Doors 4).
type wireDoorResult struct {
	Status      string  `json:"status"`
	Device      *string `json:"device"`
	FailoverKey *string `json:"failoverKey"`
	// FailoverKind is present with FailoverKey only, so an event without one has exactly the documented fields.
	FailoverKind access.PINKind `json:"failoverKind,omitempty"`
}

// awaitDoor handles GET /door/v2/unlock/subscribe.
func (a *API) awaitDoor(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.Query(r, "requestId")
	if err != nil {
		return err
	}
	key, err := wire.Query(r, "key")
	if err != nil {
		return err
	}
	if reconnects(w, r, id) {
		return nil
	}
	outcome, err := a.Access.Await(r.Context(), a.client(r), id, key)
	if err != nil {
		return err
	}
	return writeDoorResult(w, id, outcome)
}

// adminAwaitDoor handles GET /admin/door/v2/unlock/subscribe. The branch is that of the unlock request.
func (a *API) adminAwaitDoor(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.Query(r, "requestId")
	if err != nil {
		return err
	}
	branch, err := a.Access.BranchOf(r.Context(), id)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, branch); err != nil {
		return err
	}
	if reconnects(w, r, id) {
		return nil
	}
	ctx, stop := a.Sessions.Bound(r)
	defer stop()
	outcome, err := a.Access.AwaitAs(ctx, a.actor(r), id)
	if errors.Is(context.Cause(ctx), session.ErrToken) {
		return session.ErrToken // the result may contain a PIN
	}
	if err != nil {
		return err
	}
	return writeDoorResult(w, id, outcome)
}

// streamDoor responds to an unlock request with its result, which saves the client the second round trip. The headers
// carry the request's id and are sent at once, so a client that loses the connection can still subscribe. If there is no
// result in time, the stream ends without an event.
func (a *API) streamDoor(w http.ResponseWriter, r *http.Request, id, key string) error {
	w.Header().Set("Door-Request", id)
	doorStreamHeaders(w)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // otherwise the headers arrive together with the result
	outcome, err := a.Access.Await(r.Context(), a.client(r), id, key)
	if err == nil {
		err = writeDoorEvent(w, id, outcome)
	}
	if err != nil && r.Context().Err() == nil {
		a.Log.WarnContext(r.Context(), "no result for a streamed unlock request", "request", id, "error", err)
	}
	return nil // the headers are already sent, so no error response is possible
}

// reconnects handles the automatic reconnect of an EventSource that already has the result. It responds with 204, the only
// status that makes the client stop.
func reconnects(w http.ResponseWriter, r *http.Request, requestID string) bool {
	if r.Header.Get("Last-Event-ID") != requestID {
		return false
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// writeDoorResult writes the stream, which has one event. It is called once the result is known, because a 503 is impossible
// after the headers are sent.
func writeDoorResult(w http.ResponseWriter, requestID string, outcome access.Outcome) error {
	doorStreamHeaders(w)
	return writeDoorEvent(w, requestID, outcome)
}

const eventStream = "text/event-stream"

func doorStreamHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
}

func writeDoorEvent(w http.ResponseWriter, requestID string, outcome access.Outcome) error {
	data, err := json.Marshal(wireDoorResult{string(outcome.Status), wire.Nullable(outcome.Device), wire.Nullable(outcome.PIN), outcome.Kind})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "id: %s\nevent: door-result\ndata: %s\n\n", requestID, data) // an error means that the client closed the connection
	return nil
}
