package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// acceptedOnAFailedCard returns secrets of a rotation that the broker has accepted while the card could not be written, and the accepted one.
func acceptedOnAFailedCard(t *testing.T) (config Config, s *secrets, accepted link.Secret) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secrets.json")
	config = Config{Username: "agent-gangnam", Password: "of the credentials", SecretFile: file}
	s = newSecrets(config)
	if _, err := s.rekey("first"); err != nil {
		t.Fatal(err)
	}
	accepted = s.list()[0]
	if err := os.Mkdir(file+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.accepted(accepted); err == nil {
		t.Error("the card fails: got no error")
	}
	if err := os.Remove(file + ".new"); err != nil {
		t.Fatal(err)
	}
	return config, s, accepted
}

// TestRotationAfterACardThatFailed rotates twice. The broker accepts the first new secrets while the card cannot be written: the second
// rotation must not forget them, because the broker accepts no other ones until it has the answer.
func TestRotationAfterACardThatFailed(t *testing.T) {
	t.Parallel()
	config, s, accepted := acceptedOnAFailedCard(t)
	if _, err := s.rekey("second"); err != nil {
		t.Fatal(err)
	}
	restarted := newSecrets(config)
	if err := restarted.load(); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]link.Secret{"running": s.list(), "restarted": restarted.list()} {
		if len(list) != 2 || list[1].Password != accepted.Password {
			t.Errorf("%s: got %d secrets, want the accepted ones behind the new ones", name, len(list))
		}
	}
}

// TestAcceptedSecretsAreStoredLater: a card that cannot be written when the broker accepts new secrets has the old ones until the next
// connection.
func TestAcceptedSecretsAreStoredLater(t *testing.T) {
	t.Parallel()
	config, s, fresh := acceptedOnAFailedCard(t)
	if err := s.accepted(fresh); err != nil {
		t.Fatal(err)
	}
	restarted := newSecrets(config)
	if err := restarted.load(); err != nil {
		t.Fatal(err)
	}
	if list := restarted.list(); len(list) != 1 || list[0].Password != fresh.Password {
		t.Errorf("got %d secrets, want the accepted ones only", len(list))
	}
}

// TestRotationBeforeTheFirstIsAccepted rotates twice on one connection. The cloud has the answer to the first rotation, and the one to the
// second is lost: the agent still connects with the secrets of the first, and keeps those of the second, whose rotation is repeated.
func TestRotationBeforeTheFirstIsAccepted(t *testing.T) {
	t.Parallel()
	config := Config{Username: "agent-gangnam", Password: "of the credentials", SecretFile: filepath.Join(t.TempDir(), "secrets.json")}
	s := newSecrets(config)
	var answers []protocol.Rekeyed
	for _, rotation := range []string{"first", "second"} {
		answer, err := s.rekey(rotation)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	s = newSecrets(config) // a power cut
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	list := s.list()
	if len(list) != 3 || list[2].Password != config.Password {
		t.Fatalf("got %d secrets, want those of both rotations and the present ones", len(list))
	}
	hash := sha256.Sum256([]byte(list[1].Password))
	if base64.StdEncoding.EncodeToString(hash[:]) != answers[0].PasswordHash {
		t.Error("the secrets of the first rotation are not the second ones")
	}
	if err := s.accepted(list[1]); err != nil {
		t.Fatal(err)
	}
	if again, err := s.rekey("second"); err != nil || again != answers[1] {
		t.Errorf("the second rotation repeated: got %+v, %v, want the same answer %+v", again, err, answers[1])
	}
	if got := s.list(); len(got) != 2 || got[1].Password != list[1].Password {
		t.Errorf("got %d secrets, want those of the second rotation and the accepted ones", len(got))
	}
}

// TestRotationOnAFullCard asks for new secrets every two seconds for a day, as the cloud does, while the card cannot be written.
func TestRotationOnAFullCard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets.json")
	if err := os.Mkdir(file+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := &agent{log: slog.New(slog.NewTextHandler(&log, nil)), secrets: newSecrets(Config{Username: "agent-gangnam", SecretFile: file})}
		a.rekeying.Log = a.log
		for range 24 * 60 * 30 {
			a.rekey(protocol.Rekey{Rotation: "first"})
			time.Sleep(2 * time.Second)
		}
		if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 40 {
			t.Errorf("%d lines in the log of a day, want one an hour at most; the first are\n%.500s", lines, log.String())
		}
	})
}
