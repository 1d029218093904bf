package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// noToken marks endpoints that need a person: the own account, tokens, administrators, and the second person's approval of a
// refund, and the appearance of the company.
const noToken account.Scope = ""

// scopes declares the scope that a token needs for each endpoint of administrators, by method and route
// (docs/specification.md, Tokens 3). Reads without a row need the scope read; other endpoints without a row reject tokens.
var scopes = map[string]account.Scope{
	"DELETE /admin/reservation/{id}":        account.ScopeMoney,
	"PUT /admin/reservation/{id}":           account.ScopeBook,
	"POST /admin/reservation":               account.ScopeBook,
	"POST /admin/payment":                   account.ScopeBook,
	"POST /admin/v2/virtual-accounts":       account.ScopeMoney,
	"PATCH /admin/machines/{branch}/{room}": account.ScopeBook,

	"POST /admin/door/v2/unlock/{branch}/{doorType}":          account.ScopeDoors,
	"POST /admin/door/v2/unlock/{branch}/{doorType}/{roomNo}": account.ScopeDoors,
	"GET /admin/door/v2/unlock/subscribe":                     account.ScopeDoors, // it may carry a PIN
	"POST /admin/door/unlock/{branch}/{doorType}":             account.ScopeDoors,
	"POST /admin/door/unlock/{branch}/{doorType}/{roomNo}":    account.ScopeDoors,
	"POST /admin/airconditioner/{airconditioner_id}":          account.ScopeClimate,
	"POST /admin/thermo-hygrometer/{branch}":                  account.ScopeClimate,

	"POST /v2/admin/cleaning/{branch}/{room}/unlock":     account.ScopeDoors,
	"POST /v2/admin/cleaning/{branch}/{room}/done":       account.ScopeBook,
	"POST /v2/admin/branches/{branch}/agents":            account.ScopeDoors,
	"DELETE /v2/admin/agents/{username}":                 account.ScopeDoors,
	"POST /v2/admin/agents/{username}/activate":          account.ScopeDoors,
	"POST /v2/admin/agents/{username}/rotate":            account.ScopeDoors,
	"PUT /v2/admin/branches/{branch}/doors/{device}/pin": account.ScopeDoors,

	"POST /v2/admin/messages/{id}/resend":                            account.ScopeBook,
	"POST /v2/admin/reservations/{id}/key-message":                   account.ScopeBook,
	"POST /v2/admin/reservations/{id}/key":                           account.ScopeBook,
	"PATCH /v2/admin/reservations/{id}/contact":                      account.ScopeBook,
	"DELETE /v2/admin/reservations/{id}/companions/{companion}":      account.ScopeBook,
	"POST /v2/admin/branches/{branch}/handover":                      account.ScopeBook,
	"PATCH /v2/admin/branches/{branch}/handover/{note}":              account.ScopeBook,
	"POST /v2/admin/reservations/{id}/guest/notes":                   account.ScopeBook,
	"DELETE /v2/admin/reservations/{id}/guest/notes/{note}":          account.ScopeBook,
	"PUT /v2/admin/reservations/{id}/guest/block":                    account.ScopeBook,
	"DELETE /v2/admin/reservations/{id}/guest/block":                 account.ScopeBook,
	"PUT /v2/admin/branches/{branch}/settings":                       account.ScopeBook,
	"PUT /v2/admin/agents/{username}/settings":                       account.ScopeDoors,
	"POST /v2/admin/agents/{username}/diagnostics":                   account.ScopeDoors,
	"DELETE /v2/admin/agents/{username}/diagnostics":                 account.ScopeDoors,
	"POST /v2/admin/closures":                                        account.ScopeBook,
	"POST /v2/admin/branches":                                        account.ScopeBook,
	"GET /v2/admin/alert-contacts":                                   account.ScopeBook, // addresses of webhooks are secrets
	"PUT /v2/admin/alert-contacts":                                   account.ScopeBook,
	"POST /v2/admin/alerts/{id}/acknowledge":                         account.ScopeBook,
	"PUT /v2/admin/branches/{branch}/rooms/{room}":                   account.ScopeBook,
	"DELETE /v2/admin/branches/{branch}/rooms/{room}":                account.ScopeBook,
	"GET /v2/admin/branches/{branch}/rooms/{room}/prices":            account.ScopeRead,
	"PUT /v2/admin/branches/{branch}/rooms/{room}/prices":            account.ScopeBook,
	"POST /v2/admin/branches/{branch}/rooms/{room}/prices/preview":   account.ScopeRead,
	"PUT /v2/admin/branches/{branch}/rooms/{room}/profile":           account.ScopeBook,
	"POST /v2/admin/branches/{branch}/rooms/{room}/photos":           account.ScopeBook,
	"DELETE /v2/admin/branches/{branch}/rooms/{room}/photos/{photo}": account.ScopeBook,
	"POST /v2/admin/branches/{branch}/arrival":                       account.ScopeBook,
	"PUT /v2/admin/branches/{branch}/arrival/{step}":                 account.ScopeBook,
	"DELETE /v2/admin/branches/{branch}/arrival/{step}":              account.ScopeBook,
	"POST /v2/admin/branches/{branch}/channels":                      account.ScopeBook,
	"PATCH /v2/admin/branches/{branch}/channels/{listing}":           account.ScopeBook,
	"POST /v2/admin/branches/{branch}/channels/{listing}/export":     account.ScopeBook,
	"POST /v2/admin/branches/{branch}/partner-bookings":              account.ScopeBook,
	"POST /v2/admin/personal-data/export":                            account.ScopeRead,
	"POST /v2/admin/personal-data/erase":                             account.ScopeBook,

	"POST /v2/admin/branches/{branch}/exports":           account.ScopeRead,
	"POST /v2/admin/reservations/{id}/refund":            account.ScopeMoney,
	"POST /v2/admin/reservations/{id}/refund/approval":   noToken,
	"DELETE /v2/admin/reservations/{id}/refund/approval": noToken,
	"POST /v2/admin/reservations/{id}/refunds":           account.ScopeMoney,
	"POST /v2/admin/reservations/{id}/check":             account.ScopeMoney,
	"POST /v2/admin/reservations/{id}/cash-receipt":      account.ScopeMoney,
	"POST /v2/admin/differences/{id}/refund":             account.ScopeMoney,
	"POST /v2/admin/reconciliation":                      account.ScopeMoney,
	"POST /v2/admin/differences/{id}/resolution":         account.ScopeMoney,

	"POST /admin/logout":                                       noToken,
	"GET /v2/me":                                               account.ScopeRead,
	"GET /v2/admin/account":                                    noToken,
	"POST /v2/admin/account/password":                          noToken,
	"POST /v2/admin/account/totp":                              noToken,
	"PUT /v2/admin/account/totp":                               noToken,
	"DELETE /v2/admin/account/totp":                            noToken,
	"POST /v2/admin/account/recovery-codes":                    noToken,
	"POST /v2/admin/account/passkeys/options":                  noToken,
	"POST /v2/admin/account/passkeys":                          noToken,
	"DELETE /v2/admin/account/passkeys/{id}":                   noToken,
	"GET /v2/admin/account/confirmation":                       noToken,
	"POST /v2/admin/account/confirmation":                      noToken,
	"DELETE /v2/admin/account/sessions/{session}":              noToken,
	"GET /v2/admin/administrators":                             noToken,
	"POST /v2/admin/administrators":                            noToken,
	"PUT /v2/admin/administrators/{id}":                        noToken,
	"PATCH /v2/admin/administrators/{id}":                      noToken,
	"POST /v2/admin/administrators/{id}/password":              noToken,
	"DELETE /v2/admin/administrators/{id}/totp":                noToken,
	"DELETE /v2/admin/administrators/{id}/sessions":            noToken,
	"PUT /v2/admin/branches/{branch}/climate-policy":           account.ScopeClimate,
	"POST /v2/admin/branches/{branch}/quarantine/{id}/release": account.ScopeBook,
	"PUT /v2/admin/company":                                    noToken,
	"PUT /v2/admin/company/logo":                               noToken,
	"DELETE /v2/admin/company/logo":                            noToken,
	"POST /v2/admin/company/texts":                             noToken,
	"PUT /v2/admin/entities/{entity}":                          noToken,
	"PATCH /v2/admin/entities/{entity}":                        noToken,
	"PUT /v2/admin/branches/{branch}/entity":                   noToken,
	"POST /v2/admin/webhooks":                                  account.ScopeRead, // a webhook delivers what the scope read reads
	"PATCH /v2/admin/webhooks/{id}":                            account.ScopeRead,
	"DELETE /v2/admin/webhooks/{id}":                           account.ScopeRead,
	"POST /v2/admin/webhooks/{id}/replay":                      account.ScopeRead,
	"GET /v2/admin/tokens":                                     noToken,
	"POST /v2/admin/tokens":                                    noToken,
	"GET /v2/admin/tokens/{id}":                                noToken,
	"DELETE /v2/admin/tokens/{id}":                             noToken,
}

