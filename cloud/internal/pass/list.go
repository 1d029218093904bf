package pass

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// The cost of a verifier: by calculation, one check takes 95 to 140 ms on a Raspberry Pi 4 (24,576 blocks of 7,000 to 10,000
// instructions, 1.8 billion a second). All million PINs cost a thief of a list a day on such a machine, far longer than a pass
// lives. agent/hwtest measures the time from the last key to the pulse.
const (
	kdfTime      = 2
	kdfMemoryKiB = 12 << 10
	kdfThreads   = 1
)

// send sends an agent its list.
func (s *Service) send(ctx context.Context, agent protocol.Agent) {
	limited, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	applied, err := s.sendList(limited, agent)
	if errors.Is(err, postgres.ErrNoAgent) {
		applied, err = true, nil // a standby agent: there is nothing to revoke
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Error("pass: list not sent", "branch", agent.Branch, "username", agent.Username, "error", err)
	}
	s.timetable.done(agent, applied)
}

// sendList reports whether the agent has acknowledged the version that was sent.
func (s *Service) sendList(ctx context.Context, agent protocol.Agent) (applied bool, err error) {
	announced := s.timetable.sealKeyOf(agent)
	sealKey, err := base64.StdEncoding.DecodeString(announced)
	if err != nil {
		return false, fmt.Errorf("seal key: %w", err)
	}
	var list postgres.List
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		list, err = postgres.PrepareList(ctx, tx, s.Keys, agent.Username, sealKey, s.now())
		return err
	})
	if err != nil {
		return false, err
	}
	if list.Applied && s.timetable.sent(agent, list.Version) {
		return true, nil
	}
	message, err := s.message(ctx, agent, list, sealKey)
	if err != nil {
		return false, err
	}
	if err := s.Link.Send(protocol.Peer{Agent: agent}, message); err != nil {
		return false, err
	}
	s.timetable.noteSent(agent, list.Version)
	s.Log.Debug("pass: list sent", "branch", agent.Branch, "username", agent.Username, "version", list.Version, "passes", len(list.Passes))
	return list.Applied, nil
}

// message returns a list as it is sent.
func (s *Service) message(ctx context.Context, agent protocol.Agent, list postgres.List, sealKey []byte) (protocol.PassList, error) {
	issued := list.IssuedAt.UTC().Truncate(time.Millisecond)
	m := protocol.PassList{
		Branch: agent.Branch, Epoch: list.Epoch, Version: list.Version, IssuedAt: issued, LeaseUntil: issued.Add(postgres.ListDepth),
		KDF: protocol.KDF{Name: protocol.KDFArgon2id, Time: kdfTime, MemoryKiB: kdfMemoryKiB, Threads: kdfThreads,
			Salt: base64.StdEncoding.EncodeToString(list.Salt)},
		CodeEpoch: list.CodeEpoch, Passes: []protocol.Pass{},
	}
	if list.CodeKey != nil && len(sealKey) == 32 {
		key, err := s.Keys.Open(postgres.CodeKeyPurpose, list.CodeKey)
		if err != nil {
			return m, fmt.Errorf("code key: %w", err)
		}
		boxed, err := box.SealAnonymous(nil, key, (*[32]byte)(sealKey), rand.Reader)
		if err != nil {
			return m, fmt.Errorf("code key: %w", err)
		}
		m.CodeKey = base64.StdEncoding.EncodeToString(boxed)
	}
	for _, p := range list.Passes {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		pin, err := s.Keys.Open(postgres.PassPINPurpose, p.PIN)
		if err != nil {
			return m, fmt.Errorf("PIN of pass %s: %w", p.ID, err)
		}
		m.Passes = append(m.Passes, protocol.Pass{
			Pass: p.ID.String(), Doors: p.Doors, NotBefore: p.NotBefore.UTC(), NotAfter: p.NotAfter.UTC(),
			Verifier: s.hashes.of(p, list.Salt, pin, s.now()),
		})
	}
	signing, err := s.GrantKeys.Signing(ctx, list.KeyEpoch)
	if err != nil {
		return m, err
	}
	return m.Sign(signing, agent.Username), nil
}

// verifiers remembers the hashes of PINs, so that a change of a list costs one hash for each changed pass.
type verifiers struct {
	mu    sync.Mutex
	byPIN map[string]verifier
}

type verifier struct {
	hash string
	ends time.Time // of its pass
}

func (v *verifiers) of(p postgres.ListedPass, salt, pin []byte, now time.Time) string {
	key := string(salt) + string(p.ID[:]) + string(p.PIN)
	v.mu.Lock()
	known, ok := v.byPIN[key]
	v.mu.Unlock()
	if ok {
		return known.hash
	}
	hash := base64.StdEncoding.EncodeToString(argon2.IDKey(pin, salt, kdfTime, kdfMemoryKiB, kdfThreads, protocol.VerifierSize))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byPIN == nil {
		v.byPIN = make(map[string]verifier)
	}
	for other, of := range v.byPIN {
		if of.ends.Before(now) {
			delete(v.byPIN, other)
		}
	}
	v.byPIN[key] = verifier{hash, p.NotAfter}
	return hash
}

// Applied records that an agent uses a list from now on.
func (s *Service) Applied(ctx context.Context, from protocol.Peer, m protocol.PassApplied) error {
	var (
		released int64
		behind   bool
	)
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		released, behind, err = postgres.AcknowledgeList(ctx, tx, from.Username, m.Epoch, m.Version, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("pass: list %d.%d of %s: %w", m.Epoch, m.Version, from.Username, err)
	}
	if behind {
		s.Log.Warn("pass: agent has a newer list than the database", "branch", from.Branch, "username", from.Username, "epoch", m.Epoch, "version", m.Version)
		s.timetable.touch(from.Branch)
		return nil
	}
	if released > 0 {
		s.Log.Info("pass: quarantines ended", "branch", from.Branch, "count", released)
	}
	s.timetable.acknowledged(from.Agent, m.Version)
	return nil
}
