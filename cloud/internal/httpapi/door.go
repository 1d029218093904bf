package httpapi

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// wireUnlock is the answer to an unlock request: the id to subscribe with.
type wireUnlock struct {
	RequestID string `json:"requestId"`
}

// unlockDoor is POST /door/v2/unlock.
func (a *API) unlockDoor(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Branch       *string `json:"branch"`
		DoorlockType *string `json:"doorlockType"`
		Key          *string `json:"key"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	branch, err := text("branch", body.Branch, 63)
	if err != nil {
		return err
	}
	kind, err := text("doorlockType", body.DoorlockType, 20)
	if err != nil {
		return err
	}
	key, err := text("key", body.Key, 100)
	if err != nil {
		return err
	}
	id, err := a.Access.Request(r.Context(), branch, kind, key)
	switch {
	case errors.Is(err, postgres.ErrNoBranch): // here a wrong value, not a missing thing (decisions.md 8)
		return unknownValue("branch")
	case errors.Is(err, access.ErrUnknownDoor):
		return unknownValue("doorlockType")
	case err != nil:
		return err
	}
	return writeData(w, wireUnlock{id})
}

// adminUnlockDoor is POST /admin/door/v2/unlock/{branch}/{doorType}/{roomNo?}.
func (a *API) adminUnlockDoor(w http.ResponseWriter, r *http.Request) error {
	branch, kind := chi.URLParam(r, "branch"), chi.URLParam(r, "doorType")
	if err := a.scope(r, branch); err != nil {
		return err
	}
	var room int
	if kind == access.Room {
		text := chi.URLParam(r, "roomNo")
		if text == "" {
			return missing("roomNo")
		}
		var err error
		if room, err = number(text); err != nil {
			return malformed("roomNo")
		}
	}
	id, err := a.Access.RequestAs(r.Context(), a.actor(r), branch, kind, room)
	if errors.Is(err, access.ErrUnknownDoor) {
		return unknownValue("doorType")
	}
	if err != nil {
		return err
	}
	return writeData(w, wireUnlock{id})
}

// actor is the administrator of a request, as the audit log of doors names them.
func (a *API) actor(r *http.Request) access.Actor {
	return access.Actor{Name: principal(r).Actor(), Address: a.client(r), RequestID: requestID(r.Context())}
}