// ScopeOf returns the scope that a token needs for a route, such as "GET /v2/admin/live"; false if no token may use it.
func ScopeOf(route string) (account.Scope, bool) {
	scope, declared := scopes[route]
	if !declared && strings.HasPrefix(route, http.MethodGet+" ") {
		return account.ScopeRead, true
	}
	return scope, scope != noToken
}

// cancelRoute takes the scope book as well: the state of the reservation decides whether money moves, so reserve.AdminCancel
// demands the scope money for a refund.
const cancelRoute = "DELETE /admin/reservation/{id}"

// checkScope returns account.ErrScopeForbidden if the request has a token without the scope of its route.
func checkScope(r *http.Request) error {
	p := wire.Principal(r)
	if !p.Token() {
		return nil
	}
	route := routeOf(r)
	if scope, ok := ScopeOf(route); ok && p.Has(scope) || route == cancelRoute && p.Has(account.ScopeBook) {
		return nil
	}
	return account.ErrScopeForbidden
}

// routeOf returns the method and route of a request as scopes spells them.
func routeOf(r *http.Request) string {
	return r.Method + " " + strings.TrimPrefix(chi.RouteContext(r.Context()).RoutePattern(), "/api")
}

// challenge returns the WWW-Authenticate of an error (RFC 6750, section 3): for a token that is not accepted, and for a request
// without credentials to an endpoint of administrators that accepts a token. It is empty for every other error.
func challenge(r *http.Request, err error) string {
	const bearer = `Bearer realm="yeolda"`
	route := routeOf(r)
	scope, ok := ScopeOf(route)
	switch {
	case errors.Is(err, session.ErrToken):
		return bearer + `, error="invalid_token"`
	case errors.Is(err, account.ErrScopeForbidden):
		if ok {
			return bearer + `, error="insufficient_scope", scope="` + string(scope) + `"`
		}
		return bearer + `, error="insufficient_scope"`
	case errors.Is(err, errNoSession) && ok && strings.Contains(route, "/admin/"):
		return bearer
	}
	return ""
}

// guarded is handle for endpoints that a token can use only with their scope, and an administrator only after a recent proof
// of the identity, if they are sensitive.
func (a *API) guarded(allow layer, h handler) http.HandlerFunc {
	return a.handle(allow, func(w http.ResponseWriter, r *http.Request) error {
		if err := checkScope(r); err != nil {
			return err
		}
		if err := a.checkStepUp(r); err != nil {
			return err
		}
		return h(w, r)
	})
}
