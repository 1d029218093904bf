package agent_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/settings"
	"github.com/yeolda/yeolda/protocol"
)

// TestStalledCardDelaysNoPress has a card stall while the agent stores what the cloud has sent. Presses are answered, the status is
// published, and the watchdog is fed meanwhile. Then the card works again, and the cloud repeats the message.
func TestStalledCardDelaysNoPress(t *testing.T) {
	t.Parallel()
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	rotation := protocol.NewNonce()
	keys := protocol.KeyList{Epoch: 1, Keys: []string{
		base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0]), base64.StdEncoding.EncodeToString(next.Public().(ed25519.PublicKey))}}
	for name, c := range map[string]struct {
		file string
		send func(b *branch)
		done func(b *branch) // waits for the effect
	}{
		"keys": {"keys.json",
			func(b *branch) { b.broker.SendTo(self, keys.Sign(brokertest.Key)) },
			func(b *branch) { b.awaitAny(func(s protocol.Status) bool { return s.KeyEpoch == 1 }) }},
		"brokers": {"brokers.json",
			func(b *branch) { b.broker.SendTo(self, protocol.BrokerList{Epoch: 1}.Sign(brokertest.Key)) },
			func(b *branch) { b.awaitAny(func(s protocol.Status) bool { return *s.BrokerEpoch == 1 }) }},
		"secrets": {"secrets.json",
			func(b *branch) { b.broker.SendTo(self, protocol.Rekey{Rotation: rotation}) },
			func(b *branch) { brokertest.Await[protocol.Rekeyed](b.broker) }},
		"settings": {"cloud-settings.json",
			func(b *branch) {
				b.broker.SendTo(self, protocol.Settings{Version: 1, Text: "mistake"}.Sign(brokertest.Key, self))
			},
			func(b *branch) { b.awaitAny(func(s protocol.Status) bool { return s.Settings.Highest == 1 }) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, dir := newBranch(t), t.TempDir()
			b.config.KeyFile, b.config.BrokerFile = filepath.Join(dir, "keys.json"), filepath.Join(dir, "brokers.json")
			b.config.SecretFile = filepath.Join(dir, "secrets.json")
			b.config.Settings = settings.Open(settings.Config{
				Disk: settings.Dir(dir), File: func() (string, error) { return "file", nil }, Log: slog.New(slog.DiscardHandler),
				Check: func(text string) error {
					if text == "mistake" {
						return os.ErrInvalid
					}
					return nil
				},
			})
			b.config.Settings.Enrolled(self)
			alive := make(chan struct{})
			b.config.Alive = func() {
				select {
				case alive <- struct{}{}:
				case <-t.Context().Done():
				}
			}
			b.start(t)
			<-alive
			brokertest.Await[protocol.Status](b.broker)
			stalled := filepath.Join(dir, c.file+".new") // opening it blocks until it is read
			if err := syscall.Mkfifo(stalled, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // a test that has failed
				if card, err := os.OpenFile(stalled, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
					_ = card.Close()
				}
			})
			c.send(b)
			b.broker.Send("gangnam", grant(b.claim(b.newRequest(), "room_1"), time.Second, "room_1"))
			if r := brokertest.Await[protocol.Result](b.broker); r.Outcome != protocol.Opened {
				t.Errorf("got %+v, want opened", r)
			}
			b.broker.DropAll() // the status is published again
			b.awaitAny(func(protocol.Status) bool { return true })
			<-alive
			<-alive
			if _, err := os.ReadFile(stalled); err != nil {
				t.Fatal(err)
			}
			c.send(b)
			c.done(b)
		})
	}
}

// awaitAny waits for an online status that fits.
func (b *branch) awaitAny(fits func(protocol.Status) bool) {
	for {
		if s := brokertest.Await[protocol.Status](b.broker); s.State == protocol.Online && fits(s) {
			return
		}
	}
}
