package httpapi_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A login whose password is changed while it is in progress starts no session: the change has ended all sessions that it saw.
func TestLoginDuringAPasswordChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"changed":  `update administrator set password_hash = 'another' where login_id = $1`,
		"disabled": `update administrator set disabled_at = now() where login_id = $1`,
		"removed":  `delete from administrator where login_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servicetest.Start(t)
			s.Admin(t, "hq", "hq-demo").Post("/v2/admin/administrators", map[string]any{"id": "stolen", "password": "known to a thief", "role": "hq"}).OK(t)
			tx, err := s.DB.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			// The login waits after the password was verified, before the session is stored.
			if _, err := tx.Exec(t.Context(), `lock table session in share mode`); err != nil {
				t.Fatal(err)
			}
			thief, answered := s.Client(t), make(chan servicetest.Answer, 1)
			go func() {
				answered <- thief.Send("POST", "/admin/login", map[string]string{"id": "stolen", "password": "known to a thief"}, nil)
			}()
			eventually(t, "the login waits", func() bool {
				var waits bool
				err := s.DB.Pool.QueryRow(t.Context(), `select exists (select from pg_locks l join pg_database d on d.oid = l.database
					where d.datname = current_database() and l.relation = 'session'::regclass and not l.granted)`).Scan(&waits)
				return err == nil && waits
			})
			if _, err := tx.Exec(t.Context(), change, "stolen"); err != nil {
				t.Fatal(err)
			}
			if _, err := postgres.EndAdministratorSessions(t.Context(), tx, "stolen"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			(<-answered).Envelope(t).Fails(t, 401, "AuthenticationError", "")
			var sessions int
			err = s.DB.Pool.QueryRow(t.Context(), `select count(*) from session where data ->> 'adminLoginId' = $1`, "stolen").Scan(&sessions)
			if err != nil || sessions != 0 {
				t.Errorf("%d sessions of the login, want none (%v)", sessions, err)
			}
		})
	}
}
