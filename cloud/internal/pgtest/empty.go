package pgtest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Empty creates an empty database, without tables, on the server of another one, and returns its URL.
func Empty(t testing.TB, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := conn.Config().Database + "_restored"
	if _, err := conn.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), "drop database "+name+" with (force)")
			conn.Close(t.Context())
		}
		if err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return strings.Replace(url, "/"+conn.Config().Database, "/"+name, 1)
}
