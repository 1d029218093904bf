package enroll

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const public = "PeMGaAkBHCZ3EA8Hgt561IoFwmvxrQereqIiOh7X5Xw="

// fingerprint of public, as the service makes it.
const fingerprint = "VQ6yN4nkMEf95iA2vSdPgs"

func server(t *testing.T, status int, keys ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Token string }
		if r.Method != http.MethodPost || r.URL.Path != "/api/v2/agent/enroll" || json.NewDecoder(r.Body).Decode(&body) != nil || !strings.HasPrefix(body.Token, "secret.") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": answer{"gangnam", "agent-gangnam-abcd2345", "p=w", keys}})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestEnroll(t *testing.T) {
	t.Parallel()
	address := server(t, http.StatusOK, public)
	c, err := Exchange(t.Context(), address, "secret."+fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := base64.StdEncoding.DecodeString(public)
	want := config.Credentials{Branch: "gangnam", Username: "agent-gangnam-abcd2345", Password: "p=w", GrantKeys: []ed25519.PublicKey{key},
		Broker: "ws" + strings.TrimPrefix(address, "http") + "/mqtt"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v", c)
	}
	name := filepath.Join(t.TempDir(), "etc", "credentials")
	for range 2 { // the second replaces the first
		if err := Write(name, c); err != nil {
			t.Fatal(err)
		}
	}
	if read, err := config.ReadCredentials(name); err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("read back %+v, %v", read, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, ed25519.PublicKeySize))
	if _, err := Exchange(t.Context(), server(t, http.StatusOK, other), "secret."+fingerprint); !errors.Is(err, ErrWrongServer) {
		t.Errorf("another server's keys: %v", err)
	}
	if _, err := Exchange(t.Context(), server(t, http.StatusOK, public, other), "secret."+fingerprint); !errors.Is(err, ErrWrongServer) {
		t.Errorf("a key more: %v", err)
	}
	if _, err := Exchange(t.Context(), server(t, http.StatusUnauthorized), "secret."+fingerprint); err == nil || !strings.Contains(err.Error(), "used already") {
		t.Errorf("a spent token: %v", err)
	}
	for _, bad := range []struct{ server, token string }{{"yeolda.example", "secret." + fingerprint}, {"ftp://yeolda.example", "secret." + fingerprint}, {server(t, 200, public), "secret"}, {server(t, 500), "secret." + fingerprint}} {
		if c, err := Exchange(t.Context(), bad.server, bad.token); err == nil {
			t.Errorf("%v: %+v", bad, c)
		}
	}
}
