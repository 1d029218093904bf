package broker

import (
	"context"
	"slices"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// silenceInterval is how often sessions are checked for silence.
	silenceInterval = time.Second
	// revocationInterval is the maximum time for which an agent stays connected whose credential is revoked or has new secrets.
	revocationInterval = 15 * time.Second
	// revocationBatch is the number of credentials in one of its queries.
	revocationBatch = 1000
)

// watch checks for conditions without an event: silence, revoked credentials, dropped messages.
func (b *Broker) watch(ctx context.Context) {
	silent := time.NewTicker(silenceInterval)
	defer silent.Stop()
	revoked := time.NewTicker(revocationInterval)
	defer revoked.Stop()
	var lost int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-silent.C:
			b.compare()
			if now := b.inbox.dropped.Load() + b.unsent.Load(); now > lost {
				b.log.Warn("mqtt: messages dropped", "in", b.inbox.dropped.Load(), "out", b.unsent.Load())
				lost = now
			}
		case <-revoked.C:
			if err := b.dropRevoked(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("mqtt: revoked credentials not checked", "error", err)
			}
		}
	}
}

// compare announces agents that have become silent or are silent no longer, and repeats announcements that did not fit into
// the inbox. The beginning and the end of a session are announced when they happen. The agents of peers end without an event
// when the connection to the peer is lost, so in a pool every announcement is compared.
func (b *Broker) compare() {
	if b.elsewhere != nil {
		b.presence.announceAll()
	} else {
		b.presence.announceMissed()
	}
	for _, s := range b.sessions.turned() {
		silent := !s.silent.Load()
		if b.presence.announce(s.agent()) {
			s.silent.Store(silent)
			b.notifyPeers(s, !silent, false)
		}
	}
}

// dropRevoked disconnects agents whose credential was revoked, or whose secrets were replaced since they connected. It asks
// for some credentials at a time, so that the memory for the answers does not grow with the agents.
func (b *Broker) dropRevoked(ctx context.Context) error {
	known := make(map[string]credential, revocationBatch)
	for some := range slices.Chunk(b.sessions.all(), revocationBatch) {
		names := make([]string, 0, len(some))
		for _, s := range some {
			names = append(names, s.username)
		}
		clear(known)
		err := b.cfg.Credentials(ctx, names, func(username, branch string, secretHash, publicKey []byte) {
			known[username] = credential{branch, secretHash, publicKey}
		})
		if err != nil {
			return err
		}
		for _, s := range some {
			if found, ok := known[s.username]; !ok || !found.same(s.secret) {
				b.log.Warn("mqtt: agent disconnected: its credential is revoked or has new secrets", "branch", s.branch, "username", s.username)
				_ = b.server.DisconnectClient(s.client, packets.ErrNotAuthorized)
			}
		}
	}
	return nil
}
