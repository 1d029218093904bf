package broker

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// challengeTimeout limits the time in which a client answers the challenge.
const challengeTimeout = 5 * time.Second

// maxAnswer is the maximum length of an AUTH packet: method, signature and their headers.
const maxAnswer = 512

// prove checks that a client holds the secret of its credential: the private key if the credential has one, else the
// password. A credential with a key is useless without it: a password may have been copied.
func (h *hook) prove(cl *mqtt.Client, pk packets.Packet, known credential) error {
	if cl.Properties.Props.AuthenticationMethod != "" {
		if cl.Properties.Props.AuthenticationMethod != protocol.AuthMethod || known.publicKey == nil {
			return errNoAgent
		}
		return h.challenge(cl, string(pk.Connect.Username), known.publicKey)
	}
	// The comparison is made for unknown agents too; the empty hash matches no secret.
	got := sha256.Sum256(pk.Connect.Password)
	if subtle.ConstantTimeCompare(got[:], known.secretHash) != 1 || known.publicKey != nil {
		return errNoAgent
	}
	return nil
}

// challenge sends a nonce in an AUTH packet and verifies the signature in the client's answer (MQTT 5, 4.12). It reads the
// answer itself, because mochi's read loop begins after the CONNACK.
func (h *hook) challenge(cl *mqtt.Client, username string, key ed25519.PublicKey) error {
	nonce := protocol.NewNonce()
	if err := cl.Net.Conn.SetDeadline(time.Now().Add(challengeTimeout)); err != nil {
		return err
	}
	err := cl.WritePacket(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Auth}, ReasonCode: packets.CodeContinueAuthentication.Code,
		Properties: packets.Properties{AuthenticationMethod: protocol.AuthMethod, AuthenticationData: []byte(nonce)},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	var header packets.FixedHeader
	if err := cl.ReadFixedHeader(&header); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if header.Type != packets.Auth || header.Remaining > maxAnswer {
		return errNoAgent
	}
	answer, err := cl.ReadPacket(&header)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if answer.ReasonCode != packets.CodeContinueAuthentication.Code || answer.Properties.AuthenticationMethod != protocol.AuthMethod ||
		!ed25519.Verify(key, protocol.Challenge(username, nonce), answer.Properties.AuthenticationData) {
		return errNoAgent
	}
	return nil
}

// errNoAnswer is returned when the connection ended during the challenge.
var errNoAnswer = errors.New("broker: the challenge was not answered")

// same reports whether two credentials have the same secrets.
func (c credential) same(other credential) bool {
	return bytes.Equal(c.publicKey, other.publicKey) && (c.publicKey != nil || bytes.Equal(c.secretHash, other.secretHash))
}
