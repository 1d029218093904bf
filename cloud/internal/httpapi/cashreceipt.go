package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// cashReceipt returns the cash receipt of a deposit; nil for other payments.
func cashReceipt(receipt reserve.Receipt) *wire.IssuedReceipt {
	if receipt.Method != booking.VirtualAccount {
		return nil
	}
	return wire.Issued(receipt.Cash)
}

// settleCashReceipt serves POST /v2/admin/reservations/{id}/cash-receipt: it asks for the receipt again, or for the first time, or
// records with settledOutside that it was issued or canceled by hand.
func (a *API) settleCashReceipt(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		CashReceipt    *wire.CashReceipt `json:"cashReceipt"`
		SettledOutside *struct {
			How       *string `json:"how"`
			Reference *string `json:"reference"`
		} `json:"settledOutside"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	request := reserve.ReceiptRequest{ID: id, By: wire.Principal(r)}
	if outside := body.SettledOutside; outside != nil {
		if request.How, err = wire.Text("settledOutside.how", outside.How, 100); err != nil {
			return err
		}
		if request.Reference, err = wire.Text("settledOutside.reference", outside.Reference, 200); err != nil {
			return err
		}
	} else if request.Wish.Type, request.Wish.Number, err = body.CashReceipt.Wish(); err != nil {
		return err
	}
	state, err := a.Reserve.SettleCashReceipt(r.Context(), request)
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]any{"status": state})
}
