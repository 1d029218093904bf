package httpapi

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// showRefundLink serves GET /v2/refund-accounts/{token} (any client with the link):
//
//	{amount, expiresAt (RFC 3339)}
func (a *API) showRefundLink(w http.ResponseWriter, r *http.Request) error {
	link, err := a.Reserve.RefundLinkOf(r.Context(), chi.URLParam(r, "token"))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Amount    int     `json:"amount"`
		ExpiresAt *string `json:"expiresAt"`
	}{link.Amount, wire.Instant(link.ExpiresAt)})
}

// enterRefundAccount serves POST /v2/refund-accounts/{token}: the guest enters the account of the refund, once.
func (a *API) enterRefundAccount(w http.ResponseWriter, r *http.Request) error {
	token := chi.URLParam(r, "token")
	if _, err := a.Reserve.RefundLinkOf(r.Context(), token); err != nil {
		return err
	}
	var body struct {
		Bank    *string `json:"refundBankCode"`
		Account *string `json:"refundAccount"`
		Holder  *string `json:"refundHolder"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	account := wire.RefundAccount{Bank: body.Bank, Number: body.Account, Holder: body.Holder}
	to, err := account.AccountOf("refundBankCode", "refundAccount", "refundHolder")
	if err != nil {
		return err
	}
	if to == nil {
		return wire.Missing("refundBankCode")
	}
	if err := a.Reserve.EnterRefundAccount(r.Context(), token, *to); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// wireCompensation is what a guest got for a door that did not open.
type wireCompensation struct {
	Kind    string  `json:"kind"`
	Minutes int     `json:"minutes"`
	Amount  int     `json:"amount"`
	At      *string `json:"at"`
}

// compensation returns what the guest of a reservation got, or nil.
func (a *API) compensation(ctx context.Context, id booking.ReservationID) (*wireCompensation, error) {
	c, err := a.Reserve.CompensationOf(ctx, id)
	if err != nil || c.Kind == "" {
		return nil, err
	}
	return &wireCompensation{c.Kind, c.Minutes, c.Amount, wire.Instant(c.At)}, nil
}
