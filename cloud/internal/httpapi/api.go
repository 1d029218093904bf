package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/franchise"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/console"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// API is the HTTP interface over the verbs. Every field is required but those that say otherwise.
type API struct {
	Backoffice *backoffice.Service
	Console    *console.Console
	Reserve    *reserve.Service
	Access     *access.Service
	Climate    *climate.Service
	Account    *account.Service
	Franchise  *franchise.Service
	Limits     *limit.Limiter
	Sessions   *session.Manager
	Log        *slog.Logger
	Now        func() time.Time

	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed; may be empty
	CustomerTTL    time.Duration  // life of a customer's session
	Discord        http.Handler   // the chat bot
	// GrantPublicKeys are the keys with which agents check grants, base64; they go into a new credential.
	GrantPublicKeys []string
	Site            Site // what the pages need to know
}

// Site is what the pages show and use that is a setting.
type Site struct {
	PublicURL     string
	TossClientKey string
	TossScript    string // address of the widget's script
	Company       Company
}

// Company is who runs the shop, as the law wants it shown; empty fields are unset.
type Company struct {
	Name, Representative, Address, Phone, Email, BusinessNumber, MailOrderNumber string
}
