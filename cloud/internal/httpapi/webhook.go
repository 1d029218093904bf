package httpapi

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// providerCallback serves POST /virtualaccount/webhook. Any answer but 200 has the provider send it again.
func (a *API) providerCallback(w http.ResponseWriter, r *http.Request) error {
	body, err := wire.ReadBody(r)
	if err != nil {
		return err
	}
	event, err := toss.ParseEvent(body)
	if err != nil {
		return wire.ErrMalformedBody
	}
	transmission := r.Header.Get(toss.TransmissionIDHeader)
	switch {
	case event.Kind == toss.OtherEvent && event.Type == "":
		return wire.Missing("orderId")
	case !validText(event.OrderID):
		return wire.Malformed("orderId")
	case event.Kind != toss.OtherEvent && event.Status == "":
		return wire.Missing("status")
	case !validText(event.Status):
		return wire.Malformed("status")
	case !validText(transmission):
		transmission = ""
	}
	retries := r.Header.Get(toss.RetriedCountHeader)
	delivery := reserve.Transmission{ID: transmission, Retried: retries != "" && retries != "0"}
	if err := a.limitCallback(r, event); err != nil {
		return err
	}
	if err := a.Reserve.ReceiveCallback(r.Context(), event, delivery); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// unsignedCallbacks bounds the callbacks per address that carry no secret: any client can send them, and each may have the
// provider asked. One that is refused is delivered again.
var unsignedCallbacks = limit.Rule{Name: "unsigned-callback", Max: 120, Window: time.Minute}

func (a *API) limitCallback(r *http.Request, event toss.Event) error {
	if event.Kind != toss.PaymentStatusChanged {
		return nil
	}
	return a.Limits.Take(r.Context(), unsignedCallbacks, a.client(r))
}
