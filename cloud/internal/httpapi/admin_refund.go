package httpapi

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// maxIdempotencyKey bounds the header Idempotency-Key, in bytes.
const maxIdempotencyKey = 300

// refundBody is the body of POST /v2/admin/reservations/{id}/refunds.
type refundBody struct {
	Amount         *int    `json:"amount"`
	Reason         *string `json:"reason"`
	Bank           *string `json:"refundBankCode"`
	Account        *string `json:"refundAccount"`
	Holder         *string `json:"refundHolder"`
	SettledOutside *struct {
		How       *string `json:"how"`
		Reference *string `json:"reference"`
	} `json:"settledOutside"`
}

// refund serves POST /v2/admin/reservations/{id}/refunds: it returns a part of the payment through the provider, and the
// reservation stays. With settledOutside the money was returned outside the provider, and the reservation ends.
func (a *API) refund(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body refundBody
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxIdempotencyKey {
		return wire.OutOfRange("Idempotency-Key", 1, maxIdempotencyKey)
	}
	var result reserve.RefundResult
	if body.SettledOutside != nil {
		result, err = a.settleOutside(r, id, key, body)
	} else {
		result, err = a.refundPart(r, id, key, body)
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		RefundID string `json:"refundId"`
		Amount   int    `json:"amount"`
		Balance  int    `json:"balance"`
		Approval bool   `json:"approvalRequired"`
	}{strconv.FormatInt(result.ID, 10), result.Amount, result.Balance, result.Waits})
}

func (a *API) refundPart(r *http.Request, id booking.ReservationID, key string, body refundBody) (result reserve.RefundResult, err error) {
	request := reserve.PartRequest{ID: id, IdempotencyKey: key, By: wire.Principal(r)}
	if request.Amount, err = wire.Whole("amount", body.Amount, 1, math.MaxInt32); err != nil {
		return result, err
	}
	if request.Reason, err = wire.Text("reason", body.Reason, 200); err != nil {
		return result, err
	}
	account := wire.RefundAccount{Bank: body.Bank, Number: body.Account, Holder: body.Holder}
	if request.Account, err = account.AccountOf("refundBankCode", "refundAccount", "refundHolder"); err != nil {
		return result, err
	}
	result, err = a.Reserve.RefundPart(r.Context(), request)
	return result, accountOf(err)
}

// accountOf names a missing account as the requests that call its bank refundBankCode do.
func accountOf(err error) error {
	if errors.Is(err, reserve.ErrAccountRequired) {
		return wire.Missing("refundBankCode")
	}
	return err
}

func (a *API) settleOutside(r *http.Request, id booking.ReservationID, key string, body refundBody) (result reserve.RefundResult, err error) {
	request := reserve.OutsideRequest{ID: id, IdempotencyKey: key, By: wire.Principal(r)}
	if body.Amount != nil {
		if request.Amount, err = wire.Whole("amount", body.Amount, 1, math.MaxInt32); err != nil {
			return result, err
		}
	}
	if request.Reason, err = wire.OptionalText("reason", body.Reason, 200); err != nil {
		return result, err
	}
	request.Reason = cmp.Or(request.Reason, reserve.ByOutside)
	if request.How, err = wire.Text("settledOutside.how", body.SettledOutside.How, 100); err != nil {
		return result, err
	}
	if request.Reference, err = wire.Text("settledOutside.reference", body.SettledOutside.Reference, 200); err != nil {
		return result, err
	}
	return a.Reserve.SettleOutside(r.Context(), request)
}
