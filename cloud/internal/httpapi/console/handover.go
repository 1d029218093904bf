package console

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

const maxHandover = 1000

// ListHandovers serves GET /v2/admin/branches/{branch}/handover: the notes for the next shift.
func (c *Console) ListHandovers(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	list, err := c.Backoffice.Handovers(r.Context(), branch)
	if err != nil {
		return err
	}
	type note struct {
		ID     string  `json:"id"`
		Text   string  `json:"text"`
		By     string  `json:"by"`
		At     *string `json:"at"`
		DoneBy *string `json:"doneBy"`
		DoneAt *string `json:"doneAt"`
	}
	notes := make([]note, 0, len(list))
	for _, n := range list {
		notes = append(notes, note{strconv.FormatInt(n.ID, 10), n.Text, n.By, wire.Instant(n.At), n.DoneBy, moment(n.DoneAt)})
	}
	return wire.WriteData(w, map[string]any{"notes": notes})
}

// AddHandover serves POST /v2/admin/branches/{branch}/handover {text}.
func (c *Console) AddHandover(w http.ResponseWriter, r *http.Request) error {
	text, err := decodeText(r, maxHandover)
	if err != nil {
		return err
	}
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	id, err := c.Backoffice.AddHandover(r.Context(), branch, text, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10)})
}

// SetHandover serves PATCH /v2/admin/branches/{branch}/handover/{note} {done}.
func (c *Console) SetHandover(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Done *bool `json:"done"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Done == nil {
		return wire.Missing("done")
	}
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	note, err := wire.Number(chi.URLParam(r, "note"))
	if err != nil {
		return backoffice.ErrNoNote
	}
	if err := c.Backoffice.SetHandover(r.Context(), branch, int64(note), *body.Done, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
