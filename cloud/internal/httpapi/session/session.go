// Package session keeps who is logged in: one flat record per session in the database, named by a cookie.
package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Attributes of a session. The branches in an administrator's scope are not among them: they are read from the database
// at every request.
const (
	attrLoginType    = "loginType"
	attrLoginID      = "loginId"
	attrAdminLoginID = "adminLoginId"
	attrDeadline     = "deadline"
	attrSeenAt       = "seenAt"      // time of a recent request
	attrConfirmedAt  = "confirmedAt" // the last time after the login at which the administrator proved the identity
	attrPasskeyAt    = "passkeyAt"   // the last time at which a passkey proved it
	attrStartedAt    = "startedAt"
	attrID           = "sid" // identifies an administrator's session in lists; it is not the token
)

// AdministratorTTL is the absolute lifetime of an administrator's session.
const AdministratorTTL = 24 * time.Hour

// cookie is the name that the interface defines.
const cookie = "JSESSIONID"

// maxAgent is the longest User-Agent that a session keeps.
const maxAgent = 200

// Manager starts, finds and ends sessions.
type Manager struct {
	Account *account.Service
	Secure  bool          // cookies are sent over TLS only
	Idle    time.Duration // after which an administrator's session ends; 0: never
	StepUp  time.Duration // for which a login or a confirmation permits sensitive operations; 0: without end
	Now     func() time.Time

	sessions *scs.SessionManager
}

// New returns a manager of the sessions in a store. Tokens (256 random bits) are stored hashed.
func New(store scs.CtxStore, accounts *account.Service, secure bool, idle time.Duration, now func() time.Time) *Manager {
	sessions := scs.New()
	sessions.Store = store
	sessions.HashTokenInStore = true
	sessions.Codec = codec{}
	return &Manager{Account: accounts, Secure: secure, Idle: idle, Now: now, sessions: sessions}
}

// codec stores a session as one flat JSON object, so that the database can find those of an administrator.
type codec struct{}

func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	flat := maps.Clone(values)
	flat[attrDeadline] = deadline.UTC()
	return json.Marshal(flat)
}

func (codec) Decode(data []byte) (deadline time.Time, values map[string]any, err error) {
	if err := json.Unmarshal(data, &values); err != nil {
		return time.Time{}, nil, fmt.Errorf("decode session: %w", err)
	}
	text, _ := values[attrDeadline].(string)
	if deadline, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return time.Time{}, nil, fmt.Errorf("decode session: %w", err)
	}
	delete(values, attrDeadline)
	return deadline, values, nil
}

// load returns a context with the session of a request, an empty session if it has none. scs's own middleware is not
// used: only login and logout change a session, and they set the cookie themselves.
func (m *Manager) load(r *http.Request) (context.Context, error) {
	token := ""
	if c, err := r.Cookie(cookie); err == nil {
		token = c.Value
	}
	return m.sessions.Load(r.Context(), token)
}

// Start logs a principal in under a new session id, so that an id planted before the login is worthless.
func (m *Manager) Start(w http.ResponseWriter, r *http.Request, p account.Principal, ttl time.Duration) error {
	ctx, err := m.load(r)
	if err != nil {
		return err
	}
	if err := m.sessions.Clear(ctx); err != nil {
		return err
	}
	if err := m.sessions.RenewToken(ctx); err != nil {
		return err
	}
	m.sessions.SetDeadline(ctx, m.Now().Add(ttl))
	m.sessions.Put(ctx, attrLoginType, string(p.LoginType))
	if p.Administrator() {
		m.putAdministrator(ctx, r, p)
	} else {
		m.sessions.Put(ctx, attrLoginID, p.LoginID)
	}
	token, _, err := m.sessions.Commit(account.WithNewSession(ctx))
	if err != nil {
		return err
	}
	if err := m.Account.CheckStarted(ctx, p); err != nil {
		return errors.Join(err, m.sessions.Destroy(ctx))
	}
	m.SetCookie(w, cookie, token, ttl)
	return nil
}

// putAdministrator stores what the list of an administrator's sessions shows.
func (m *Manager) putAdministrator(ctx context.Context, r *http.Request, p account.Principal) {
	agent := r.UserAgent()
	for name, value := range map[string]string{
		attrAdminLoginID: p.AdminLoginID, attrID: rand.Text(), attrStartedAt: m.Now().UTC().Format(time.RFC3339),
		"address": audit.OriginOf(ctx).Address, "agent": agent[:min(len(agent), maxAgent)],
	} {
		m.sessions.Put(ctx, name, value)
	}
	if p.Passkey {
		m.sessions.Put(ctx, attrPasskeyAt, m.Now().UTC().Format(time.RFC3339))
	}
}

