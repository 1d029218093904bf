package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Changes of a stay by its guest. End times are real ends (docs/specification.md, Changes).

// showExtension serves GET /v2/keys/{key}/extension:
//
//	{options: [{endDateTime, amount}], holdUntil (RFC 3339)}
func (a *API) showExtension(w http.ResponseWriter, r *http.Request) error {
	key, err := a.Access.Lookup(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	offer, err := a.Reserve.ExtensionOffer(r.Context(), key.Reservation.ID)
	if err != nil {
		return err
	}
	if key.Key.Kind != booking.OwnerKey {
		offer.Options = nil
	}
	type option struct {
		EndDateTime string `json:"endDateTime"`
		Amount      int    `json:"amount"`
	}
	options := make([]option, 0, len(offer.Options))
	for _, o := range offer.Options {
		options = append(options, option{wire.Minute(o.End, key.Branch.Zone), o.Amount})
	}
	return wire.WriteData(w, struct {
		Options   []option `json:"options"`
		HoldUntil string   `json:"holdUntil"`
	}{options, offer.HoldUntil.In(key.Branch.Zone).Format(time.RFC3339)})
}

// extendStay serves POST /v2/keys/{key}/extension, by the owner's key. It takes a hold (cookie PAY_SESSIONID) and registers its order:
//
//	{endDateTime, amount, orderId, holdUntil (RFC 3339)}
func (a *API) extendStay(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		EndDateTime *string `json:"endDateTime"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	end, err := wire.Time("endDateTime", body.EndDateTime, time.UTC)
	if err != nil {
		return err
	}
	key, err := a.Access.Lookup(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	if key.Key.Kind != booking.OwnerKey {
		return reserve.ErrOwnerOnly
	}
	request := reserve.ExtendRequest{ID: key.Reservation.ID, End: end, Earlier: holdToken(r, customerHoldCookie)}
	if !a.Limits.Off {
		request.Client = a.client(r)
	}
	held, err := a.Reserve.Extend(r.Context(), request)
	if err != nil {
		return err
	}
	a.setHoldCookie(w, customerHoldCookie, held.Token, held.TTL)
	return wire.WriteData(w, struct {
		EndDateTime string `json:"endDateTime"`
		Amount      int    `json:"amount"`
		OrderID     string `json:"orderId"`
		HoldUntil   string `json:"holdUntil"`
	}{*body.EndDateTime, held.Amount, held.OrderID, held.HoldUntil.In(key.Branch.Zone).Format(time.RFC3339)})
}

// endStay serves POST /v2/keys/{key}/end, by the owner's key:
//
//	{freedFromDateTime, refund}
func (a *API) endStay(w http.ResponseWriter, r *http.Request) error {
	key, err := a.Access.Lookup(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	if key.Key.Kind != booking.OwnerKey {
		return reserve.ErrOwnerOnly
	}
	ended, err := a.Reserve.EndStay(r.Context(), key.Reservation.ID)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		FreedFromDateTime string `json:"freedFromDateTime"`
		Refund            int    `json:"refund"`
	}{wire.Minute(ended.FreedFrom, ended.Branch.Zone), ended.Refund})
}

// exchangeStay serves POST /v2/my-reservations/{id}/exchange. A stay of another price is held (cookie PAY_SESSIONID):
//
//	{moved: true} or {moved: false, amount}
func (a *API) exchangeStay(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		Room          json.RawMessage `json:"room"` // a number, or text as in the list of the guest
		StartDateTime *string         `json:"startDateTime"`
		EndDateTime   *string         `json:"endDateTime"`
		wire.RefundAccount
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	request := reserve.ExchangeRequest{ID: id, By: wire.Principal(r), Earlier: holdToken(r, customerHoldCookie)}
	room, err := wire.NumberOrText("room", body.Room)
	if err != nil {
		return err
	}
	if request.Room, err = wire.Whole("room", room, 1, maxRoom); err != nil {
		return err
	}
	if request.Times, err = localInterval(body.StartDateTime, body.EndDateTime); err != nil {
		return err
	}
	if request.Account, err = body.Account(); err != nil {
		return err
	}
	if !a.Limits.Off {
		request.Client = a.client(r)
	}
	result, err := a.Reserve.Exchange(r.Context(), request)
	if err != nil {
		return err
	}
	if result.Moved {
		return wire.WriteData(w, map[string]bool{"moved": true})
	}
	a.setHoldCookie(w, customerHoldCookie, result.Token, result.TTL)
	return wire.WriteData(w, struct {
		Moved  bool `json:"moved"`
		Amount int  `json:"amount"`
	}{false, result.Amount})
}

// ofExtension marks the answer as that of an extension and hides the contact of the guest, who may not be the client that extends the stay.
func (c *confirmed) ofExtension(r booking.Reservation) {
	if r.Extends != 0 {
		c.Extension = true
		c.hideContact()
	}
}
