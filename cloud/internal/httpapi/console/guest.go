package console

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

const (
	maxGuestNote   = 1000
	maxBlockReason = 200
)

// guest reads the reservation of {id}, whose branch must be in the scope of the administrator.
func (c *Console) guest(r *http.Request) (backoffice.Record, error) {
	id, err := wire.PathReservation(r)
	if err != nil {
		return backoffice.Record{}, err
	}
	record, err := c.Backoffice.Reservation(r.Context(), id)
	if err != nil {
		return record, err
	}
	return record, wire.Scope(r, record.Branch.Code)
}

// ShowGuest serves GET /v2/admin/reservations/{id}/guest: the stays of the guest of a reservation, notes of staff and whether
// the number may reserve. The view is audited. A guest is a phone number; no address contains it.
func (c *Console) ShowGuest(w http.ResponseWriter, r *http.Request) error {
	record, err := c.guest(r)
	if err != nil {
		return err
	}
	g, err := c.Backoffice.Guest(r.Context(), record, wire.Principal(r).Reach(), actor(r))
	if err != nil {
		return err
	}
	type stay struct {
		Branch string `json:"branch"`
		timelineReservation
	}
	type note struct {
		ID     string  `json:"id"`
		Branch string  `json:"branch"`
		Text   string  `json:"text"`
		By     string  `json:"by"`
		At     *string `json:"at"`
	}
	type block struct {
		Reason string  `json:"reason"`
		By     string  `json:"by"`
		At     *string `json:"at"`
	}
	answer := struct {
		Name         *string `json:"name"`
		MobileNum    string  `json:"mobileNum"`
		Reservations []stay  `json:"reservations"`
		Notes        []note  `json:"notes"`
		Block        *block  `json:"block"`
	}{wire.Nullable(g.Name), g.Mobile, make([]stay, 0, len(g.Stays)), make([]note, 0, len(g.Notes)), nil}
	for _, f := range g.Stays {
		answer.Reservations = append(answer.Reservations, stay{f.Branch.Code, wireTimelineReservation(f.Reservation, f.Branch.Zone)})
	}
	for _, n := range g.Notes {
		answer.Notes = append(answer.Notes, note{strconv.FormatInt(n.ID, 10), n.Branch, n.Text, n.By, wire.Instant(n.At)})
	}
	if g.Block.Reason != "" {
		answer.Block = &block{g.Block.Reason, g.Block.By, wire.Instant(g.Block.At)}
	}
	return wire.WriteData(w, answer)
}

// AddGuestNote serves POST /v2/admin/reservations/{id}/guest/notes.
func (c *Console) AddGuestNote(w http.ResponseWriter, r *http.Request) error {
	text, err := decodeText(r, maxGuestNote)
	if err != nil {
		return err
	}
	record, err := c.guest(r)
	if err != nil {
		return err
	}
	id, err := c.Backoffice.NoteGuest(r.Context(), record, text, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10)})
}

// decodeText reads the body {text}.
func decodeText(r *http.Request, most int) (string, error) {
	var body struct {
		Text *string `json:"text"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	return wire.Text("text", body.Text, most)
}

// RemoveGuestNote serves DELETE /v2/admin/reservations/{id}/guest/notes/{note}.
func (c *Console) RemoveGuestNote(w http.ResponseWriter, r *http.Request) error {
	record, err := c.guest(r)
	if err != nil {
		return err
	}
	note, err := wire.Number(chi.URLParam(r, "note"))
	if err != nil {
		return backoffice.ErrNoNote
	}
	if err := c.Backoffice.RemoveNote(r.Context(), record, wire.Principal(r).Reach(), int64(note), actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// BlockGuest serves PUT /v2/admin/reservations/{id}/guest/block.
func (c *Console) BlockGuest(w http.ResponseWriter, r *http.Request) error {
	reason, err := wire.DecodeReason(r, maxBlockReason)
	if err != nil {
		return err
	}
	record, err := c.guest(r)
	if err != nil {
		return err
	}
	if err := c.Backoffice.BlockGuest(r.Context(), record, reason, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// UnblockGuest serves DELETE /v2/admin/reservations/{id}/guest/block.
func (c *Console) UnblockGuest(w http.ResponseWriter, r *http.Request) error {
	record, err := c.guest(r)
	if err != nil {
		return err
	}
	if err := c.Backoffice.UnblockGuest(r.Context(), record, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
