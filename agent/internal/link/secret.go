package link

import (
	"crypto/ed25519"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/protocol"
)

// Secret proves the identity of the agent to the broker: with the signature of a challenge, which shows the secret to no other machine,
// or with a password at a broker that does not know the challenge. Either may be missing.
type Secret struct {
	Key      ed25519.PrivateKey
	Password string
}

// way is one way to authenticate: with the key of a secret, or with its password.
type way struct {
	secret Secret
	sign   bool
}

// way returns the way of the next connection. The way that was accepted last is used until a broker rejects it.
func (l *Link) way() way {
	secrets := []Secret{{Password: l.config.Password}}
	if l.config.Secrets != nil {
		secrets = l.config.Secrets()
	}
	var ways []way
	for _, s := range secrets {
		if s.Key != nil {
			ways = append(ways, way{s, true})
		}
		if s.Password != "" {
			ways = append(ways, way{s, false})
		}
	}
	if len(ways) == 0 {
		return way{}
	}
	return ways[l.rejections%len(ways)]
}

// rejectsIdentity reports whether a CONNACK rejects the way in which the client authenticated.
func rejectsIdentity(reason byte) bool {
	switch reason {
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized, packets.ConnackBadAuthenticationMethod:
		return true
	}
	return false
}

// signer answers the broker's challenge.
type signer struct {
	username string
	key      ed25519.PrivateKey
}

// Authenticate implements paho.Auther.
func (s signer) Authenticate(challenge *paho.Auth) *paho.Auth {
	answer := &paho.Auth{ReasonCode: packets.AuthContinueAuthentication, Properties: &paho.AuthProperties{AuthMethod: protocol.AuthMethod}}
	if p := challenge.Properties; p != nil && p.AuthMethod == protocol.AuthMethod && s.key != nil {
		answer.Properties.AuthData = ed25519.Sign(s.key, protocol.Challenge(s.username, string(p.AuthData)))
	}
	return answer
}

// Authenticated implements paho.Auther.
func (signer) Authenticated() {}
