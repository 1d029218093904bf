package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Maximum lengths in characters.
const (
	maxKeyReason = 500
	maxLabel     = 30
)

// correctContact is PATCH /v2/admin/reservations/{id}/contact.
func (a *API) correctContact(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		MobileNum *string `json:"mobileNum"`
		Email     *string `json:"email"`
		Name      *string `json:"name"`
		Reason    *string `json:"reason"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.MobileNum == nil && body.Email == nil && body.Name == nil {
		return wire.Missing("mobileNum")
	}
	req := reserve.ContactCorrection{ID: id, By: wire.Principal(r)}
	if req.Reason, err = wire.Text("reason", body.Reason, maxKeyReason); err != nil {
		return err
	}
	if body.MobileNum != nil {
		mobile, err := wire.Mobile("mobileNum", body.MobileNum, true)
		if err != nil {
			return err
		}
		req.Mobile = &mobile
	}
	if body.Email != nil { // an empty address removes it
		email, err := wire.Email("email", body.Email)
		if err != nil {
			return err
		}
		req.Email = &email
	}
	if body.Name != nil {
		name, err := wire.Text("name", body.Name, 50)
		if err != nil {
			return err
		}
		req.Name = &name
	}
	if err := a.Reserve.CorrectContact(r.Context(), req); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// rotateKey is POST /v2/admin/reservations/{id}/key:
//
//	{sent}   false: the reservation has no contact
func (a *API) rotateKey(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		Reason *string `json:"reason"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	reason, err := wire.Text("reason", body.Reason, maxKeyReason)
	if err != nil {
		return err
	}
	sent, err := a.Reserve.RotateKey(r.Context(), id, reason, wire.Principal(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]bool{"sent": sent})
}

// wireCompanion is a companion's key. Key and URL open doors.
type wireCompanion struct {
	ID         string  `json:"id"`
	Label      string  `json:"label"`
	Key        string  `json:"key"`
	URL        string  `json:"url"`
	CreatedAt  *string `json:"createdAt"`
	LastUsedAt *string `json:"lastUsedAt"`
}

func (a *API) wireCompanion(c reserve.Companion) wireCompanion {
	return wireCompanion{strconv.FormatInt(c.ID, 10), c.Label, c.Key, a.Reserve.KeyLink(c.Key), wire.Instant(c.CreatedAt), wire.Instant(c.LastUsedAt)}
}

// listCompanions is GET /v2/keys/{key}/companions (the owner's key):
//
//	{companions: [{id, label, key, url, createdAt, lastUsedAt}], max}
func (a *API) listCompanions(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Reserve.Companions(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	companions := make([]wireCompanion, 0, len(list))
	for _, c := range list {
		companions = append(companions, a.wireCompanion(c))
	}
	return wire.WriteData(w, struct {
		Companions []wireCompanion `json:"companions"`
		Max        int             `json:"max"`
	}{companions, booking.MaxCompanions})
}

// addCompanion is POST /v2/keys/{key}/companions (the owner's key): {label} -> {id, label, key, url}.
func (a *API) addCompanion(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Label *string `json:"label"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	label, err := wire.Text("label", body.Label, maxLabel)
	if err != nil {
		return err
	}
	companion, err := a.Reserve.AddCompanion(r.Context(), chi.URLParam(r, "key"), label)
	if err != nil {
		return err
	}
	return wire.WriteData(w, a.wireCompanion(companion))
}

// revokeCompanion is DELETE /v2/keys/{key}/companions/{id} (the owner's key).
func (a *API) revokeCompanion(w http.ResponseWriter, r *http.Request) error {
	id, err := companionID(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.RevokeCompanion(r.Context(), chi.URLParam(r, "key"), id); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// adminRevokeCompanion is DELETE /v2/admin/reservations/{id}/companions/{companion}.
func (a *API) adminRevokeCompanion(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	companion, err := companionID(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.RevokeCompanionAs(r.Context(), id, companion, wire.Principal(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

func companionID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "companion"), 10, 64)
	if err != nil {
		return 0, reserve.ErrNoCompanion
	}
	return id, nil
}
