package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// arrivalRoute takes bodies with a photo, like photosRoute.
const arrivalRoute = "/v2/admin/branches/{branch}/arrival"

// showArrival serves GET /v2/branches/{branch}/arrival: how guests get from the street to their room.
func (a *API) showArrival(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.Backoffice.Branch(r.Context(), chi.URLParam(r, "branch"))
	if err != nil {
		return err
	}
	steps, err := a.Gallery.Arrival(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	type item struct {
		ID      string            `json:"id"`
		Text    booking.Bilingual `json:"text"`
		Sources []photoSource     `json:"sources"` // the smallest first
	}
	list := make([]item, 0, len(steps))
	for _, s := range steps {
		list = append(list, item{strconv.FormatInt(s.ID, 10), s.Text, toSources(s.Files)})
	}
	return wire.WriteData(w, map[string]any{"steps": list})
}

// addStep serves POST /v2/admin/branches/{branch}/arrival, with the photo in base64 if there is one.
func (a *API) addStep(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Text bilingual `json:"text"`
		Data *string   `json:"data"`
	}
	if err := wire.DecodeUpTo(r, bodyLimit(r), &body); err != nil {
		return err
	}
	text, err := body.Text.required("text", gallery.MaxStepText)
	if err != nil {
		return err
	}
	var photo []byte
	if body.Data != nil {
		if photo, err = base64.StdEncoding.DecodeString(*body.Data); err != nil || len(photo) == 0 {
			return wire.Malformed("data")
		}
	}
	id, err := a.Gallery.AddStep(r.Context(), branch, text, photo, wire.Principal(r).Actor())
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10)})
}

// changeStep serves PUT /v2/admin/branches/{branch}/arrival/{step}: the text of a step and its position, from 1.
func (a *API) changeStep(w http.ResponseWriter, r *http.Request) error {
	branch, step, err := a.stepOf(r)
	if err != nil {
		return err
	}
	var body struct {
		Text     bilingual `json:"text"`
		Position *int      `json:"position"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	text, err := body.Text.required("text", gallery.MaxStepText)
	if err != nil {
		return err
	}
	if body.Position == nil {
		return wire.Missing("position")
	}
	if *body.Position < 1 || *body.Position > gallery.MaxSteps {
		return wire.OutOfRange("position", 1, gallery.MaxSteps)
	}
	if err := a.Gallery.ChangeStep(r.Context(), branch, step, text, *body.Position, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// removeStep serves DELETE /v2/admin/branches/{branch}/arrival/{step}.
func (a *API) removeStep(w http.ResponseWriter, r *http.Request) error {
	branch, step, err := a.stepOf(r)
	if err != nil {
		return err
	}
	if err := a.Gallery.RemoveStep(r.Context(), branch, step, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// stepOf returns the step of the path if its branch is in the administrator's scope.
func (a *API) stepOf(r *http.Request) (booking.Branch, int64, error) {
	branch, err := a.branch(r)
	if err != nil {
		return booking.Branch{}, 0, err
	}
	step, err := strconv.ParseInt(chi.URLParam(r, "step"), 10, 64)
	if err != nil {
		return booking.Branch{}, 0, gallery.ErrNoStep
	}
	return branch, step, nil
}
