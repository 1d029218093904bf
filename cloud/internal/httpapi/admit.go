package httpapi

import (
	"net/http"
	"strings"
)

// admit rejects new requests while the database is overloaded, before they have asked it for anything. Without this, all requests wait
// equally, each several times, and under a lasting overload nearly all of them reach their deadline: nothing is done at all. The database
// logs that it is overloaded; a line for each request would be part of the load.
func (a *API) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !alwaysAdmitted(r) && a.Overloaded() {
			a.fail(w, r, errOverloaded)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// alwaysAdmitted reports whether a request is for a guest at a door, whose presses have connections of their own, or completes a
// purchase that the guest has approved at the payment provider.
func alwaysAdmitted(r *http.Request) bool {
	switch path := strings.TrimPrefix(r.URL.Path, "/api"); {
	case strings.HasPrefix(path, "/door/"), strings.HasPrefix(path, "/v2/keys/"):
		return true
	case path == "/payment/confirm", path == "/virtualaccount/webhook":
		return true
	}
	return false
}
