package access_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Three replicas have an embedded broker each, and the agents are at two of them. A press at any replica opens the door of each
// branch, and its result is awaited at another one.
func TestPressAtAnyReplicaOfAPool(t *testing.T) {
	t.Parallel()
	h := build(t)
	const secret = "secret of a peer"
	hash := sha256.Sum256([]byte(secret))
	listeners := make([]net.Listener, 3)
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	var replicas []*access.Service
	var links []*broker.Pool
	for i, l := range listeners {
		s := h.replica()
		own, err := broker.New(broker.Config{Listener: l, Doors: s, Devices: devices{}, Climate: devices{}, Log: h.log(), PeerSecretHash: hash[:],
			Credentials: func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
				return postgres.FindAgents(ctx, h.db.Pool, usernames, found)
			}})
		if err != nil {
			t.Fatal(err)
		}
		link := broker.NewPool(broker.PoolConfig{Own: own, Doors: s, Devices: devices{}, Climate: devices{}, Log: h.log(),
			Peers: func(context.Context) (peers []*url.URL, _ error) {
				for n, other := range listeners {
					if n != i {
						peers = append(peers, &url.URL{Scheme: "mqtt", Host: other.Addr().String(), User: url.UserPassword(broker.PeerUsername, secret)})
					}
				}
				return peers, nil
			}})
		s.Link = link
		h.run(link.Run)
		h.run(s.Run)
		replicas, links = append(replicas, s), append(links, link)
	}
	keys := make(map[string]string)
	agents := make(map[string]*agenttest.Agent)
	start := h.now().Truncate(10 * time.Minute).Add(-30 * time.Minute)
	for i, branch := range []string{"gangnam", "hongdae"} {
		agents[branch] = agenttest.Connect(t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(listeners[i].Addr().String()),
			Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}})
		keys[branch] = h.reserveAt(branch, 1, start, start.Add(time.Hour))
	}
	for _, link := range links {
		h.until("all peers", link.Connected)
		for branch := range agents {
			h.until("the branch to be online", func() bool { return len(link.Online(branch)) > 0 })
		}
	}
	for branch, a := range agents {
		for n := range replicas {
			id, err := replicas[n].Request(t.Context(), branch, access.Room, keys[branch])
			if err != nil {
				t.Fatal(err)
			}
			if got := h.await(replicas[(n+1)%len(replicas)], id, keys[branch]); got.Status != access.Success {
				t.Errorf("%s at replica %d: got %+v, want SUCCESS", branch, n, got)
			}
		}
		if n := len(a.Driven()); n != len(replicas) {
			t.Errorf("%s: %d drives for %d presses", branch, n, len(replicas))
		}
	}
}
