package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"

	"github.com/yeolda/yeolda/agent/internal/enroll"
)

// Enroll makes this machine an agent: it exchanges the one-time token of `yeolda agent enroll` at a server, and returns branch,
// broker, credential and grant keys. The caller stores them, because the token cannot be used again.
func Enroll(ctx context.Context, server, token string) (Config, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Config{}, err
	}
	c, err := enroll.Exchange(ctx, server, token, nil, key)
	if err != nil {
		return Config{}, err
	}
	return Config{Branch: c.Branch, BrokerURL: c.Broker, Username: c.Username, Password: c.Password, Key: c.Key, GrantKeys: c.GrantKeys}, nil
}
