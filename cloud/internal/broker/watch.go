package broker

import (
	"context"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// silenceInterval is how often sessions are checked for silence.
	silenceInterval = time.Second
	// revocationInterval is the maximum time for which an agent stays connected whose credential is revoked or has new secrets.
	revocationInterval = 15 * time.Second
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
			b.presence.announceAll()
			for _, s := range b.sessions.all() {
				b.presence.announce(s.agent())
			}
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

// dropRevoked disconnects agents whose credential was revoked, or whose secrets were replaced since they connected.
func (b *Broker) dropRevoked(ctx context.Context) error {
	all := b.sessions.all()
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.username)
	}
	if len(names) == 0 {
		return nil
	}
	known := make(map[string]credential, len(names))
	err := b.cfg.Credentials(ctx, names, func(username, branch string, secretHash, publicKey []byte) {
		known[username] = credential{branch, secretHash, publicKey}
	})
	if err != nil {
		return err
	}
	for _, s := range all {
		if found, ok := known[s.username]; !ok || !found.same(s.secret) {
			b.log.Warn("mqtt: agent disconnected: its credential is revoked or has new secrets", "branch", s.branch, "username", s.username)
			_ = b.server.DisconnectClient(s.client, packets.ErrNotAuthorized)
		}
	}
	return nil
}
