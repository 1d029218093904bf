package postgres_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestTrivialPIN checks which PINs are never given to a stay.
func TestTrivialPIN(t *testing.T) {
	t.Parallel()
	for pin, trivial := range map[string]bool{
		"000000": true, "111111": true, "123456": true, "654321": true, "345678": true, "121212": true, "123123": true, "112211": true, "770077": true,
		"901234": true, "482913": false, "193847": false, "123465": false, "135790": false,
	} {
		if got := postgres.TrivialPIN(pin); got != trivial {
			t.Errorf("%s: trivial %t, want %t", pin, got, trivial)
		}
	}
}
