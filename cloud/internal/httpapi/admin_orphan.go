package httpapi

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// refundOrphan serves POST /v2/admin/differences/{id}/refund (headquarters): it refunds the provider's money for an order that
// the database does not have.
func (a *API) refundOrphan(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Bank    *string `json:"refundBankCode"`
		Account *string `json:"refundAccount"`
		Holder  *string `json:"refundHolder"`
	}
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return backoffice.ErrNoDiscrepancy
	}
	account, err := wire.RefundAccount{Bank: body.Bank, Number: body.Account, Holder: body.Holder}.AccountOf("refundBankCode", "refundAccount", "refundHolder")
	if err != nil {
		return err
	}
	if err := a.Reserve.RefundOrphan(r.Context(), reserve.OrphanRequest{Discrepancy: id, Account: account, By: wire.Principal(r)}); err != nil {
		return accountOf(err)
	}
	return wire.WriteData(w, nil)
}

// checkPayment serves POST /v2/admin/reservations/{id}/check: it looks the payment up at the provider now.
func (a *API) checkPayment(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.Check(r.Context(), id, wire.Principal(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
