package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/franchise"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/console"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/idempotency"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// API serves the HTTP interface by calling verbs. Every field is required unless its comment says otherwise.
type API struct {
	Backoffice  *backoffice.Service
	Console     *console.Console
	Reserve     *reserve.Service
	Access      *access.Service
	Climate     *climate.Service
	Account     *account.Service
	Franchise   *franchise.Service
	Limits      *limit.Limiter
	Sessions    *session.Manager
	Idempotency *idempotency.Service
	Events      *events.Service
	Company     *company.Service
	Entities    *company.Entities
	Gallery     *gallery.Service
	Log         *slog.Logger
	Now         func() time.Time

	Unavailable func(error) bool // reports whether the database is away
	Overloaded  func() bool      // reports whether new work would keep the work in progress from ending in time

	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For is trusted; may be empty
	CustomerTTL    time.Duration  // lifetime of a customer's session
	Discord        http.Handler   // the chat bot
	Site           Site           // settings that the pages use

	lookUps   lookUps
	untrusted atomic.Pointer[seenProxy] // the last one that TrustedProxies lacks
}

// Site holds the settings that the web pages show or use.
type Site struct {
	PublicURL     string
	TossClientKey string
	TossScript    string // address of the widget's script
}
