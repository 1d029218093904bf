package httpapi

import (
	"io"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// providerCallback is POST /virtualaccount/webhook. Any answer but 200 has the provider send it again.
func (a *API) providerCallback(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return errBodyTooLarge
	}
	event, err := toss.ParseEvent(body)
	if err != nil {
		return errMalformedBody
	}
	if event.Kind == toss.OtherEvent && event.Type == "" {
		return missing("orderId")
	}
	if err := a.Reserve.ReceiveCallback(r.Context(), event, r.Header.Get("tosspayments-webhook-transmission-id")); err != nil {
		return err
	}
	return writeData(w, nil)
}
