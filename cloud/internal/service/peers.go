package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

const (
	// peerTTL is how long a replica that no longer renews its row stays in the list of peers.
	peerTTL = time.Minute
	// peerPurpose is the purpose with which the passwords of peers are sealed.
	peerPurpose = "broker-peer"
)

// peers are the embedded brokers of the other replicas. They find each other in the database; the password of each broker is
// new at each start of its replica.
type peers struct {
	db   *postgres.DB
	keys *seal.Keyring
	own  postgres.BrokerPeer
	log  *slog.Logger
	met  atomic.Bool       // the row of this replica was written
	hash [sha256.Size]byte // of the password of the own broker
}

func newPeers(db *postgres.DB, keys *seal.Keyring, ownURL string, log *slog.Logger) *peers {
	secret := rand.Text()
	return &peers{db: db, keys: keys, log: log, hash: sha256.Sum256([]byte(secret)),
		own: postgres.BrokerPeer{URL: ownURL, Secret: keys.Seal(peerPurpose, []byte(secret))}}
}

// list renews the row of this replica and returns the addresses of the others, with their passwords.
func (p *peers) list(ctx context.Context) (addresses []*url.URL, err error) {
	others, err := postgres.MeetBrokerPeers(ctx, p.db, p.own, !p.met.Load(), peerTTL)
	if errors.Is(err, postgres.ErrPeerReplaced) {
		return nil, fmt.Errorf("%w: each replica needs a YEOLDA_BROKER_PEER_URL of its own: %w", broker.ErrReplaced, err)
	}
	if err != nil {
		return nil, err
	}
	p.met.Store(true)
	for _, other := range others {
		secret, err := p.keys.Open(peerPurpose, other.Secret)
		address, urlErr := url.Parse(other.URL)
		if err = errors.Join(err, urlErr); err != nil {
			p.log.WarnContext(ctx, "mqtt: this replica cannot connect to a peer: do both have the same YEOLDA_ENCRYPTION_KEY?", "peer", other.URL, "error", err)
			continue
		}
		address.User = url.UserPassword(broker.PeerUsername, string(secret))
		addresses = append(addresses, address)
	}
	return addresses, nil
}
