package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// TestPackageClient fetches from a server whose certificate only a private authority vouches for, on a machine whose clock has stopped
// before the certificate is valid: an agent that connects must be able to fetch its updates from the same server.
func TestPackageClient(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	valid := server.Certificate().NotBefore.Add(time.Hour)
	for _, tt := range []struct {
		name, ca string
		now      time.Time
		ok       bool
	}{
		{"private authority", ca, valid, true},
		{"no authority", "", valid, false},
		{"an authority that cannot be read", filepath.Join(dir, "none.pem"), valid, false},
		{"before the certificate", ca, server.Certificate().NotBefore.Add(-time.Hour), false},
	} {
		response, err := packageClient(tt.ca, func() time.Time { return tt.now }).Get(server.URL)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want success %v", tt.name, err, tt.ok)
		}
	}
	f := files{State: dir}
	updater, _ := f.updater(ca, nil)
	response, err := updater.Client.Get(server.URL)
	if err != nil {
		t.Fatalf("the client of the updater: %v", err)
	}
	_ = response.Body.Close()
}
