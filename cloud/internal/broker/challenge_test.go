package broker

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/protocol"
)

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// TestChallenge checks who may connect with a credential that has a key pair, and with one that has only a password.
func TestChallenge(t *testing.T) {
	t.Parallel()
	b := start(t)
	key := keyOf(1)
	b.mu.Lock()
	b.keys["agent-gangnam"] = key.Public().(ed25519.PublicKey)
	b.mu.Unlock()
	method := func(c *paho.Connect) { c.Properties = &paho.ConnectProperties{AuthMethod: "SCRAM-SHA-256"} }
	for _, c := range []struct {
		name   string
		config agenttest.Config
		may    bool
	}{
		{"with its key", agenttest.Config{Branch: "gangnam", Key: key}, true},
		{"with its key again", agenttest.Config{Branch: "gangnam", Key: key}, true},
		{"with another key", agenttest.Config{Branch: "gangnam", Key: keyOf(2)}, false},
		{"with its password although it has a key", agenttest.Config{Branch: "gangnam"}, false},
		{"with a key although it has none", agenttest.Config{Branch: "hongdae", Key: key}, false},
		{"with its password", agenttest.Config{Branch: "hongdae"}, true},
		{"with another method", agenttest.Config{Branch: "hongdae", Connect: method}, false},
		{"unknown, with a key", agenttest.Config{Branch: "jamsil", Key: key}, false},
	} {
		c.config.Dial = agenttest.TCP(b.addr)
		a, err := agenttest.Try(t, c.config)
		if (err == nil) != c.may {
			t.Errorf("%s: got %v, may connect: %v", c.name, err, c.may)
		}
		if a != nil {
			a.Close()
		}
	}
}

// TestChallengeIsNotReplayable checks that a recorded answer is invalid for another connection: each has a nonce of its own.
func TestChallengeIsNotReplayable(t *testing.T) {
	t.Parallel()
	b := start(t)
	key := keyOf(1)
	b.mu.Lock()
	b.keys["agent-gangnam"] = key.Public().(ed25519.PublicKey)
	b.mu.Unlock()
	var recorded []byte
	record := agenttest.Config{Branch: "gangnam", Key: key, Dial: agenttest.TCP(b.addr), Sign: func(nonce []byte) []byte {
		recorded = ed25519.Sign(key, protocol.Challenge("agent-gangnam", string(nonce)))
		return recorded
	}}
	agenttest.Connect(t, record).Close()
	replay := record
	replay.Sign = func([]byte) []byte { return recorded }
	if _, err := agenttest.Try(t, replay); err == nil {
		t.Error("a recorded answer was accepted")
	}
}

// TestReplacedSecretsDisconnect checks that a session ends once its credential has other secrets, and no other session does.
func TestReplacedSecretsDisconnect(t *testing.T) {
	t.Parallel()
	b := start(t)
	gangnam, hongdae := b.agent(t, "gangnam"), b.agent(t, "hongdae")
	key := keyOf(1)
	b.mu.Lock()
	b.keys["agent-gangnam"] = key.Public().(ed25519.PublicKey)
	b.mu.Unlock()
	if err := b.dropRevoked(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gangnam.Gone():
	case <-time.After(time.Minute):
		t.Fatal("the session with the old password continues")
	}
	again := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", Key: key, Dial: agenttest.TCP(b.addr)})
	b.mu.Lock()
	b.secrets["agent-gangnam"] = "other" // the password matters only without a key
	b.mu.Unlock()
	if err := b.dropRevoked(t.Context()); err != nil {
		t.Fatal(err)
	}
	for branch, a := range map[string]*agenttest.Agent{"gangnam": again, "hongdae": hongdae} {
		id := b.ask(t, branch)
		a.Until(t, "the ask", func() bool { return a.Asked(id) > 0 })
	}
}
