package e2e

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// database connects to the database of a stack, for what no request does or what takes minutes or days.
func database(t *testing.T, s *world.Stack) *pgx.Conn {
	t.Helper()
	query := url.Values{"host": {filepath.Join(s.Dir(), "data", "postgres")}, "port": {"5432"}, "user": {"yeolda"}}
	db, err := pgx.Connect(t.Context(), "postgres:///postgres?"+query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return db
}
