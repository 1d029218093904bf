package httpapi

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
)

// Cookies that keep attempts from elsewhere from locking a browser out. None of them grants access.
const (
	browserCookie     = "LOGIN_BROWSER" // identifies the browser that requested a login code
	deviceCookie      = "LOGIN_DEVICE"  // recognises a browser of a customer
	adminDeviceCookie = "ADMIN_DEVICE"  // recognises a browser of an administrator

	browserTTL = 10 * time.Minute
)

// browser returns what a browser sends along when it logs in as a customer.
func (a *API) browser(r *http.Request) account.Browser {
	return account.Browser{
		Client: a.client(r), Secret: cookieValue(r, browserCookie), Device: account.Device(cookieValue(r, deviceCookie)),
	}
}

// setDevice has a browser recognised after a login.
func (a *API) setDevice(w http.ResponseWriter, cookie, subject string) {
	a.Sessions.SetCookie(w, cookie, string(a.Account.NewDevice(subject)), account.DeviceTTL)
}

func cookieValue(r *http.Request, name string) string {
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}
