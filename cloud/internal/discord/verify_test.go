package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestVector(t *testing.T) {
	t.Parallel()
	key := seed.Public().(ed25519.PublicKey)
	if got := hex.EncodeToString(key); got != published {
		t.Fatalf("public key %s, want %s", got, published)
	}
	h := http.Header{}
	h.Set("X-Signature-Timestamp", "1700000000")
	h.Set("X-Signature-Ed25519", "c1098e97d711377f30225d53d94b89d43537f92e5b3afaddc590781b1f9f9d4b2eeab335d370be3b9a090bc61a85b86448bc140dcd195f1569c2bff181257607")
	if err := verify(key, h, []byte(`{"type":1}`), signedAt); err != nil {
		t.Error(err)
	}
	if err := verify(key, h, []byte(`{"type":2}`), signedAt); err == nil {
		t.Error("another body passed")
	}
}

func TestWrongSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	d := &backend{}
	h := newHandler(d, &platform{})
	body := ask("1", commandUnlock, "gangnam", "")
	for name, change := range map[string]func(*http.Request){
		"no signature":    func(r *http.Request) { r.Header.Del("X-Signature-Ed25519") },
		"no timestamp":    func(r *http.Request) { r.Header.Del("X-Signature-Timestamp") },
		"not hexadecimal": func(r *http.Request) { r.Header.Set("X-Signature-Ed25519", strings.Repeat("z", 128)) },
		"short":           func(r *http.Request) { r.Header.Set("X-Signature-Ed25519", "c109") },
		"long":            func(r *http.Request) { r.Header.Set("X-Signature-Ed25519", strings.Repeat("00", 65)) },
		"zero":            func(r *http.Request) { r.Header.Set("X-Signature-Ed25519", strings.Repeat("00", 64)) },
		"other timestamp": func(r *http.Request) { r.Header.Set("X-Signature-Timestamp", "1700000001") },
		"other body":      func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body + " ")) },
		"other signer": func(r *http.Request) {
			_, private, _ := ed25519.GenerateKey(nil)
			r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte("1700000000"+body))))
		},
		"too old":       func(r *http.Request) { *r = *signed(body, signedAt.Add(-maxAge-time.Second)) },
		"of the future": func(r *http.Request) { *r = *signed(body, signedAt.Add(maxAge+time.Second)) },
		"timestamp is text": func(r *http.Request) {
			r.Header.Set("X-Signature-Timestamp", "now")
			r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(seed, []byte("now"+body))))
		},
	} {
		r := signed(body, signedAt)
		change(r)
		if w := do(h, r); w.Code != http.StatusUnauthorized || strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, age := range []time.Duration{-maxAge, maxAge} {
		if w := do(h, signed(`{"type":1}`, signedAt.Add(age))); w.Code != 200 {
			t.Errorf("%v: %d", age, w.Code)
		}
	}
	h.PublicKey = h.PublicKey[:31]
	if w := do(h, signed(`{"type":1}`, signedAt)); w.Code != http.StatusUnauthorized {
		t.Errorf("with half a key: %d", w.Code)
	}
	if d.called != 0 {
		t.Errorf("the backend was asked %d times", d.called)
	}
}
