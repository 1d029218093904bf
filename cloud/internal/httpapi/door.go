package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireUnlock is the response to an unlock request: the id to subscribe with.
type wireUnlock struct {
	RequestID string `json:"requestId"`
}

// unlockDoor handles POST /door/v2/unlock.
func (a *API) unlockDoor(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Branch       *string         `json:"branch"`
		DoorlockType *string         `json:"doorlockType"`
		Key          *string         `json:"key"`
		Room         json.RawMessage `json:"room"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	branch, err := wire.Text("branch", body.Branch, 63)
	if err != nil {
		return err
	}
	kind, err := wire.Text("doorlockType", body.DoorlockType, 20)
	if err != nil {
		return err
	}
	key, err := wire.Text("key", body.Key, 100)
	if err != nil {
		return err
	}
	given, err := wire.NumberOrText("room", body.Room)
	if err != nil {
		return err
	}
	room := 0
	if given != nil {
		room = *given
	}
	id, err := a.Access.RequestFor(r.Context(), branch, kind, key, room)
	switch {
	case errors.Is(err, booking.ErrNoBranch): // an invalid value, not 404 (docs/specification.md, Doors 3)
		return wire.UnknownValue("branch")
	case errors.Is(err, access.ErrUnknownDoor):
		return wire.UnknownValue("doorlockType")
	case err != nil:
		return err
	}
	// A client that accepts JSON, too, gets the documented answer.
	if accept := r.Header.Get("Accept"); strings.Contains(accept, eventStream) && !strings.Contains(accept, "application/json") {
		return a.streamDoor(w, r, id, key)
	}
	return wire.WriteData(w, wireUnlock{id})
}

// announcePress handles POST /v2/keys/{key}/announcements {branch, door: front|room} (any client): the guest is about to press
// the button. The answer is the same for every key (docs/specification.md, Doors 16).
func (a *API) announcePress(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Branch *string `json:"branch"`
		Door   *string `json:"door"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	branch, err := wire.Text("branch", body.Branch, 63)
	if err != nil {
		return err
	}
	kind, err := wire.Text("door", body.Door, 20)
	if err != nil {
		return err
	}
	err = a.Access.Announce(r.Context(), branch, kind, chi.URLParam(r, "key"))
	if errors.Is(err, access.ErrUnknownDoor) {
		return wire.UnknownValue("door")
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// adminUnlockDoor handles POST /admin/door/v2/unlock/{branch}/{doorType}/{roomNo?}.
func (a *API) adminUnlockDoor(w http.ResponseWriter, r *http.Request) error {
	branch, kind := chi.URLParam(r, "branch"), chi.URLParam(r, "doorType")
	if err := wire.Scope(r, branch); err != nil {
		return err
	}
	var room int
	if kind == access.Room {
		text := chi.URLParam(r, "roomNo")
		if text == "" {
			return wire.Missing("roomNo")
		}
		var err error
		if room, err = wire.Number(text); err != nil {
			return wire.Malformed("roomNo")
		}
	}
	id, err := a.Access.RequestAs(r.Context(), a.actor(r), branch, kind, room)
	if errors.Is(err, access.ErrUnknownDoor) {
		return wire.UnknownValue("doorType")
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, wireUnlock{id})
}

// decodeDoor reads the body {door: front|room}.
func decodeDoor(r *http.Request) (kind string, err error) {
	var body struct {
		Door *string `json:"door"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	if kind, err = wire.Text("door", body.Door, 20); err != nil {
		return "", err
	}
	if kind != access.Front && kind != access.Room {
		return "", wire.UnknownValue("door")
	}
	return kind, nil
}

// actor returns the administrator of a request in the form that package access records.
func (a *API) actor(r *http.Request) access.Actor {
	return access.Actor{Name: wire.Principal(r).Actor(), Address: a.client(r), RequestID: audit.OriginOf(r.Context()).RequestID,
		NoPIN: wire.Principal(r).Role == account.Viewer}
}
