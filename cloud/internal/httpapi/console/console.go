// Package console serves the additions of the HTTP interface for the console of administrators, /v2/admin. Handlers
// decode, call one verb and encode. Times are real here, also where a reservation ends.
package console

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/live"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/proof"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
)

// Console holds the handlers. Every field is required.
type Console struct {
	Backoffice *backoffice.Service
	Reserve    *reserve.Service
	Devices    *device.Service
	Rollouts   *rollout.Service
	Account    *account.Service
	Partner    *partner.Service
	Live       *live.Hub
	Webhooks   *events.Webhooks
	Proofs     *proof.Service
	Company    *company.Service
	Entities   *company.Entities
	Sessions   *session.Manager
	Now        func() time.Time

	PublicURL string // of links to calendars and of the command that enrolls an agent

	sockets sockets // of LiveEvents
}

// branch returns the branch of the path if it is in the administrator's scope.
func (c *Console) branch(r *http.Request) (booking.Branch, error) {
	code := chi.URLParam(r, "branch")
	if err := wire.Scope(r, code); err != nil {
		return booking.Branch{}, err
	}
	return c.Backoffice.Branch(r.Context(), code)
}

// client returns the address of the client.
func client(r *http.Request) string { return audit.OriginOf(r.Context()).Address }

// actor returns the name of the administrator in the audit log.
func actor(r *http.Request) string { return wire.Principal(r).Actor() }
