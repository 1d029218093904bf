package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/panel"
)

// TestEnrollErrors checks that a text that is not an enrolment command, and a token that the service rejects, are errors of the client.
func TestEnrollErrors(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer service.Close()
	for _, command := range []string{"", "yeolda agent enroll gangnam", "curl -fsS " + service.URL + "/install.sh | sudo sh -s -- used.token"} {
		if _, _, err := enroll(t.Context(), command, 2); !errors.Is(err, panel.ErrEnroll) {
			t.Errorf("%q: %v, want ErrEnroll", command, err)
		}
	}
}
