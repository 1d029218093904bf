package broker

import (
	"context"
	"time"
)

const (
	// lookupTimeout bounds the database's part in a CONNECT.
	lookupTimeout = 3 * time.Second
	// lookupBatch is the most credentials that are looked up at once.
	lookupBatch = 256
	// lookupWorkers is how many batches may be under way, so that agents that come back all together leave connections
	// of the pool to people.
	lookupWorkers = 2
)

// credential is what is known of an agent that may connect; the zero value is that of any other.
type credential struct {
	branch     string
	secretHash []byte
}

// credentials looks agents up for connections that introduce themselves. Those that come while a question is on its way
// share the next one: thousands of agents that come back together cost a few dozen statements. And a database driver's
// deep stack grows in these goroutines, not in one of every agent, which would keep it for the life of the connection.
type credentials struct {
	look  func(ctx context.Context, usernames []string, found func(username, branch string, secretHash []byte)) error
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

func newCredentials(look func(context.Context, []string, func(string, string, []byte)) error) *credentials {
	return &credentials{look: look, asked: make(chan lookup, maxUnauthenticated)}
}

// find returns the credential of a user name, zero for one that is unknown or revoked.
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

// work answers until ctx ends.
func (c *credentials) work(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-c.asked:
			c.answer(ctx, c.gather(first))
		}
	}
}

// gather adds those that wait already.
func (c *credentials) gather(first lookup) []lookup {
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
	err := c.look(ctx, usernames, func(username, branch string, secretHash []byte) {
		known[username] = credential{branch, secretHash}
	})
	for _, l := range batch {
		l.answer <- looked{known[l.username], err}
	}
}
