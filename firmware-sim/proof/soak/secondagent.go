package soak

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

// accepted is a request that a thief may lie about.
type accepted struct{ branch, id string }

// tempt offers an accepted request to the thief.
func (s *Soak) tempt(branch, id string) {
	select {
	case s.requests <- accepted{branch, id}:
	default: // the thief is not connected, or busy
	}
}

// runBenchPi runs the agent without hardware with a standby credential, beside the agent of the branch.
func (s *Soak) runBenchPi(ctx context.Context, c world.Credential) {
	for ctx.Err() == nil {
		// The agent keeps trying to connect; it ends only with ctx.
		_ = agent.Run(ctx, agent.Config{Branch: c.Branch, BrokerURL: s.world.AgentBrokers(), Username: c.Username, Password: c.Password,
			GrantKeys: s.world.GrantKeys, Version: "bench", Logger: slog.New(slog.DiscardHandler)}, agent.Board{})
		pause(ctx, time.Second)
	}
}

// runThief acts with a stolen standby credential: it claims every request of the branch and reports every outcome, on the
// topics of its credential and of the branch.
func (s *Soak) runThief(ctx context.Context, c world.Credential, dice *rand.Rand) {
	for ctx.Err() == nil {
		client := s.connectAs(ctx, c, s.world.Brokers[dice.IntN(len(s.world.Brokers))].Agents)
		if client == nil {
			pause(ctx, time.Second)
			continue
		}
		s.lieUntilLost(ctx, client, c, dice)
		_ = client.Disconnect(&paho.Disconnect{}) // the connection may be closed
	}
}

func (s *Soak) connectAs(ctx context.Context, c world.Credential, broker string) *paho.Client {
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(limited, "tcp", broker)
	if err != nil {
		return nil
	}
	client := paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: 3 * time.Second})
	_, err = client.Connect(limited, &paho.Connect{ClientID: c.Username, CleanStart: true, KeepAlive: 10,
		Username: c.Username, UsernameFlag: true, Password: []byte(c.Password), PasswordFlag: true})
	if err != nil {
		conn.Close()
		return nil
	}
	return client
}

func (s *Soak) lieUntilLost(ctx context.Context, client *paho.Client, c world.Credential, dice *rand.Rand) {
	var doors []string
	for _, b := range s.world.Branches {
		if b.Code == c.Branch {
			doors = b.Doors()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-client.Done():
			return
		case r := <-s.requests:
			if r.branch != c.Branch {
				continue
			}
			nonce := protocol.NewNonce()
			lies := []protocol.Message{protocol.Claim{RequestID: r.id, Nonce: nonce}}
			for _, device := range doors {
				for _, outcome := range []protocol.Outcome{protocol.Opened, protocol.Failed, protocol.Dropped} {
					lies = append(lies, protocol.Result{RequestID: r.id, Nonce: []string{nonce, ""}[dice.IntN(2)], Device: device, Outcome: outcome})
				}
			}
			dice.Shuffle(len(lies), func(i, j int) { lies[i], lies[j] = lies[j], lies[i] })
			for _, lie := range lies {
				s.lie(ctx, client, c, r.id, lie)
			}
		}
	}
}

// lie publishes a message on the topic of the credential and on that of the branch.
func (s *Soak) lie(ctx context.Context, client *paho.Client, c world.Credential, request string, m protocol.Message) {
	payload, err := protocol.Encode(m)
	if err != nil {
		panic(err) // messages are values of this package
	}
	for _, of := range []protocol.Agent{{Branch: c.Branch, Username: c.Username}, {Branch: c.Branch}} {
		if _, err := client.Publish(ctx, &paho.Publish{Topic: of.Topic(m.Kind()), Payload: payload}); err != nil {
			return
		}
	}
	s.note(func(rec *record.Record) {
		rec.Forged = append(rec.Forged, record.Forgery{Kind: "lie", Order: request, At: time.Now()})
	})
}
