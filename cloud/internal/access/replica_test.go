package access_test

import (
	"crypto/ed25519"
	"net/url"
	"testing"

	"github.com/mochi-mqtt/server/v2/hooks/auth"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
)

// Two replicas use an external broker. Each accepts requests and subscribers, and either one handles the agent's claim and
// result.
func TestReplicasAtAnExternalBroker(t *testing.T) {
	t.Parallel()
	h := build(t)
	addr := mqttserver.Start(t, new(auth.AllowHook))
	var replicas []*access.Service
	for range 2 {
		s := h.replica()
		link := broker.NewPool(broker.PoolConfig{Brokers: []*url.URL{{Scheme: "mqtt", Host: addr}},
			Doors: s, Devices: devices{}, Climate: devices{}, Log: h.log()})
		s.Link = link
		h.run(link.Run)
		h.run(s.Run)
		replicas = append(replicas, s)
	}
	a := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Dial: agenttest.TCP(addr),
		Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}})
	for _, s := range replicas {
		h.until("the branch to be online", func() bool { return len(s.Link.Online("gangnam")) > 0 })
	}
	key := h.reserve(1)
	const unlocks = 20
	for n := range unlocks {
		id, err := replicas[n%2].Request(t.Context(), "gangnam", access.Room, key)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.await(replicas[(n+1)%2], id, key); got.Status != access.Success {
			t.Errorf("got %+v", got)
		}
	}
	if n := len(a.Driven()); n != unlocks {
		t.Errorf("%d drives for %d unlocks", n, unlocks)
	}
}
