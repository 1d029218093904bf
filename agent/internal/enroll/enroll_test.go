package enroll

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const public = "PeMGaAkBHCZ3EA8Hgt561IoFwmvxrQereqIiOh7X5Xw="

// fingerprint of public, as the service computes it.
const fingerprint = "VQ6yN4nkMEf95iA2vSdPgs"

func server(t *testing.T, status int, keys ...string) string {
	t.Helper()
	s := httptest.NewServer(handler(status, keys))
	t.Cleanup(s.Close)
	return s.URL
}

func handler(status int, keys []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Token, PublicKey string }
		if r.Method != http.MethodPost || r.URL.Path != "/api/v2/agent/enroll" || json.NewDecoder(r.Body).Decode(&body) != nil || !strings.HasPrefix(body.Token, "secret.") ||
			len(body.PublicKey) != 44 {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": answer{"gangnam", "agent-gangnam-abcd2345", "p=w", keys}})
	}
}

func key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key, err := Key(filepath.Join(t.TempDir(), "credentials"), "secret", ServiceOwner())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A machine that repeats an exchange has the same key pair, until it is done, and another one for another token.
func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	credentials := filepath.Join(t.TempDir(), "credentials")
	get := func(token string) ed25519.PrivateKey {
		t.Helper()
		key, err := Key(credentials, token, ServiceOwner())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := get("a")
	if !get("a").Equal(first) {
		t.Error("the second attempt has another key pair")
	}
	if info, err := os.Stat(pending(credentials)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key pair is in %v, %v, want a file for its owner only", info, err)
	}
	if get("b").Equal(first) || get("a").Equal(first) {
		t.Error("another token has the same key pair")
	}
	if err := Done(credentials); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(filepath.Dir(credentials)); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestEnroll(t *testing.T) {
	t.Parallel()
	address := server(t, http.StatusOK, public)
	c, err := Exchange(t.Context(), address, "secret."+fingerprint, nil, key(t))
	if err != nil {
		t.Fatal(err)
	}
	grantKey, _ := base64.StdEncoding.DecodeString(public)
	if len(c.Key) != ed25519.PrivateKeySize {
		t.Fatalf("got a key of %d bytes, want a private key", len(c.Key))
	}
	want := config.Credentials{Branch: "gangnam", Key: c.Key, Username: "agent-gangnam-abcd2345", Password: "p=w", GrantKeys: []ed25519.PublicKey{grantKey},
		Broker: "ws" + strings.TrimPrefix(address, "http") + "/mqtt"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	name := filepath.Join(t.TempDir(), "etc", "credentials")
	for range 2 { // the second replaces the first
		if err := Write(name, c, ServiceOwner()); err != nil {
			t.Fatal(err)
		}
	}
	if read, err := config.ReadCredentials(name); err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("read back %+v, %v", read, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
		t.Errorf("got files %v, want the credentials only", entries)
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, ed25519.PublicKeySize))
	if _, err := Exchange(t.Context(), server(t, http.StatusOK, other), "secret."+fingerprint, nil, key(t)); !errors.Is(err, ErrWrongServer) {
		t.Errorf("another server's keys: %v", err)
	}
	if _, err := Exchange(t.Context(), server(t, http.StatusOK, public, other), "secret."+fingerprint, nil, key(t)); !errors.Is(err, ErrWrongServer) {
		t.Errorf("an additional key: %v", err)
	}
	if _, err := Exchange(t.Context(), server(t, http.StatusUnauthorized), "secret."+fingerprint, nil, key(t)); err == nil || !strings.Contains(err.Error(), "already used") {
		t.Errorf("a used token: %v", err)
	}
	for _, bad := range []struct{ server, token string }{{"yeolda.example", "secret." + fingerprint}, {"ftp://yeolda.example", "secret." + fingerprint}, {server(t, 200, public), "secret"}, {server(t, 500), "secret." + fingerprint}} {
		if c, err := Exchange(t.Context(), bad.server, bad.token, nil, key(t)); err == nil {
			t.Errorf("%v: %+v", bad, c)
		}
	}
}

// TestPrivateCA enrolls at a server whose certificate only a private authority vouches for.
func TestPrivateCA(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(handler(http.StatusOK, []string{public}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Exchange(t.Context(), s.URL, "secret."+fingerprint, nil, key(t)); err == nil {
		t.Error("enrolled without trusting the authority")
	}
	name := filepath.Join(dir, "etc", "credentials")
	kept, err := KeepCA(name, ca)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := config.TLS(kept, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Exchange(t.Context(), s.URL, "secret."+fingerprint, trust, key(t))
	if err != nil {
		t.Fatal(err)
	}
	c.CA = kept
	if err := Write(name, c, ServiceOwner()); err != nil {
		t.Fatal(err)
	}
	read, err := config.ReadCredentials(name)
	if err != nil || read.CA != filepath.Join(dir, "etc", "ca.pem") {
		t.Errorf("got ca %q, %v", read.CA, err)
	}
	if _, err := config.TLS(read.CA, nil); err != nil {
		t.Error(err)
	}
}

// TestOwner checks that credentials written by root belong to the user of the service, which could not read them otherwise.
func TestOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may change owners")
	}
	name := filepath.Join(t.TempDir(), "credentials")
	if err := Write(name, config.Credentials{Branch: "gangnam"}, Owner{12345, 12346}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 12345 || stat.Gid != 12346 || info.Mode().Perm() != 0o600 {
		t.Errorf("got owner %d:%d and mode %o, want 12345:12346 and 600", stat.Uid, stat.Gid, info.Mode().Perm())
	}
}

// TestReserve checks that places where credentials cannot be stored are found, and that nothing is left at the others.
func TestReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{filepath.Join(file, "credentials"), filepath.Join(dir, "directory"), "/proc/credentials", "/dev/null"} {
		if err := Reserve(bad, ServiceOwner()); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	name := filepath.Join(dir, "etc", "credentials")
	if err := Reserve(name, ServiceOwner()); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 0 {
		t.Errorf("got files %v, want none", entries)
	}
}
