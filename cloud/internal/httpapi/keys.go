package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Maximum lengths in characters.
const (
	maxKeyReason = 500
	maxLabel     = 30
)

// correctContact serves PATCH /v2/admin/reservations/{id}/contact.
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

// rotateKey serves POST /v2/admin/reservations/{id}/key:
//
//	{sent}   false: the reservation has no contact
func (a *API) rotateKey(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	reason, err := wire.DecodeReason(r, maxKeyReason)
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

// listCompanions serves GET /v2/keys/{key}/companions (the owner's key):
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

// addCompanion serves POST /v2/keys/{key}/companions (the owner's key): {label} -> {id, label, key, url}.
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
	if strings.ContainsFunc(label, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
		return wire.Malformed("label") // the door history shows it
	}
	companion, err := a.Reserve.AddCompanion(r.Context(), chi.URLParam(r, "key"), label)
	if err != nil {
		return err
	}
	return wire.WriteData(w, a.wireCompanion(companion))
}

// revokeCompanion serves DELETE /v2/keys/{key}/companions/{id} (the owner's key).
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

// adminRevokeCompanion serves DELETE /v2/admin/reservations/{id}/companions/{companion}.
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

// whyKey serves GET /v2/keys/{key}/why: {code, since, until, message, next: [{action, at, phone}]}. An unknown key is answered
// with 200, too, and takes the same time.
func (a *API) whyKey(w http.ResponseWriter, r *http.Request) error {
	kind, lang, err := whyQuery(r)
	if err != nil {
		return err
	}
	d, err := a.Access.Why(r.Context(), chi.URLParam(r, "key"), r.URL.Query().Get("branch"), kind)
	return a.writeWhy(w, r, d, lang, err)
}

// whyReservation serves GET /v2/admin/reservations/{id}/why: the answer for the owner's key.
func (a *API) whyReservation(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	branch, err := a.Reserve.BranchOf(r.Context(), id)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, branch.Code); err != nil {
		return err
	}
	kind, lang, err := whyQuery(r)
	if err != nil {
		return err
	}
	d, err := a.Access.WhyReservation(r.Context(), id, kind)
	return a.writeWhy(w, r, d, lang, err)
}

// whyQuery reads the door, by default the front, and the language, by default that of the browser.
func whyQuery(r *http.Request) (kind, lang string, err error) {
	kind, lang = r.URL.Query().Get("door"), r.URL.Query().Get("lang")
	switch {
	case kind == "":
		kind = access.Front
	case kind != access.Front && kind != access.Room:
		return "", "", wire.UnknownValue("door")
	}
	switch lang {
	case "":
		lang = wire.Language(r)
	case "ko", "en":
	default:
		return "", "", wire.UnknownValue("lang")
	}
	return kind, lang, nil
}

func (a *API) writeWhy(w http.ResponseWriter, r *http.Request, d access.Diagnosis, lang string, err error) error {
	if errors.Is(err, access.ErrUnknownDoor) {
		return wire.UnknownValue("door")
	}
	if err != nil {
		return err
	}
	type step struct {
		Action string  `json:"action"`
		At     *string `json:"at"`
		Phone  *string `json:"phone"`
	}
	next := make([]step, 0, len(d.Next))
	for _, s := range d.Next {
		one := step{Action: string(s.Action), At: wire.Instant(s.At)}
		if s.Action == access.Call {
			one.Phone = wire.Nullable(a.phoneOf(r, d.Branch))
		}
		next = append(next, one)
	}
	return wire.WriteData(w, struct {
		Code    string  `json:"code"`
		Since   *string `json:"since"`
		Until   *string `json:"until"`
		Message string  `json:"message"`
		Next    []step  `json:"next"`
	}{string(d.Code), wire.Instant(d.Since), wire.Instant(d.Until), d.Message(lang), next})
}

// phoneOf returns the number that a guest of a branch calls: that of the branch, or of the company if it has none.
func (a *API) phoneOf(r *http.Request, branch booking.Branch) string {
	return cmp.Or(branch.Phone, a.Company.Current(r.Context()).Company.Phone)
}
