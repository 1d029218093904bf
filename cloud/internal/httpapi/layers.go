package httpapi

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
)

// A layer decides who may call an endpoint (docs/specification.md, Addresses 3 and 4).
type layer func(account.Principal) error

// public requires no session: the interface's exempt list, and additions without authentication.
func public(account.Principal) error { return nil }

// loggedIn is layer 1: any session.
func loggedIn(p account.Principal) error {
	if !p.Authenticated() {
		return errNoSession
	}
	return nil
}

// customer is layer 1 for operations that only a customer's session can use.
func customer(p account.Principal) error {
	if err := loggedIn(p); err != nil {
		return err
	}
	if p.Administrator() {
		return errNotCustomer
	}
	return nil
}

// ownAccount is layer 2 for an administrator's own account, which is open to one who has yet to set up a second factor.
func ownAccount(p account.Principal) error {
	if err := loggedIn(p); err != nil {
		return err
	}
	if !p.Administrator() {
		return errNotAdministrator
	}
	return nil
}

// administrator is layer 2 for reading; viewers pass it too.
func administrator(p account.Principal) error {
	if err := ownAccount(p); err != nil {
		return err
	}
	if p.NeedsSecondFactor {
		return errNeedsSecondFactor
	}
	return nil
}

// editor is layer 2 for changes.
func editor(p account.Principal) error {
	if err := administrator(p); err != nil {
		return err
	}
	if !p.MayChange() && !p.Role.Limited() { // checkRole decides about limited roles
		return errNotAdministrator
	}
	return nil
}

// headquarters is layer 2 for what concerns all branches.
func headquarters(p account.Principal) error {
	if err := administrator(p); err != nil {
		return err
	}
	if p.Role != account.HQ {
		return errNotAdministrator
	}
	return nil
}

func (a *API) public(h handler) http.HandlerFunc   { return a.handle(public, h) }
func (a *API) user(h handler) http.HandlerFunc     { return a.guarded(loggedIn, h) }
func (a *API) customer(h handler) http.HandlerFunc { return a.guarded(customer, h) }
func (a *API) own(h handler) http.HandlerFunc      { return a.guarded(ownAccount, h) }
func (a *API) viewer(h handler) http.HandlerFunc   { return a.guarded(administrator, h) }
func (a *API) editor(h handler) http.HandlerFunc   { return a.guarded(editor, h) }
func (a *API) hq(h handler) http.HandlerFunc       { return a.guarded(headquarters, h) }

// canonical routes requests by their decoded path, so that routing and layers see the same path however the client
// encodes it.
func canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route := chi.RouteContext(r.Context()); r.URL.RawPath != "" {
			if decoded, err := url.PathUnescape(route.RoutePath); err == nil {
				route.RoutePath = decoded
			}
		}
		next.ServeHTTP(w, r)
	})
}

// headAsGet routes HEAD as GET, so that it has the same layers, scopes and answer. The server leaves out the body.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			get := *r
			get.Method = http.MethodGet
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
			r = &get
		}
		next.ServeHTTP(w, r)
	})
}

// noPath answers a path that matches no route. The layers run first, so that an anonymous client cannot find out which
// paths exist (docs/specification.md, Addresses 3).
func (a *API) noPath(w http.ResponseWriter, r *http.Request) {
	a.handle(layerOf(r), func(http.ResponseWriter, *http.Request) error { return errNoPath })(w, r)
}

// noMethod answers a known path with a method that it does not have. The header Allow lists those that it has (RFC 9110, 15.5.6).
func (a *API) noMethod(routes chi.Routes) http.HandlerFunc {
	methods := []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut}
	return func(w http.ResponseWriter, r *http.Request) {
		a.handle(layerOf(r), func(w http.ResponseWriter, r *http.Request) error {
			place, allowed := chi.RouteContext(r.Context()).RoutePath, []string{}
			for _, method := range methods {
				if routes.Match(chi.NewRouteContext(), method, place) {
					allowed = append(allowed, method)
					if method == http.MethodGet {
						allowed = append(allowed, http.MethodHead)
					}
				}
			}
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return errMethod
		})(w, r)
	}
}

// layerOf returns the layer of a request without a route. The exempt list covers some paths for every method, and the
// paths below them.
func layerOf(r *http.Request) layer {
	place := path.Clean(chi.RouteContext(r.Context()).RoutePath)
	parent, _ := path.Split(place)
	switch {
	case place == "/discord/interactions", place == "/door/v2/unlock", parent == "/door/v2/unlock/",
		r.Method == http.MethodPost && strings.HasPrefix(place, "/franchise/"):
		return public
	case place == "/admin", strings.HasPrefix(place, "/admin/"), strings.HasPrefix(place, "/v2/admin/"):
		return administrator
	}
	return loggedIn
}
