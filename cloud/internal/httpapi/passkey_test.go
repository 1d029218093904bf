package httpapi_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// An authenticator makes passkeys and uses them as a browser does (Web Authentication 3, 6.3), with attestation "none".
type authenticator struct {
	t       *testing.T
	origin  string
	host    string
	key     *ecdsa.PrivateKey
	id      []byte
	handle  []byte
	counter uint32
	flags   byte
}

// User present and verified, and attested credential data (6.1).
const userVerified, attested = 0x05, 0x40

func newAuthenticator(t *testing.T, origin, host string) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &authenticator{t: t, origin: origin, host: host, key: key, id: []byte(rand.Text()), flags: userVerified}
}

type passkeyOptions struct {
	PublicKey struct {
		Challenge string
		User      struct{ ID string }
	}
}

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func (a *authenticator) clientData(kind, challenge string) []byte {
	raw, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

func (a *authenticator) data(flags byte) []byte {
	host := sha256.Sum256([]byte(a.host))
	a.counter++
	return binary.BigEndian.AppendUint32(append(host[:], flags), a.counter)
}

// create answers the options of a registration.
func (a *authenticator) create(options passkeyOptions) map[string]any {
	a.t.Helper()
	handle, err := base64.RawURLEncoding.DecodeString(options.PublicKey.User.ID)
	if err != nil {
		a.t.Fatal(err)
	}
	a.handle = handle
	public, err := a.key.PublicKey.Bytes()
	if err != nil {
		a.t.Fatal(err)
	}
	data := append(a.data(a.flags|attested), make([]byte, 16)...)
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(a.id))), a.id...)
	// The key in COSE, with CBOR written by hand: EC2, ES256, P-256, x, y.
	data = slices.Concat(data, []byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32}, public[1:33], []byte{0x22, 0x58, 32}, public[33:65])
	object := slices.Concat([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), []byte{byte(len(data))}, data)
	return map[string]any{"id": b64(a.id), "rawId": b64(a.id), "type": "public-key", "clientExtensionResults": map[string]any{}, "response": map[string]any{
		"clientDataJSON": b64(a.clientData("webauthn.create", options.PublicKey.Challenge)), "attestationObject": b64(object), "transports": []string{"internal"},
	}}
}

// get answers the options of a login.
func (a *authenticator) get(options passkeyOptions) map[string]any {
	a.t.Helper()
	client, data := a.clientData("webauthn.get", options.PublicKey.Challenge), a.data(a.flags)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(slices.Concat(data, hash[:]))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		a.t.Fatal(err)
	}
	return map[string]any{"id": b64(a.id), "rawId": b64(a.id), "type": "public-key", "clientExtensionResults": map[string]any{}, "response": map[string]any{
		"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(a.handle),
	}}
}

