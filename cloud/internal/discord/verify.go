package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxAge is how far a request's timestamp may be off. Discord does not ask for the
// check; it bounds how long a captured request could be played again.
const maxAge = 5 * time.Minute

var errSignature = errors.New("discord: wrong signature")

// ParsePublicKey reads the application's public key as the developer portal shows it.
func ParsePublicKey(s string) (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(s)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("discord: a public key is %d hexadecimal digits", 2*ed25519.PublicKeySize)
	}
	return key, nil
}

// verify checks that Discord signed body at about now.
func verify(key ed25519.PublicKey, h http.Header, body []byte, now time.Time) error {
	timestamp := h.Get("X-Signature-Timestamp")
	signature, err := hex.DecodeString(h.Get("X-Signature-Ed25519"))
	// Verify panics on a key of the wrong length.
	if err != nil || len(signature) != ed25519.SignatureSize || len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, append([]byte(timestamp), body...), signature) {
		return errSignature
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > maxAge || age < -maxAge {
		return errors.New("discord: timestamp is too far off")
	}
	return nil
}
