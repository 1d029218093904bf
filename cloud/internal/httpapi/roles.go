package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// The administrators' endpoints that each limited role may use, by method and route (docs/specification.md, Administration
// 8). An endpoint without a row is closed to them.
var (
	ownRoutes = []string{
		"POST /admin/login", "POST /admin/logout",
		"GET /v2/admin/account", "POST /v2/admin/account/password", "POST /v2/admin/account/totp", "PUT /v2/admin/account/totp",
		"DELETE /v2/admin/account/totp", "POST /v2/admin/account/recovery-codes", "POST /v2/admin/account/passkeys/options",
		"POST /v2/admin/account/passkeys", "DELETE /v2/admin/account/passkeys/{id}", "POST /v2/admin/passkeys/options",
		"POST /v2/admin/passkeys/login", "GET /v2/admin/account/confirmation", "POST /v2/admin/account/confirmation",
		"DELETE /v2/admin/account/sessions/{session}",
	}

	roleRoutes = map[account.Role][]string{
		account.FrontDesk: {
			"GET /admin/reservations", "GET /admin/reservation/{id}", "DELETE /admin/reservation/{id}", "PUT /admin/reservation/{id}",
			"POST /admin/reservation", "POST /admin/payment", "POST /admin/v2/virtual-accounts",
			"GET /v2/admin/reservations", "GET /v2/admin/reservations/{id}", "GET /v2/admin/reservations/{id}/why",
			"POST /v2/admin/reservations/{id}/key", "PATCH /v2/admin/reservations/{id}/contact",
			"DELETE /v2/admin/reservations/{id}/companions/{companion}", "POST /v2/admin/branches/{branch}/partner-bookings",
			"GET /v2/admin/branches/{branch}/timeline",
			"GET /v2/admin/branches/{branch}/handover", "POST /v2/admin/branches/{branch}/handover",
			"PATCH /v2/admin/branches/{branch}/handover/{note}",
			"GET /v2/admin/reservations/{id}/guest", "POST /v2/admin/reservations/{id}/guest/notes",
			"DELETE /v2/admin/reservations/{id}/guest/notes/{note}",

			"GET /v2/admin/branches/{branch}/messages", "GET /v2/admin/messages/{id}", "POST /v2/admin/messages/{id}/resend",
			"POST /v2/admin/reservations/{id}/key-message",

			"POST /admin/door/v2/unlock/{branch}/{doorType}", "POST /admin/door/v2/unlock/{branch}/{doorType}/{roomNo}",
			"GET /admin/door/v2/unlock/subscribe", "POST /admin/door/unlock/{branch}/{doorType}",
			"POST /admin/door/unlock/{branch}/{doorType}/{roomNo}",
			"GET /v2/admin/branches/{branch}/doors", "GET /v2/admin/branches/{branch}/devices", "GET /v2/admin/doors/levels",

			"GET /v2/admin/overview", "GET /v2/admin/alerts", "POST /v2/admin/alerts/{id}/acknowledge", "GET /v2/admin/live",
		},
		account.Accountant: {
			"GET /v2/admin/settlement", "GET /v2/admin/settlement.csv", "GET /v2/admin/settlement.xlsx",
			"GET /v2/admin/branches/{branch}/money", "GET /v2/admin/branches/{branch}/payments",
			"GET /v2/admin/branches/{branch}/payments.csv", "POST /v2/admin/branches/{branch}/exports",
			"POST /v2/admin/reservations/{id}/refund", "POST /v2/admin/reservations/{id}/refund/approval",
			"DELETE /v2/admin/reservations/{id}/refund/approval",
			"POST /v2/admin/reservations/{id}/refunds",
			"GET /v2/admin/money-desk", "POST /v2/admin/reservations/{id}/check",
			"POST /v2/admin/reservations/{id}/cash-receipt",
			"GET /v2/admin/reports/occupancy", "GET /v2/admin/reports/occupancy.csv", "GET /v2/admin/reports/occupancy.xlsx",
			"GET /v2/admin/reports/climate", "GET /v2/admin/reports/climate.csv", "GET /v2/admin/reports/climate.xlsx",

			"GET /v2/admin/overview", "GET /v2/admin/alerts", "GET /v2/admin/live",
		},
		account.Cleaner: {
			"GET /v2/admin/cleaning", "POST /v2/admin/cleaning/{branch}/{room}/unlock", "POST /v2/admin/cleaning/{branch}/{room}/done",
		},
	}
)

// checkRole returns errNotAdministrator if the principal has a limited role that the route is not open to. Endpoints of
// guests are open to every role.
func checkRole(r *http.Request) error {
	p := wire.Principal(r)
	allowed, limited := roleRoutes[p.Role]
	if !limited {
		return nil
	}
	pattern := strings.TrimPrefix(chi.RouteContext(r.Context()).RoutePattern(), "/api")
	if !strings.HasPrefix(pattern, "/admin/") && !strings.HasPrefix(pattern, "/v2/admin/") && pattern != "/v2/events" {
		return nil
	}
	if route := r.Method + " " + pattern; !slices.Contains(ownRoutes, route) && !slices.Contains(allowed, route) {
		return errNotAdministrator
	}
	return nil
}
