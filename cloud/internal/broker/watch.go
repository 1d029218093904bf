package broker

import (
	"context"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// silentEvery is how often silence is noticed.
	silentEvery = time.Second
	// revokedEvery bounds how long a revoked agent stays connected.
	revokedEvery = 15 * time.Second
)

// watch looks after what no event tells: silence, revoked credentials, lost messages.
func (b *Broker) watch(ctx context.Context) {
	silent := time.NewTicker(silentEvery)
	defer silent.Stop()
	revoked := time.NewTicker(revokedEvery)
	defer revoked.Stop()
	var lost int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-silent.C:
			b.presence.announceAll()
			for _, s := range b.sessions.all() {
				b.presence.announce(s.branch)
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

func (b *Broker) dropRevoked(ctx context.Context) error {
	if b.cfg.Revoked == nil {
		return nil
	}
	byName := make(map[string][]*session)
	var names []string
	for _, s := range b.sessions.all() {
		if byName[s.username] == nil {
			names = append(names, s.username)
		}
		byName[s.username] = append(byName[s.username], s)
	}
	if len(names) == 0 {
		return nil
	}
	revoked, err := b.cfg.Revoked(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range revoked {
		for _, s := range byName[name] {
			b.log.Warn("mqtt: revoked agent disconnected", "branch", s.branch, "username", s.username)
			_ = b.server.DisconnectClient(s.client, packets.ErrNotAuthorized)
		}
	}
	return nil
}
