package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// challengeDomain separates the answer to a challenge from anything else signed with the key of a credential.
const challengeDomain = "yeolda/v1 connect"

// AuthMethod is the MQTT authentication method (MQTT 5, 4.12) with which an agent proves that it holds the private key of its
// credential. The client sends a CONNECT with this method and without a password. The broker sends an AUTH whose data is a
// nonce (see NewNonce), and the client answers with an AUTH whose data is the signature of [Challenge].
const AuthMethod = "yeolda-ed25519"

// Challenge returns the bytes that an agent signs to connect. They name the user and the broker's nonce, so a signature is
// worth nothing for another connection.
func Challenge(username, nonce string) []byte {
	b := appendField(nil, challengeDomain)
	return appendField(appendField(b, username), nonce)
}

// Rekey asks an agent to replace the secrets of its credential with new ones, which it makes itself. The cloud repeats it
// until it has stored the new ones. A copy of the old secrets is worthless afterwards.
type Rekey struct {
	Rotation string `json:"rotation"` // see NewNonce
}

// Rekeyed names the new secrets of a credential. The agent has stored them, and keeps the old ones until a connection with
// the new ones was accepted. A repeated Rekey gets the same answer.
type Rekeyed struct {
	Rotation     string `json:"rotation"`     // of the Rekey
	PublicKey    string `json:"publicKey"`    // Ed25519, base64 (standard, with padding): answers the challenge at connect
	PasswordHash string `json:"passwordHash"` // SHA-256 of the password for brokers without the challenge, base64 likewise
}

// Kind implements Message.
func (Rekey) Kind() Kind { return KindRekey }

// Kind implements Message.
func (Rekeyed) Kind() Kind { return KindRekeyed }

// Validate implements Message.
func (m Rekey) Validate() error { return checkRotation(m.Rotation) }

// Validate implements Message.
func (m Rekeyed) Validate() error {
	_, _, err := m.Secrets()
	return errors.Join(checkRotation(m.Rotation), err)
}

// Secrets decodes the public key and the hash of the password.
func (m Rekeyed) Secrets() (key ed25519.PublicKey, passwordHash []byte, err error) {
	key, err = ParseKey(m.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	passwordHash, err = base64.StdEncoding.Strict().DecodeString(m.PasswordHash)
	if err != nil || len(passwordHash) != sha256.Size {
		return nil, nil, errors.New("passwordHash is not a SHA-256 in base64")
	}
	return key, passwordHash, nil
}

// ParseKey decodes an Ed25519 public key in base64 (standard, with padding).
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("key %q is not an Ed25519 public key in base64", text)
	}
	return key, nil
}

func checkRotation(id string) error {
	if checkNonce(id) != nil {
		return errors.New("rotation is not 128 bits in base64url")
	}
	return nil
}
