package broker

import (
	"context"
	"time"
)

const (
	// lookupTimeout limits the database query of a CONNECT.
	lookupTimeout = 3 * time.Second
	// lookupBatch is the maximum number of credentials in one query.
	lookupBatch = 256
	// lookupWorkers is the maximum number of concurrent queries, so that agents that reconnect at once leave connections
	// of the pool to requests.
	lookupWorkers = 2
)

// credential is a credential that is not revoked; the zero value means any other user name.
type credential struct {
	branch     string
	secretHash []byte // of the password
	publicKey  []byte // nil: the agent connects with its password
}

// credentials looks up credentials for CONNECT packets. Lookups that arrive during a query share the next one, so thousands
// of agents that reconnect at once cost a few dozen queries. The queries run in goroutines of their own, because the deep
// stack of a database driver would otherwise stay with each agent's connection.
type credentials struct {
	look  func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error
	asked chan lookup
}

type lookup struct {
	username string
	answer   chan<- looked // never blocks
}

type looked struct {
	credential
	err error
}

func newCredentials(look func(context.Context, []string, func(string, string, []byte, []byte)) error) *credentials {
	return &credentials{look: look, asked: make(chan lookup, maxUnauthenticated)}
}

// find returns the credential of a user name, or the zero value if it is unknown or revoked.
func (c *credentials) find(ctx context.Context, username string) (credential, error) {
	answer := make(chan looked, 1)
	select {
	case c.asked <- lookup{username, answer}:
	case <-ctx.Done():
		return credential{}, ctx.Err()
	}
	select {
	case found := <-answer:
		return found.credential, found.err
	case <-ctx.Done():
		return credential{}, ctx.Err()
	}
}

// work answers lookups until ctx ends.
func (c *credentials) work(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-c.asked:
			c.answer(ctx, c.drain(first))
		}
	}
}

// drain returns first and the lookups already queued.
func (c *credentials) drain(first lookup) []lookup {
	batch := []lookup{first}
	for len(batch) < lookupBatch {
		select {
		case next := <-c.asked:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

func (c *credentials) answer(ctx context.Context, batch []lookup) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	usernames := make([]string, len(batch))
	for i, l := range batch {
		usernames[i] = l.username
	}
	known := make(map[string]credential, len(batch))
	err := c.look(ctx, usernames, func(username, branch string, secretHash, publicKey []byte) {
		known[username] = credential{branch, secretHash, publicKey}
	})
	for _, l := range batch {
		l.answer <- looked{known[l.username], err}
	}
}
