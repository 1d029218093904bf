package service

import (
	"net/http/httptest"
	"testing"
)

// A file whose rows are read as fast as the client takes them has more time than other answers, and ends before its connection.
func TestFileOfPaymentsHasTimeForSlowClients(t *testing.T) {
	t.Parallel()
	s := new(Service)
	file := s.timeoutOf(httptest.NewRequest("GET", "/api/v2/admin/branches/gangnam/payments.csv?yearMonth=2026-11", nil))
	if other := s.timeoutOf(httptest.NewRequest("GET", "/api/v2/admin/branches/gangnam/payments", nil)); file <= other || file >= writeTimeout {
		t.Errorf("got %s, want more than %s and less than %s", file, other, writeTimeout)
	}
}