// End deletes the session of a request, if it has one, and its cookie.
func (m *Manager) End(w http.ResponseWriter, r *http.Request) error {
	ctx, err := m.load(r)
	if err != nil {
		return err
	}
	if err := m.sessions.Destroy(ctx); err != nil {
		return err
	}
	m.SetCookie(w, cookie, "", 0)
	return nil
}

// ID returns the id under which lists show the session of a request; for a token, the token itself.
func (m *Manager) ID(r *http.Request) (string, error) {
	if token, ok := bearer(r); ok {
		return token, nil
	}
	ctx, err := m.load(r)
	if err != nil {
		return "", err
	}
	return m.sessions.GetString(ctx, attrID), nil
}

// SetCookie sets a cookie that holds a secret, or deletes it if ttl is 0.
func (m *Manager) SetCookie(w http.ResponseWriter, name, value string, ttl time.Duration) {
	age := int(ttl / time.Second)
	if age == 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is a setting: without TLS in development there would be no session
		Name: name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: m.Secure, SameSite: http.SameSiteLaxMode,
	})
}

// Identify returns the principal of a request: the zero value without a session, or if the administrator of the session
// was deleted or disabled.
func (m *Manager) Identify(r *http.Request) (account.Principal, error) {
	return m.identify(r, true)
}

// Recheck is Identify for a connection that is open already. It does not count as activity, so an open page does not keep
// a session from becoming idle.
func (m *Manager) Recheck(r *http.Request) (account.Principal, error) {
	return m.identify(r, false)
}

func (m *Manager) identify(r *http.Request, activity bool) (account.Principal, error) {
	if token, ok := bearer(r); ok {
		p, err := m.Account.Token(r.Context(), token)
		if errors.Is(err, account.ErrNoToken) {
			err = ErrToken
		}
		return p, err
	}
	if _, err := r.Cookie(cookie); err != nil {
		return account.Principal{}, nil //nolint:nilerr // a request without the cookie has no session
	}
	ctx, err := m.load(r)
	if err != nil {
		return account.Principal{}, err
	}
	loginType := booking.LoginType(m.sessions.GetString(ctx, attrLoginType))
	if loginType != account.LoginAdmin {
		return account.Principal{LoginType: loginType, LoginID: m.sessions.GetString(ctx, attrLoginID)}, nil
	}
	if active, err := m.active(ctx, activity); err != nil || !active {
		return account.Principal{}, err
	}
	p, err := m.Account.Administrator(ctx, m.sessions.GetString(ctx, attrAdminLoginID))
	if errors.Is(err, booking.ErrNoAdministrator) {
		return account.Principal{}, nil
	}
	return p, err
}

// ErrToken is returned for a bearer token that is unknown, revoked or expired.
var ErrToken = errors.New("session: unknown or expired token")

// bearer returns the token of a request. Credentials of another kind are ignored.
func bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(token, account.TokenPrefix)
}

// tokenInterval is how often the token of an open connection is looked up: a revoked one ends within a second.
const tokenInterval = 500 * time.Millisecond

// Bound returns a context for a connection that stays open, which ends with the cause ErrToken once the token of its request is
// revoked or expires. Without a token it is the context of the request. stop releases it.
func (m *Manager) Bound(r *http.Request) (ctx context.Context, stop func()) {
	token, ok := bearer(r)
	if !ok {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	go func() {
		ticker := time.NewTicker(tokenInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if _, err := m.Account.Token(ctx, token); errors.Is(err, account.ErrNoToken) {
					cancel(ErrToken)
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// active reports whether an administrator's session has not been idle for too long, and records the activity. The record
// is renewed at most ten times within the time-out, so that most requests write nothing.
func (m *Manager) active(ctx context.Context, activity bool) (bool, error) {
	if m.Idle == 0 {
		return true, nil
	}
	now := m.Now().UTC()
	seen, err := time.Parse(time.RFC3339, m.sessions.GetString(ctx, attrSeenAt))
	if err == nil && now.Sub(seen) >= m.Idle {
		return false, m.sessions.Destroy(ctx)
	}
	if !activity || err == nil && now.Sub(seen) < m.Idle/10 {
		return true, nil
	}
	m.sessions.Put(ctx, attrSeenAt, now.Format(time.RFC3339))
	_, _, err = m.sessions.Commit(ctx)
	return true, err
}
