package broker

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"
)

// ErrReplaced is returned by PoolConfig.Peers if another replica has taken the address of this one. It ends the pool.
var ErrReplaced = errors.New("broker: another replica has the address of this one")

// follower is a running connection to a peer.
type follower struct {
	*remote
	stop context.CancelFunc
}

// followPeers keeps a connection to every peer until ctx ends. A peer that is no longer in the list keeps its connection while
// that works: the list is old after the database was away.
func (p *Pool) followPeers(ctx context.Context) error {
	followers := make(map[string]follower) // by address with password
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	tick := time.NewTicker(PeerInterval)
	defer tick.Stop()
	for {
		peers, err := p.cfg.Peers(ctx)
		if errors.Is(err, ErrReplaced) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn("mqtt: the list of peers was not read", "error", err)
		}
		if err == nil {
			p.followListed(ctx, peers, followers, &running)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// followListed connects to the peers that are new in the list, and leaves those that are not in it any more.
func (p *Pool) followListed(ctx context.Context, peers []*url.URL, followers map[string]follower, running *sync.WaitGroup) {
	for _, peer := range peers {
		if _, here := followers[peer.String()]; !here {
			followers[peer.String()] = p.follow(ctx, peer, running)
		}
	}
	for address, f := range followers {
		listed := slices.ContainsFunc(peers, func(peer *url.URL) bool { return peer.String() == address })
		replaced := slices.ContainsFunc(peers, func(peer *url.URL) bool { return peer.Host == f.address.Host })
		if !listed && (replaced || !f.connected()) {
			f.stop()
			delete(followers, address)
		}
	}
	all := !slices.ContainsFunc(p.all(), func(r *remote) bool { return r.peer && !r.up.Load() })
	if all && !p.settled.Swap(true) {
		p.cfg.Log.Info("mqtt: connected to all peers", "peers", len(peers))
	}
}

// follow connects to a peer until it is stopped.
func (p *Pool) follow(ctx context.Context, peer *url.URL, running *sync.WaitGroup) follower {
	ctx, stop := context.WithCancel(ctx)
	r := newRemote(p, peer, true)
	p.mu.Lock()
	p.remotes = append(p.remotes, r)
	p.mu.Unlock()
	running.Go(func() {
		if err := r.run(ctx); err != nil && ctx.Err() == nil {
			p.cfg.Log.Error("mqtt: no connection to the peer", "broker", r.address.Host, "error", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.remotes = slices.DeleteFunc(slices.Clone(p.remotes), func(other *remote) bool { return other == r })
	})
	return follower{r, stop}
}
