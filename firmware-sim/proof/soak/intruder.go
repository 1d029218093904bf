package soak

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"math/rand/v2"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/google/uuid"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

// intrude acts with the stolen password of the service at the broker, but without its signing key: it answers every
// claim with a forged grant, faster than the service, and makes agents claim forged requests. Embedded brokers let no other
// replica read claims; there it grants its own requests blindly.
func (s *Soak) intrude(ctx context.Context, dice *rand.Rand) {
	seed := sha256.Sum256([]byte("a key that no agent trusts"))
	key := ed25519.NewKeyFromSeed(seed[:])
	for ctx.Err() == nil {
		client, lost := s.breakIn(ctx, s.world.Brokers[dice.IntN(len(s.world.Brokers))], key)
		if client == nil {
			pause(ctx, time.Second)
			continue
		}
		for stay := true; stay; {
			b, request := s.world.Branches[dice.IntN(len(s.world.Branches))], uuid.NewString()
			if s.forge(ctx, client, "ask", b.Code, protocol.Ask{RequestID: request, Doors: b.Doors()}) != nil {
				break
			}
			if s.world.Pool == world.Embedded {
				grant := protocol.Grant{Branch: b.Code, RequestID: request, Nonce: protocol.NewNonce(), Doors: b.Doors(), PulseMs: 3000}
				if s.forge(ctx, client, "grant", b.Code, grant.Sign(key)) != nil {
					break
				}
			}
			select {
			case <-ctx.Done():
				stay = false
			case <-lost:
				stay = false
			case <-time.After(between(dice, 200*time.Millisecond, time.Second)):
			}
		}
		_ = client.Disconnect(&paho.Disconnect{}) // the connection may be closed
	}
}

func (s *Soak) breakIn(ctx context.Context, broker world.Broker, key ed25519.PrivateKey) (*paho.Client, <-chan struct{}) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", broker.Cloud)
	if err != nil {
		return nil, nil
	}
	var client *paho.Client
	ready := make(chan struct{})
	client = paho.NewClient(paho.ClientConfig{Conn: conn, PacketTimeout: 3 * time.Second,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			<-ready
			branch, kind, ok := protocol.ParseTopic(p.Packet.Topic)
			claim, err := protocol.Decode[protocol.Claim](p.Packet.Payload)
			if !ok || kind != protocol.KindDoorClaim || err != nil {
				return true, nil //nolint:nilerr // without a claim there is nothing to forge
			}
			for _, b := range s.world.Branches {
				if b.Code == branch {
					grant := protocol.Grant{Branch: branch, RequestID: claim.RequestID, Nonce: claim.Nonce, Doors: b.Doors(), PulseMs: 3000}
					_ = s.forge(ctx, client, "grant", branch, grant.Sign(key)) // an error means that nothing was forged
				}
			}
			return true, nil
		}}})
	username, password := broker.Credential()
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = client.Connect(limited, &paho.Connect{ClientID: "intruder", CleanStart: true, KeepAlive: 10,
		Username: username, UsernameFlag: true, Password: []byte(password), PasswordFlag: true})
	close(ready)
	if err != nil {
		conn.Close()
		return nil, nil
	}
	if s.world.Pool == world.Embedded {
		return client, client.Done()
	}
	_, err = client.Subscribe(limited, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: protocol.Filters(protocol.KindDoorClaim)[0]}}})
	if err != nil {
		conn.Close()
		return nil, nil
	}
	return client, client.Done()
}

// forge publishes a message in the name of the service.
func (s *Soak) forge(ctx context.Context, client *paho.Client, what, branch string, m protocol.Message) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return err
	}
	if _, err := client.Publish(ctx, &paho.Publish{Topic: protocol.Topic(branch, m.Kind()), Payload: payload}); err != nil {
		return err
	}
	s.note(func(rec *record.Record) { rec.Forged = append(rec.Forged, record.Forgery{Kind: what, At: time.Now()}) })
	return nil
}
