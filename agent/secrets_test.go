package agent_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

var self = protocol.Agent{Branch: "gangnam", Username: protocol.AgentID("gangnam")}

// TestRotationOfSecrets rotates the secrets of an agent that had a password only. A copy of its old secrets cannot connect
// afterwards; the agent itself can, also after a restart.
func TestRotationOfSecrets(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.SecretFile = filepath.Join(t.TempDir(), "secrets.json")
	b.online(t)
	rotation := protocol.NewNonce()
	ask := protocol.Rekey{Rotation: rotation}
	b.broker.SendTo(self, ask)
	answer := brokertest.Await[protocol.Rekeyed](b.broker)
	b.broker.SendTo(self, ask)
	if again := brokertest.Await[protocol.Rekeyed](b.broker); again != answer || answer.Rotation != rotation {
		t.Errorf("repeated question: got %+v, want the same answer %+v", again, answer)
	}
	key, _, err := answer.Secrets()
	if err != nil {
		t.Fatal(err)
	}

	// The cloud did not store the answer: the agent returns with its old secrets.
	b.broker.DropAll()
	awaitOnline(b)
	if text, err := os.ReadFile(b.config.SecretFile); err != nil || !strings.Contains(string(text), "pending") {
		t.Errorf("stored secrets: %s, %v, want the new ones beside the old ones", text, err)
	}

	b.broker.SetKey(protocol.AgentID("gangnam"), key)
	b.broker.DropAll()
	awaitOnline(b)
	b.awaitNewSecrets(t)
	if info, err := os.Stat(b.config.SecretFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the secrets: %v, %v, want mode 600", info, err)
	}
	b.stop()

	copied := b.config
	copied.SecretFile = ""
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	connections := b.broker.Connections()
	if err := agent.Run(ctx, copied, agent.Board{}); err != nil {
		t.Error(err)
	}
	if n := b.broker.Connections(); n != connections {
		t.Error("a copy of the old secrets has connected")
	}
	b.online(t)
}

// TestRotationAtABrokerWithPasswords rotates at a broker that does not know the challenge: the agent connects with its new
// password.
func TestRotationAtABrokerWithPasswords(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.SecretFile = filepath.Join(t.TempDir(), "secrets.json")
	b.config.Key = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	b.online(t)
	b.broker.SendTo(self, protocol.Rekey{Rotation: protocol.NewNonce()})
	answer := brokertest.Await[protocol.Rekeyed](b.broker)
	b.broker.SetPasswordHash(protocol.AgentID("gangnam"), answer.PasswordHash)
	b.broker.DropAll()
	awaitOnline(b)
	b.awaitNewSecrets(t)
}

// TestSecretsOfAnotherEnrolment checks that stored secrets do not survive a new enrolment.
func TestSecretsOfAnotherEnrolment(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	b.config.SecretFile = filepath.Join(t.TempDir(), "secrets.json")
	b.online(t)
	b.broker.SendTo(self, protocol.Rekey{Rotation: protocol.NewNonce()})
	answer := brokertest.Await[protocol.Rekeyed](b.broker)
	key, _, _ := answer.Secrets()
	b.broker.SetKey(protocol.AgentID("gangnam"), key)
	b.broker.DropAll()
	awaitOnline(b)
	b.stop()
	hash := sha256.Sum256([]byte("enrolled again"))
	b.broker.SetPasswordHash(protocol.AgentID("gangnam"), base64.StdEncoding.EncodeToString(hash[:]))
	b.config.Password = "enrolled again"
	b.online(t)
}

// awaitNewSecrets waits until only the new secrets are stored.
func (b *branch) awaitNewSecrets(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; {
		text, err := os.ReadFile(b.config.SecretFile)
		if err == nil && !strings.Contains(string(text), "pending") {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("stored secrets: %s, %v, want the new ones only", text, err)
		}
	}
}

// awaitOnline waits for an online status.
func awaitOnline(b *branch) {
	for brokertest.Await[protocol.Status](b.broker).State != protocol.Online {
	}
}
