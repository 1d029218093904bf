// Package seal encrypts the secrets in the database, such as door keys, door PINs, refund accounts, message variables and
// the provider's callback secrets. A copy of the database alone reveals none of them.
//
// A sealed value consists of a version byte, the four-byte id of its key, a nonce and the output of AES-256-GCM. The
// purpose ("door-pin", "refund-account", …) is authenticated, so a value copied into another column does not open. To
// rotate keys, put a new key first: it seals, and all keys open.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KeySize is the length of an encryption key in bytes.
const KeySize = 32

const (
	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
)

// ErrSealed is returned for a value that is damaged, was sealed for another purpose, or was sealed with a key that is
// not in the keyring.
var ErrSealed = errors.New("seal: value cannot be opened")

type keyID [keyIDSize]byte

// Keyring seals with its first key and opens with any of its keys. It is safe for concurrent use.
type Keyring struct {
	first keyID
	roots [][]byte // of the keys that MAC and MACs derive, the sealing key first
	aeads map[keyID]cipher.AEAD
}

// ParseKeys parses a setting: 32-byte keys in base64, separated by commas, the sealing key first.
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

// New returns a keyring of keys of KeySize bytes. The first key seals.
func New(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("seal: no encryption key")
	}
	ring := &Keyring{roots: slices.Clone(keys), aeads: make(map[keyID]cipher.AEAD, len(keys))}
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
	return r.aeads[r.first].Seal(sealed, nil, plain, associated(purpose)) //nolint:gosec // the cipher generates a random nonce
}

// Open decrypts a value sealed for the same purpose, or returns ErrSealed.
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

// Current reports whether a value was sealed with the current sealing key.
func (r *Keyring) Current(sealed []byte) bool {
	return len(sealed) >= headerSize && keyID(sealed[1:headerSize]) == r.first
}

// SealingKeyID returns the id of the sealing key, as stored in sealed values.
func (r *Keyring) SealingKeyID() []byte { return r.first[:] }

// KeyIDs returns the ids of all keys, as stored in sealed values.
func (r *Keyring) KeyIDs() [][]byte {
	ids := make([][]byte, 0, len(r.aeads))
	for id := range r.aeads {
		ids = append(ids, id[:])
	}
	return ids
}

// MAC returns the HMAC-SHA256 of a text under a key of its own for each purpose, derived from the sealing key. Without
// the key a text cannot be found by trying all candidates, as phone numbers could be with a plain hash.
func (r *Keyring) MAC(purpose, text string) []byte { return mac(r.roots[0], purpose, text) }

// MACs returns the MACs of a text under all keys, that of MAC first. A stored MAC may be older than the sealing key.
func (r *Keyring) MACs(purpose, text string) [][]byte {
	macs := make([][]byte, len(r.roots))
	for i, root := range r.roots {
		macs[i] = mac(root, purpose, text)
	}
	return macs
}

func mac(root []byte, purpose, text string) []byte {
	key, err := hkdf.Key(sha256.New, root, nil, "yeolda mac: "+purpose, sha256.Size)
	if err != nil {
		panic(err) // only a length over 255 hashes fails
	}
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(text))
	return hash.Sum(nil)
}

// NewKey returns a new random key in the format of ParseKeys.
func NewKey() string {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails: crypto/rand.Read aborts the program instead
	return base64.StdEncoding.EncodeToString(key)
}

func associated(purpose string) []byte { return []byte("yeolda:" + purpose) }
