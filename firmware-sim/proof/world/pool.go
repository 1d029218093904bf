package world

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
	"github.com/yeolda/yeolda/protocol"
)

// Pool selects the brokers of a world and the number of its replicas.
type Pool string

// Pools.
const (
	Mosquitto  Pool = ""           // one, with two replicas
	Mosquittos Pool = "mosquittos" // two, with two replicas
	Embedded   Pool = "embedded"   // those of three replicas, and no other
)

// Valid reports whether there is such a pool.
func (p Pool) Valid() bool { return p == Mosquitto || p == Mosquittos || p == Embedded }

// String describes the replicas and the brokers.
func (p Pool) String() string {
	switch p {
	case Mosquittos:
		return "two replicas and two Mosquittos as a pool"
	case Embedded:
		return "three replicas whose embedded brokers are a pool, and no other broker"
	}
	return "two replicas and one Mosquitto"
}

func (p Pool) replicas() int {
	if p == Embedded {
		return 3
	}
	return 2
}

// mosquittos returns the number of brokers that are processes of their own.
func (p Pool) mosquittos() int {
	switch p {
	case Embedded:
		return 0
	case Mosquittos:
		return 2
	}
	return 1
}

// Broker is an MQTT broker.
type Broker struct {
	*Process        // nil: embedded in the replica of the same place
	Cloud    string // host:port, for replicas
	Agents   string // host:port, for agents

	overheard *eavesdropper // nil: the service connects with brokerSecret
}

// linkBrokers links a replica with the brokers, and returns its settings. If there are none, its embedded one listens on address.
func (w *World) linkBrokers(r *Replica, address string) (settings []string, err error) {
	if len(w.Brokers) == 0 || w.Brokers[0].Process == nil {
		overheard := new(eavesdropper)
		peers, err := faultproxy.New(func() (net.Conn, error) {
			conn, err := net.DialTimeout("tcp", address, 2*time.Second) //nolint:noctx // the link outlives the start
			if err != nil {
				return nil, err
			}
			return overheard.tap(conn), nil
		})
		if err != nil {
			return nil, err
		}
		r.Brokers = append(r.Brokers, peers)
		w.Brokers = append(w.Brokers, Broker{Cloud: address, Agents: address, overheard: overheard})
		return []string{"YEOLDA_MQTT_ADDR=" + address, "YEOLDA_BROKER_PEER_URL=mqtt://" + peers.Addr()}, nil
	}
	var urls []string
	for _, b := range w.Brokers {
		link, err := linkTo(b.Cloud)
		if err != nil {
			return nil, err
		}
		r.Brokers = append(r.Brokers, link)
		urls = append(urls, serviceURL(link.Addr()))
	}
	return []string{"YEOLDA_BROKER_URL=" + strings.Join(urls, ",")}, nil
}

// AgentBrokers returns the addresses of the brokers as an agent reads them.
func (w *World) AgentBrokers() string {
	var urls []string
	for _, b := range w.Brokers {
		urls = append(urls, "mqtt://"+b.Agents)
	}
	return strings.Join(urls, ",")
}

// startMosquitto starts one more Mosquitto for the agents of the world.
func (w *World) startMosquitto(ctx context.Context, root string, rules brokerRules) error {
	users := slices.Clone(w.Standby)
	for _, branch := range w.agents {
		users = append(users, Credential{branch, protocol.AgentID(branch), fleetconfig.DemoPassword(branch)})
	}
	b, err := newMosquitto(ctx, root, filepath.Join(w.dir, fmt.Sprintf("mosquitto-%d", len(w.Brokers)+1)), rules, users, w.log)
	if err != nil {
		return err
	}
	w.Brokers = append(w.Brokers, b)
	return w.run(ctx, b.Process)
}
