package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// errStepUp is returned when an administrator must confirm the identity first.
var errStepUp = errors.New("httpapi: the identity must be confirmed")

// sensitive lists the endpoints that need a recent login or confirmation (docs/specification.md, Login 12). A message shows
// the key and the PIN of a stay to administrators who may open doors, so only they are asked. A token or an administrator would do
// all of it without a proof, so a session that is not confirmed makes none.
var sensitive = map[string]bool{
	"GET /v2/admin/messages/{id}":                        true,
	"POST /v2/admin/reservations/{id}/refund":            true,
	"POST /v2/admin/reservations/{id}/refund/approval":   true,
	"DELETE /v2/admin/reservations/{id}/refund/approval": true,
	"POST /v2/admin/reservations/{id}/refunds":           true,
	"POST /v2/admin/differences/{id}/refund":             true,
	"POST /v2/admin/personal-data/export":                true,
	"POST /v2/admin/branches/{branch}/exports":           true,
	"GET /v2/admin/branches/{branch}/payments.csv":       true,
	"GET /v2/admin/settlement.csv":                       true,
	"GET /v2/admin/settlement.xlsx":                      true,
	"PUT /v2/admin/entities/{entity}":                    true,
	"PATCH /v2/admin/entities/{entity}":                  true,
	"PUT /v2/admin/branches/{branch}/entity":             true,
	"POST /v2/admin/tokens":                              true,
	"POST /v2/admin/administrators":                      true,
	"PUT /v2/admin/administrators/{id}":                  true,
	"POST /v2/admin/administrators/{id}/password":        true,
	"DELETE /v2/admin/administrators/{id}/totp":          true,
}

// checkStepUp returns errStepUp if the route is sensitive and the last proof of the identity is too old.
func (a *API) checkStepUp(r *http.Request) error {
	pattern := strings.TrimPrefix(chi.RouteContext(r.Context()).RoutePattern(), "/api")
	if !sensitive[r.Method+" "+pattern] || strings.HasPrefix(pattern, "/v2/admin/messages/") && !wire.Principal(r).MayOpen() {
		return nil
	}
	confirmed, err := a.Sessions.Confirmed(r)
	if err == nil && !confirmed {
		err = errStepUp
	}
	return err
}
