package config

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Keyring returns the keys of secrets at rest.
func (s Settings) Keyring() (*seal.Keyring, error) {
	return s.Secrets.Keyring()
}

// Keyring returns the keys of secrets at rest.
func (s Secrets) Keyring() (*seal.Keyring, error) {
	return seal.ParseKeys(s.EncryptionKey.Reveal())
}

// GrantKeys returns the keys of door grants. The first one signs. Agents accept those that were set when they were enrolled.
func (s Settings) GrantKeys() ([]ed25519.PrivateKey, error) {
	var keys []ed25519.PrivateKey
	for i, text := range list(s.Secrets.GrantKey.Reveal()) {
		seed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("grant key %d is not base64", i+1)
		}
		if len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("grant key %d has %d bytes, not %d", i+1, len(seed), ed25519.SeedSize)
		}
		keys = append(keys, ed25519.NewKeyFromSeed(seed))
	}
	if len(keys) == 0 {
		return nil, errors.New("no grant key")
	}
	return keys, nil
}

// LoginCodeKey returns the key under which login codes are hashed. It is derived from the encryption key, so rotating
// that key also invalidates the codes of the last minutes.
func (s Settings) LoginCodeKey() ([]byte, error) {
	keys := list(s.Secrets.EncryptionKey.Reveal())
	if len(keys) == 0 {
		return nil, errors.New("no encryption key")
	}
	return hkdf.Key(sha256.New, []byte(keys[0]), nil, "yeolda login code", sha256.Size)
}

// PartnerSecrets returns the secrets shared with the partner channel. The first one signs.
func (s Settings) PartnerSecrets() []string { return list(s.Partner.Secrets.Reveal()) }

// DiscordPublicKey returns the key that signs Discord's interactions.
func (s Settings) DiscordPublicKey() (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(s.Discord.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("is not %d bytes in hex", ed25519.PublicKeySize)
	}
	return key, nil
}
