package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ErrForged is returned for a proof whose signature does not match its report or the expected key.
var ErrForged = errors.New("proof: the signature does not match")

// purpose separates signatures of proofs from all others.
const purpose = "yeolda proof v1\n"

// Signed is a report with its Ed25519 signature: of the purpose, followed by the report as compact JSON. White space between
// its tokens does not matter.
type Signed struct {
	Report    json.RawMessage `json:"report"`
	Key       string          `json:"key"`       // public key, base64
	Signature string          `json:"signature"` // base64
}

// PublicKey returns the key that verifies the proofs of a service, in base64. It changes with the encryption key.
func PublicKey(keys *seal.Keyring) string {
	public, _ := signingKey(keys).Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(public)
}

func signingKey(keys *seal.Keyring) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(keys.MAC("proof-signature", ""))
}

// Sign signs a report with the key of a service.
func Sign(keys *seal.Keyring, r Report) (Signed, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return Signed{}, fmt.Errorf("proof: %w", err)
	}
	signature := ed25519.Sign(signingKey(keys), append([]byte(purpose), text...))
	return Signed{text, PublicKey(keys), base64.StdEncoding.EncodeToString(signature)}, nil
}

// Verify returns ErrForged unless the report was signed with a public key (base64).
func (s Signed) Verify(key string) error {
	public, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("proof: %q is not a public key", key)
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	if err != nil {
		return ErrForged
	}
	text := bytes.NewBufferString(purpose)
	if err := json.Compact(text, s.Report); err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	if !ed25519.Verify(public, text.Bytes(), signature) {
		return ErrForged
	}
	return nil
}

// Open decodes the report.
func (s Signed) Open() (r Report, err error) {
	if err := json.Unmarshal(s.Report, &r); err != nil {
		return r, fmt.Errorf("proof: %w", err)
	}
	return r, nil
}