// TestPasskeys registers a passkey, logs in and confirms with it, refuses every other answer, and removes it.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) {
		set.HTTP.PublicURL, set.HTTP.StepUp = "http://localhost", 15*time.Minute
	})
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.Clock.Stop(at)
	later := func(by time.Duration) {
		at = at.Add(by)
		s.Clock.Stop(at)
	}
	const own = "/v2/admin/account/passkeys"
	hq := s.Admin(t, "hq", "hq-demo")
	options := func(c *servicetest.Client, path string, body any) (o passkeyOptions) {
		t.Helper()
		c.Post(path, body).OK(t).Into(t, &o)
		return o
	}
	password := map[string]string{"password": "hq-demo"}
	login := func(change func(*authenticator, map[string]any), a authenticator) servicetest.Answer {
		t.Helper()
		c := s.Client(t)
		o := options(c, "/v2/admin/passkeys/options", nil)
		answer := a.get(o)
		if change != nil {
			change(&a, answer)
		}
		return c.Post("/v2/admin/passkeys/login", map[string]any{"credential": answer})
	}
	refused := func(what string, answer servicetest.Answer) {
		t.Helper()
		says(t, what, answer, reply{401, "AuthenticationError", "패스키를 확인할 수 없습니다."})
	}

	hq.Post(own+"/options", map[string]string{"password": "wrong"}).Fails(t, 401, "AuthenticationError", "")
	stranger := newAuthenticator(t, "https://evil.example", "localhost")
	refused("a registration of another site", hq.Post(own, map[string]any{"name": "x", "credential": stranger.create(options(hq, own+"/options", password))}))
	key := newAuthenticator(t, "http://localhost", "localhost")
	made := map[string]any{"name": "노트북", "credential": key.create(options(hq, own+"/options", password))}
	var added struct{ ID string }
	hq.Post(own, made).OK(t).Into(t, &added)
	refused("the same registration again", hq.Post(own, made))

	var me struct{ AdminLoginID string }
	c := s.Client(t)
	c.Post("/v2/admin/passkeys/login", map[string]any{"credential": key.get(options(c, "/v2/admin/passkeys/options", nil))}).OK(t).Into(t, &me)
	if me.AdminLoginID != "hq" {
		t.Errorf("logged in as %q, want hq", me.AdminLoginID)
	}
	c.Get("/v2/admin/administrators").OK(t)

	key.counter += 10 // each attempt below uses a copy of the authenticator
	refused("an unknown passkey", login(nil, *newAuthenticator(t, key.origin, key.host)))
	other := *key
	other.origin = "https://evil.example"
	refused("another origin", login(nil, other))
	other = *key
	other.host = "evil.example"
	refused("another relying party", login(nil, other))
	other = *key
	other.flags = 0x01
	refused("an unverified user", login(nil, other))
	other = *key
	other.key = newAuthenticator(t, key.origin, key.host).key
	refused("another key", login(nil, other))
	other = *key
	other.handle = []byte("999")
	refused("the handle of another administrator", login(nil, other))
	other = *key
	other.counter = 0
	refused("a counter that went back", login(nil, other))
	refused("an old challenge", login(func(*authenticator, map[string]any) { later(5 * time.Minute) }, *key))
	c = s.Client(t)
	answer := map[string]any{"credential": key.get(options(c, "/v2/admin/passkeys/options", nil))}
	c.Post("/v2/admin/passkeys/login", answer).OK(t)
	refused("the same answer again", s.Client(t).Post("/v2/admin/passkeys/login", answer))
	refused("no passkey at all", c.Post("/v2/admin/passkeys/login", map[string]any{"credential": map[string]any{}}))

	// A password alone is not enough any more, except with a recovery code.
	s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).Fails(t, 401, "SecondFactorRequired", "")
	var recovery struct{ Codes []string }
	c.Post("/v2/admin/account/recovery-codes", password).OK(t).Into(t, &recovery) // the passkey has just been used
	s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo", "code": recovery.Codes[0]}).OK(t)
	s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo", "code": "123456"}).Fails(t, 401, "AuthenticationError", "")

	// A passkey confirms the identity.
	later(20 * time.Minute)
	const csv = "/v2/admin/settlement.csv?month=2026-11"
	if answer := c.Send("GET", csv, nil, nil); answer.HTTP != 403 {
		t.Errorf("without a confirmation: HTTP %d", answer.HTTP)
	}
	c.Post("/v2/admin/account/confirmation", password).Fails(t, 401, "SecondFactorRequired", "")
	c.Delete(own+"/"+added.ID, password).Fails(t, 401, "SecondFactorRequired", "")
	c.Post("/v2/admin/account/confirmation", map[string]any{"credential": key.get(options(c, "/v2/admin/passkeys/options", nil))}).OK(t)
	if answer := c.Send("GET", csv, nil, nil); answer.HTTP != 200 || !bytes.Contains(answer.Raw, []byte(",")) {
		t.Errorf("after the confirmation: HTTP %d", answer.HTTP)
	}

	// The session of another administrator is not confirmed by it.
	c.Post("/v2/admin/administrators", map[string]any{"id": "kim", "password": "lamp river nine", "role": "manager", "branches": []string{"gangnam"}}).OK(t)
	kim := s.Admin(t, "kim", "lamp river nine")
	refused("the passkey of another administrator", kim.Post("/v2/admin/account/confirmation", map[string]any{"credential": key.get(options(kim, "/v2/admin/passkeys/options", nil))}))
	kim.Delete(own+"/"+added.ID, map[string]string{"password": "lamp river nine"}).Fails(t, 404, "ResourceNotFoundException", "")

	c.Delete(own+"/"+added.ID, password).OK(t)
	refused("a removed passkey", login(nil, *key))
	s.Client(t).Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t)
}
