package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
)

// keysDomain separates key lists from anything else signed with the same key.
const keysDomain = "yeolda/v1 grant keys"

// MaxKeys bounds the keys of a list.
const MaxKeys = 8

// KeyList replaces the keys whose signature the agent accepts on grants. It is signed with a key that the agent already
// trusts. The agent applies a list only if its epoch is higher than that of the list it has, stores it before use, and
// reports the epoch in its status. The keys of a fresh credential have epoch 0.
//
// The cloud sends the lists that follow the epoch of the last status, in order of their epochs, until the agent has
// reported the last one. A list that does not verify is ignored: a later one may.
type KeyList struct {
	Epoch     uint64   `json:"epoch"`     // from 1
	Keys      []string `json:"keys"`      // Ed25519 public keys, base64 (standard, with padding)
	Signature string   `json:"signature"` // Ed25519, base64url; see Sign
}

// signed returns the bytes that the signature covers.
func (l KeyList) signed() []byte {
	b := binary.BigEndian.AppendUint64(appendField(nil, keysDomain), l.Epoch)
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Keys)))
	for _, key := range l.Keys {
		b = appendField(b, key)
	}
	return b
}

// Sign returns the list with its signature.
func (l KeyList) Sign(key ed25519.PrivateKey) KeyList {
	l.Signature = sign(key, l.signed())
	return l
}

// Verify returns ErrSignature unless one of the keys has signed the list.
func (l KeyList) Verify(keys ...ed25519.PublicKey) error {
	return verify(l.signed(), l.Signature, keys)
}

// PublicKeys decodes the keys of a valid list.
func (l KeyList) PublicKeys() ([]ed25519.PublicKey, error) {
	keys := make([]ed25519.PublicKey, 0, len(l.Keys))
	for _, text := range l.Keys {
		key, err := ParseKey(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Kind implements Message.
func (KeyList) Kind() Kind { return KindKeys }

// Validate checks the form of a list. Verify checks the signature.
func (l KeyList) Validate() error {
	var err error
	if l.Epoch == 0 {
		err = errors.New("epoch is 0")
	}
	if len(l.Keys) == 0 || len(l.Keys) > MaxKeys {
		err = errors.Join(err, fmt.Errorf("keys has %d entries, want 1 to %d", len(l.Keys), MaxKeys))
	}
	if len(l.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	_, keysErr := l.PublicKeys()
	return errors.Join(err, keysErr)
}
