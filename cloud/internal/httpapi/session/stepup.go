package session

import (
	"context"
	"net/http"
	"time"
)

// Confirm records that the administrator of a request has proved the identity again.
func (m *Manager) Confirm(r *http.Request) error {
	ctx, err := m.load(r)
	if err != nil {
		return err
	}
	m.sessions.Put(ctx, attrConfirmedAt, m.Now().UTC().Format(time.RFC3339))
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

// confirmedAt returns the time of the last proof: the login, or a later confirmation.
func (m *Manager) confirmedAt(ctx context.Context) time.Time {
	for _, attribute := range []string{attrConfirmedAt, attrStartedAt} {
		if at, err := time.Parse(time.RFC3339, m.sessions.GetString(ctx, attribute)); err == nil {
			return at
		}
	}
	return time.Time{}
}
