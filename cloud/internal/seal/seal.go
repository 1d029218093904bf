// Package seal encrypts the secrets the database holds: door PINs, refund accounts, message
// variables, the provider's callback secrets. A copy of the database alone reveals none of them.
//
// A sealed value is one version byte, the four-byte id of its key, a nonce and AES-256-GCM's output.
// The purpose ("door-pin", "refund-account", …) is authenticated with it, so that a value copied into
// another column does not open. Keys rotate by putting a new one first: it seals, all of them open.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// KeySize is the length of an encryption key in bytes.
const KeySize = 32

const (
	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
)

// ErrSealed says that a value is damaged, was sealed for another purpose or under a key that is not in the ring.
var ErrSealed = errors.New("seal: value does not open")

type keyID [keyIDSize]byte

// Keyring seals with its first key and opens with any of them. It is safe for concurrent use.
type Keyring struct {
	first keyID
	aeads map[keyID]cipher.AEAD
}

// ParseKeys reads a setting: keys of 32 bytes in base64, separated by commas, the sealing key first.
func ParseKeys(setting string) (*Keyring, error) {
	var keys [][]byte
	for text := range strings.SplitSeq(setting, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("seal: encryption key is not base64: %w", err)
		}
		keys = append(keys, key)
	}
	return New(keys...)
}

// New makes a ring of keys of KeySize bytes; the first one seals.
func New(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("seal: no encryption key")
	}
	ring := &Keyring{aeads: make(map[keyID]cipher.AEAD, len(keys))}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("seal: encryption key %d has %d bytes, not %d", i+1, len(key), KeySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(append([]byte("yeolda key id:"), key...))
		id := keyID(sum[:keyIDSize])
		if i == 0 {
			ring.first = id
		}
		ring.aeads[id] = aead
	}
	return ring, nil
}

// Seal encrypts plain for one purpose.
func (r *Keyring) Seal(purpose string, plain []byte) []byte {
	sealed := append([]byte{version}, r.first[:]...)
	return r.aeads[r.first].Seal(sealed, nil, plain, associated(purpose)) //nolint:gosec // the cipher makes a random nonce itself
}

// Open decrypts what Seal made for the same purpose, or returns ErrSealed.
func (r *Keyring) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize || sealed[0] != version {
		return nil, ErrSealed
	}
	aead, ok := r.aeads[keyID(sealed[1:headerSize])]
	if !ok {
		return nil, ErrSealed
	}
	plain, err := aead.Open(nil, nil, sealed[headerSize:], associated(purpose))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

// Current reports whether sealed was made with the sealing key, so that a rotation can find what is left.
func (r *Keyring) Current(sealed []byte) bool {
	return len(sealed) >= headerSize && keyID(sealed[1:headerSize]) == r.first
}

// SealingKeyID returns the id of the key that seals, as it stands in sealed values.
func (r *Keyring) SealingKeyID() []byte { return r.first[:] }

// NewKey returns a fresh key in the form ParseKeys reads.
func NewKey() string {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails: crypto/rand.Read aborts the program instead
	return base64.StdEncoding.EncodeToString(key)
}

func associated(purpose string) []byte { return []byte("yeolda:" + purpose) }
