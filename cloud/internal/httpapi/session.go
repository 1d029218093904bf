package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Attributes of a session (interface.md, Session). What an administrator may reach is not among them: it is
// read from the database at every request.
const (
	attrLoginType    = "loginType"
	attrLoginID      = "loginId"
	attrAdminLoginID = "adminLoginId"
	attrDeadline     = "deadline"
	attrSessionID    = "sid" // what an administrator's session is called in lists; it opens nothing
)

// adminSessionTTL is the absolute life of an administrator's session (interface.md, Authentication 7).
const adminSessionTTL = 24 * time.Hour

// sessionCookie is its name in the interface.
const sessionCookie = "JSESSIONID"

// NewSessions returns the manager of sessions in the database. Tokens (256 random bits) are stored hashed.
func NewSessions(db *postgres.DB) *scs.SessionManager {
	sessions := scs.New()
	sessions.Store = scs.CtxStore(postgres.Sessions{DB: db})
	sessions.HashTokenInStore = true
	sessions.Codec = sessionCodec{}
	return sessions
}

// sessionCodec stores a session as one flat JSON object, so that the database can find those of an administrator.
type sessionCodec struct{}

func (sessionCodec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	flat := maps.Clone(values)
	flat[attrDeadline] = deadline.UTC()
	return json.Marshal(flat)
}

func (sessionCodec) Decode(data []byte) (deadline time.Time, values map[string]any, err error) {
	if err := json.Unmarshal(data, &values); err != nil {
		return time.Time{}, nil, fmt.Errorf("session: %w", err)
	}
	text, _ := values[attrDeadline].(string)
	if deadline, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return time.Time{}, nil, fmt.Errorf("session: %w", err)
	}
	delete(values, attrDeadline)
	return deadline, values, nil
}

// loadSession returns a context with the session of a request, an empty one if it has none. The manager's own
// middleware is not used: only login and logout change a session, and they set the cookie themselves.
func (a *API) loadSession(r *http.Request) (context.Context, error) {
	token := ""
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		token = cookie.Value
	}
	return a.Sessions.Load(r.Context(), token)
}

// startSession logs somebody in: under a new session id, so that one planted before is worth nothing.
func (a *API) startSession(w http.ResponseWriter, r *http.Request, p account.Principal, ttl time.Duration) error {
	ctx, err := a.loadSession(r)
	if err != nil {
		return err
	}
	if err := a.Sessions.Clear(ctx); err != nil {
		return err
	}
	if err := a.Sessions.RenewToken(ctx); err != nil {
		return err
	}
	a.Sessions.SetDeadline(ctx, a.Now().Add(ttl))
	a.Sessions.Put(ctx, attrLoginType, string(p.LoginType))
	if p.Administrator() {
		a.Sessions.Put(ctx, attrAdminLoginID, p.AdminLoginID)
		a.Sessions.Put(ctx, attrSessionID, rand.Text())
		for name, value := range a.noteSession(r) {
			a.Sessions.Put(ctx, name, value)
		}
	} else {
		a.Sessions.Put(ctx, attrLoginID, p.LoginID)
	}
	token, _, err := a.Sessions.Commit(ctx)
	if err != nil {
		return err
	}
	a.setCookie(w, sessionCookie, token, ttl)
	return nil
}

// endSession ends the session of a request, if it has one, and takes the cookie back.
func (a *API) endSession(w http.ResponseWriter, r *http.Request) error {
	ctx, err := a.loadSession(r)
	if err != nil {
		return err
	}
	if err := a.Sessions.Destroy(ctx); err != nil {
		return err
	}
	a.setCookie(w, sessionCookie, "", 0)
	return nil
}

// setCookie hands a secret to the browser, or takes it back when ttl is 0.
func (a *API) setCookie(w http.ResponseWriter, name, value string, ttl time.Duration) {
	age := int(ttl / time.Second)
	if age == 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is a setting: without TLS in development there would be no session
		Name: name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: a.CookieSecure, SameSite: http.SameSiteLaxMode,
	})
}

// identify returns who makes a request: nobody without a session, and nobody either if the administrator of the
// session is gone or disabled.
func (a *API) identify(r *http.Request) (account.Principal, error) {
	if _, err := r.Cookie(sessionCookie); err != nil {
		return account.Principal{}, nil //nolint:nilerr // without the cookie it is nobody
	}
	ctx, err := a.loadSession(r)
	if err != nil {
		return account.Principal{}, err
	}
	loginType := booking.LoginType(a.Sessions.GetString(ctx, attrLoginType))
	if loginType != account.LoginAdmin {
		return account.Principal{LoginType: loginType, LoginID: a.Sessions.GetString(ctx, attrLoginID)}, nil
	}
	p, err := a.Account.Administrator(ctx, a.Sessions.GetString(ctx, attrAdminLoginID))
	if errors.Is(err, booking.ErrNoAdministrator) {
		return account.Principal{}, nil
	}
	return p, err
}

// session finds out who makes a request, for the layers behind it.
func (a *API) session(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.identify(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if p.Authenticated() {
			r = wire.WithPrincipal(r, p)
		}
		next.ServeHTTP(w, r)
	})
}
