package protocol

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// grantDomain separates grants from anything else signed with the same key.
const grantDomain = "yeolda/v1 door grant"

// signatureLen is the length of an Ed25519 signature in base64url without padding.
const signatureLen = 86

// ErrSignature is returned when no trusted key has signed the message in its present form.
var ErrSignature = errors.New("signature does not verify")

// signed returns the bytes that the signature covers: every field, preceded by its length. Two different grants never
// have the same bytes, and the JSON encoding does not matter.
func (g Grant) signed() []byte {
	b := make([]byte, 0, 256)
	for _, s := range []string{grantDomain, g.Branch, g.RequestID, g.Nonce} {
		b = appendField(b, s)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(g.Doors)))
	for _, device := range g.Doors {
		b = appendField(b, device)
	}
	return binary.BigEndian.AppendUint32(b, g.PulseMs)
}

func appendField(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// Sign returns the grant with its signature (RFC 8032).
func (g Grant) Sign(key ed25519.PrivateKey) Grant {
	g.Signature = sign(key, g.signed())
	return g
}

// Verify returns ErrSignature unless one of the keys has signed the grant. Agents trust several keys during a rotation.
func (g Grant) Verify(keys ...ed25519.PublicKey) error { return verify(g.signed(), g.Signature, keys) }

func sign(key ed25519.PrivateKey, message []byte) string {
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, message))
}

func verify(message []byte, text string, keys []ed25519.PublicKey) error {
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return ErrSignature
	}
	for _, key := range keys {
		if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, signature) {
			return nil
		}
	}
	return ErrSignature
}
