package servicetest

import "testing"

// StandaloneKeypads replaces the keypads of gangnam by standalone ones, for tests of static PINs.
func (s *Stack) StandaloneKeypads(t testing.TB) {
	t.Helper()
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set keypads = '{}' where code = $1`, "gangnam"); err != nil {
		t.Fatal(err)
	}
}
