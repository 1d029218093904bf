package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/yeolda/yeolda/agent/internal/durable"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// secrets prove the identity of this agent: those of its credentials, or those that replaced them. During a rotation there
// are two: new ones, and the present ones until the broker has accepted the new ones. Both are stored, so that a power cut at
// any moment leaves secrets that the cloud accepts. If another rotation begins before that, the new ones of the first are kept too:
// the cloud may have them.
type secrets struct {
	file   string // empty: secrets cannot be replaced
	origin string // fingerprint of the credentials that the file belongs to: a new enrolment starts with its own secrets

	mu       sync.Mutex
	current  link.Secret
	pending  *link.Secret
	rotation string        // of pending
	earlier  []link.Secret // pending ones of rotations before, the newest first
	unstored bool          // the file has more than these

	shown atomic.Pointer[[]link.Secret] // see list
}

// storedSecrets is the content of the file.
type storedSecrets struct {
	Origin   string         `json:"origin"`
	Current  storedSecret   `json:"current"`
	Pending  *storedSecret  `json:"pending,omitempty"`
	Rotation string         `json:"rotation,omitempty"`
	Earlier  []storedSecret `json:"earlier,omitempty"`
}

// maxEarlier is the number of rotations in a row that the broker may not have shown to be over.
const maxEarlier = 4

type storedSecret struct {
	Seed     []byte `json:"seed,omitempty"`
	Password string `json:"password,omitempty"`
}

func newSecrets(config Config) *secrets {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(config.Username), []byte(config.Password), config.Key} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	s := &secrets{file: config.SecretFile, origin: hex.EncodeToString(sum.Sum(nil)),
		current: link.Secret{Key: config.Key, Password: config.Password}}
	s.show()
	return s
}

// load replaces the secrets of the credentials with the stored ones.
func (s *secrets) load() error {
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var stored storedSecrets
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	if stored.Origin != s.origin {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = stored.Current.secret()
	if stored.Pending != nil {
		pending := stored.Pending.secret()
		s.pending, s.rotation = &pending, stored.Rotation
	}
	for _, e := range stored.Earlier {
		s.earlier = append(s.earlier, e.secret())
	}
	s.show()
	return nil
}

func (s storedSecret) secret() link.Secret {
	secret := link.Secret{Password: s.Password}
	if len(s.Seed) == ed25519.SeedSize {
		secret.Key = ed25519.NewKeyFromSeed(s.Seed)
	}
	return secret
}

func stored(secret link.Secret) storedSecret {
	s := storedSecret{Password: secret.Password}
	if secret.Key != nil {
		s.Seed = secret.Key.Seed()
	}
	return s
}

// list returns the secrets to connect with, the newest first. It does not wait for the disk.
func (s *secrets) list() []link.Secret { return *s.shown.Load() }

// show updates the list. mu is held.
func (s *secrets) show() {
	var list []link.Secret
	if s.pending != nil {
		list = append(list, *s.pending)
	}
	list = append(append(list, s.earlier...), s.current)
	s.shown.Store(&list)
}

// rekey returns new secrets for a rotation. They are stored before they are announced; a repeated rotation gets the same.
func (s *secrets) rekey(rotation string) (protocol.Rekeyed, error) {
	if s.file == "" {
		return protocol.Rekeyed{}, errors.New("this agent has no place to store new secrets")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil || s.rotation != rotation {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return protocol.Rekeyed{}, err
		}
		fresh, earlier := link.Secret{Key: key, Password: rand.Text() + rand.Text()}, s.earlier
		if s.pending != nil {
			earlier = append([]link.Secret{*s.pending}, earlier...)
			earlier = earlier[:min(len(earlier), maxEarlier)]
		}
		if err := s.store(s.current, &fresh, rotation, earlier); err != nil {
			return protocol.Rekeyed{}, err
		}
		s.pending, s.rotation, s.earlier, s.unstored = &fresh, rotation, earlier, false
		s.show()
	}
	hash := sha256.Sum256([]byte(s.pending.Password))
	return protocol.Rekeyed{Rotation: rotation,
		PublicKey:    base64.StdEncoding.EncodeToString(s.pending.Key.Public().(ed25519.PublicKey)),
		PasswordHash: base64.StdEncoding.EncodeToString(hash[:])}, nil
}

// accepted drops the secrets before those that the broker has accepted. If they cannot be stored, the file keeps the others, too, until
// the next connection.
func (s *secrets) accepted(secret link.Secret) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(other link.Secret) bool {
		return slices.Equal(other.Key, secret.Key) && other.Password == secret.Password
	}
	switch {
	case s.pending != nil && same(*s.pending):
		s.pending, s.rotation = nil, ""
	case slices.ContainsFunc(s.earlier, same):
	case s.unstored && same(s.current):
	default:
		return nil
	}
	s.current, s.earlier = secret, nil
	s.show()
	err := s.store(s.current, s.pending, s.rotation, nil)
	s.unstored = err != nil
	return err
}

func (s *secrets) store(current link.Secret, pending *link.Secret, rotation string, earlier []link.Secret) error {
	content := storedSecrets{Origin: s.origin, Current: stored(current), Rotation: rotation}
	if pending != nil {
		next := stored(*pending)
		content.Pending = &next
	}
	for _, e := range earlier {
		content.Earlier = append(content.Earlier, stored(e))
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := durable.Replace(s.file, text); err != nil {
		return fmt.Errorf("store secrets: %w", err)
	}
	return nil
}
