package session

import (
	"context"
	"net/http"
	"time"
)

// passkeyTTL is how long the use of a passkey replaces the code of a second factor in the own account.
const passkeyTTL = 5 * time.Minute

// Confirm records that the administrator of a request has proved the identity again, with a passkey or otherwise.
func (m *Manager) Confirm(r *http.Request, passkey bool) error {
	ctx, err := m.load(r)
	if err != nil {
		return err
	}
	now := m.Now().UTC().Format(time.RFC3339)
	m.sessions.Put(ctx, attrConfirmedAt, now)
	if passkey {
		m.sessions.Put(ctx, attrPasskeyAt, now)
	}
	_, _, err = m.sessions.Commit(ctx)
	return err
}

// Confirmed reports whether the administrator of a request may execute sensitive operations. A token may: its scopes are its
// limit, and a program cannot be asked.
func (m *Manager) Confirmed(r *http.Request) (bool, error) {
	if _, ok := bearer(r); ok || m.StepUp == 0 {
		return true, nil
	}
	ctx, err := m.load(r)
	if err != nil {
		return false, err
	}
	at := m.confirmedAt(ctx)
	return !at.IsZero() && m.Now().Sub(at) < m.StepUp, nil
}

// UsedPasskey reports whether a passkey has just proved the identity of the administrator of a request.
func (m *Manager) UsedPasskey(r *http.Request) (bool, error) {
	ctx, err := m.load(r)
	if err != nil {
		return false, err
	}
	at, err := time.Parse(time.RFC3339, m.sessions.GetString(ctx, attrPasskeyAt))
	return err == nil && m.Now().Sub(at) < passkeyTTL, nil
}

// confirmedAt returns the time of the last proof: the login, or a later confirmation.
func (m *Manager) confirmedAt(ctx context.Context) time.Time {
	for _, attribute := range []string{attrConfirmedAt, attrStartedAt} {
		if at, err := time.Parse(time.RFC3339, m.sessions.GetString(ctx, attribute)); err == nil {
			return at
		}
	}
	return time.Time{}
}
