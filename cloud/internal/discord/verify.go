package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// maxAge is the largest accepted difference between a request's timestamp and the clock. Discord does not require this
// check; it bounds how long a captured request can be replayed.
const maxAge = 5 * time.Minute

var errSignature = errors.New("discord: wrong signature")

// verify checks Discord's signature of body and that its timestamp is at most maxAge from now.
func verify(key ed25519.PublicKey, h http.Header, body []byte, now time.Time) error {
	timestamp := h.Get("X-Signature-Timestamp")
	signature, err := hex.DecodeString(h.Get("X-Signature-Ed25519"))
	// ed25519.Verify panics if the key has the wrong length.
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
