package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup")) // of scs.New's own store
}

// otherReplica is a store of sessions in which another replica acts after a session was read.
type otherReplica struct {
	postgres.Sessions
	acts func()
}

func (s *otherReplica) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	data, found, err := s.Sessions.FindCtx(ctx, token)
	if act := s.acts; act != nil {
		s.acts = nil
		act()
	}
	return data, found, err
}

// A session that ends at another replica while a request is in progress stays ended, although the request records its activity or
// a confirmation of the identity.
func TestEndedSessionStaysEnded(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*session.Manager, *http.Request) error{
		"activity":     func(m *session.Manager, r *http.Request) error { _, err := m.Identify(r); return err },
		"confirmation": func(m *session.Manager, r *http.Request) error { return m.Confirm(r, true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			if _, err := db.Pool.Exec(t.Context(), `insert into administrator (login_id, password_hash, role) values ('hq', 'x', 'hq')`); err != nil {
				t.Fatal(err)
			}
			store := &otherReplica{Sessions: postgres.Sessions{DB: db}}
			manager := session.New(store, &account.Service{DB: db}, false, time.Hour, db.Now)
			login := httptest.NewRecorder()
			plain := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			if err := manager.Start(login, plain, account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "hq"}, session.AdministratorTTL); err != nil {
				t.Fatal(err)
			}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			request.AddCookie(login.Result().Cookies()[0])
			store.acts = func() {
				if ended, err := postgres.EndAdministratorSessions(t.Context(), db.Pool, "hq"); err != nil || ended != 1 {
					t.Errorf("%d sessions ended, want 1 (%v)", ended, err)
				}
			}
			if err := act(manager, request); err != nil {
				t.Fatal(err)
			}
			if p, err := manager.Identify(request); err != nil || p.AdminLoginID != "" {
				t.Errorf("the session that was ended is one of %q (%v)", p.AdminLoginID, err)
			}
			var stored int
			if err := db.Pool.QueryRow(t.Context(), `select count(*) from session`).Scan(&stored); err != nil || stored != 0 {
				t.Errorf("%d sessions are stored, want none (%v)", stored, err)
			}
		})
	}
}
