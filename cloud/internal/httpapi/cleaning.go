package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// listCleaning serves GET /v2/admin/cleaning?branch=: the rooms that are to be cleaned, those that are needed next first.
func (a *API) listCleaning(w http.ResponseWriter, r *http.Request) error {
	branches, err := a.Console.Reach(r)
	if err != nil {
		return err
	}
	found, err := a.Backoffice.RoomsToClean(r.Context(), branches)
	if err != nil {
		return err
	}
	type room struct {
		Branch  string     `json:"branch"`
		RoomNo  string     `json:"roomNo"`
		Machine string     `json:"machine"`
		EndedAt time.Time  `json:"endedAt"`
		Next    *time.Time `json:"nextArrival"`
	}
	rooms := make([]room, 0, len(found))
	for _, f := range found {
		rooms = append(rooms, room{f.Branch, strconv.Itoa(f.RoomNo), f.Machine, f.EndedAt, f.Next})
	}
	return wire.WriteData(w, map[string][]room{"rooms": rooms})
}

// cleaningRoom returns the branch and the room of the path.
func (a *API) cleaningRoom(r *http.Request) (booking.Branch, booking.Room, error) {
	branch, err := a.branch(r)
	if err != nil {
		return branch, booking.Room{}, err
	}
	no, err := strconv.Atoi(chi.URLParam(r, "room"))
	room, ok := branch.Room(no)
	if err != nil || !ok {
		return branch, room, reserve.ErrNoRoom
	}
	return branch, room, nil
}

// cleanedRoute is finishCleaning's.
const cleanedRoute = "/v2/admin/cleaning/{branch}/{room}/done"

// finishCleaning serves POST /v2/admin/cleaning/{branch}/{room}/done, optionally with a photo in base64.
func (a *API) finishCleaning(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := a.cleaningRoom(r)
	if err != nil {
		return err
	}
	var body struct {
		Data *string `json:"data"`
	}
	if err := wire.DecodeOptionalUpTo(r, bodyLimit(r), &body); err != nil {
		return err
	}
	var photo []byte
	if body.Data != nil {
		photo, err = base64.StdEncoding.DecodeString(*body.Data)
		if err != nil || len(photo) == 0 {
			return wire.Malformed("data")
		}
	}
	if err := a.Backoffice.Cleaned(r.Context(), branch, room, photo, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// openForCleaning serves POST /v2/admin/cleaning/{branch}/{room}/unlock: the front doors, or the room if it is between stays. It
// waits for the result.
func (a *API) openForCleaning(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := a.cleaningRoom(r)
	if err != nil {
		return err
	}
	kind, err := decodeDoor(r)
	if err != nil {
		return err
	}
	actor := a.actor(r)
	actor.BetweenStays, actor.NoPIN = true, actor.NoPIN || wire.Principal(r).Role == account.Cleaner
	id, err := a.Access.RequestAs(r.Context(), actor, branch.Code, kind, room.No)
	if err != nil {
		return err
	}
	opened, err := a.Access.Opened(r.Context(), id)
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]bool{"opened": opened})
}
