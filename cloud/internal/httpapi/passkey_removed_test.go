package httpapi_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A passkey that is removed after its answer was verified, and before the session begins, logs in no more.
func TestPasskeyRemovedDuringALogin(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.PublicURL = "http://localhost" })
	hq, guest := s.Admin(t, "hq", "hq-demo"), s.Client(t)
	key := newAuthenticator(t, "http://localhost", "localhost")
	options := func(c *servicetest.Client, path string, body any) (o passkeyOptions) {
		t.Helper()
		c.Post(path, body).OK(t).Into(t, &o)
		return o
	}
	made := key.create(options(hq, "/v2/admin/account/passkeys/options", map[string]string{"password": "hq-demo"}))
	hq.Post("/v2/admin/account/passkeys", map[string]any{"name": "x", "credential": made}).OK(t)
	answer := map[string]any{"credential": key.get(options(guest, "/v2/admin/passkeys/options", nil))}

	tx, err := s.DB.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `delete from passkey`); err != nil {
		t.Fatal(err)
	}
	login := make(chan servicetest.Answer, 1)
	go func() { login <- guest.Post("/v2/admin/passkeys/login", answer) }()
	for waits := false; !waits; time.Sleep(time.Millisecond) { // the database reports no event when a statement begins to wait
		if err := s.DB.Pool.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'update passkey%')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(t, "the login", <-login, reply{401, "AuthenticationError", "패스키를 확인할 수 없습니다."})
}
