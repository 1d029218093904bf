// Package grantkey holds the keys that sign door grants, and replaces them without a visit to any agent.
//
//	epoch 0    the keys of the setting; agents have them from their enrolment
//	rotate     epoch 1: new key and old keys, signed with the old key    agents accept both
//	finish     epoch 2: new key alone, signed with it                    the old key opens nothing
//
// Lists are sent one at a time, each after the agent has reported the previous one. So the cloud never signs with a key that an
// agent has dropped: while an agent's report is on its way, the keys of two neighbouring epochs overlap.
package grantkey

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

// Purpose is the purpose with which the seeds of keys are sealed.
const Purpose = "grant-key"

// interval is how often agents that are behind receive their next list again, and how often other processes' rotations are
// noticed at the latest.
const interval = 2 * time.Second

// Lists are sent to a few agents at a time, because each answers with its whole status, and doors have a deadline.
const (
	atOnce = 25
	pause  = 100 * time.Millisecond
)

// Errors of rotations.
var (
	ErrInProgress = errors.New("grantkey: a rotation is in progress")
	ErrNone       = errors.New("grantkey: no rotation is in progress")
	ErrBehind     = errors.New("grantkey: agents do not have the new key yet")
	ErrNoKey      = errors.New("grantkey: no private key for that epoch")
)

// Ring is the set of keys. DB, Keys, First and Log are required; Send is set before Run.
type Ring struct {
	DB    *postgres.DB
	Keys  *seal.Keyring        // opens and seals the seeds of keys made by rotations
	First []ed25519.PrivateKey // of the setting; the first one signs until the first rotation
	Log   *slog.Logger
	Send  func(to protocol.Peer, m protocol.Message) error // to an agent; see access.Link

	known atomic.Pointer[known]
}

// known is what was last read from the database.
type known struct {
	signing map[uint64]ed25519.PrivateKey // by epoch
	last    protocol.KeyList              // epoch 0: none
}

// Set is the keys that a new credential contains.
type Set struct {
	Epoch  uint64
	Public []string // base64
}

// Signing returns the key for messages to an agent that uses the key list of an epoch. It returns ErrNoKey if all keys of
// that list are retired: the agent receives the next list as soon as it is connected.
func (r *Ring) Signing(ctx context.Context, epoch uint64) (ed25519.PrivateKey, error) {
	k := r.known.Load()
	if k == nil || epoch > k.last.Epoch {
		var err error
		if k, err = r.read(ctx, r.DB.Pool); err != nil {
			return nil, err
		}
	}
	if key := k.signing[epoch]; key != nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: %d", ErrNoKey, epoch)
}

// read reads the keys from the database.
func (r *Ring) read(ctx context.Context, q postgres.Querier) (*known, error) {
	keys, lists, err := postgres.GrantKeys(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("grantkey: read keys: %w", err)
	}
	private, lost := r.private(keys)
	if len(lost) > 0 {
		return nil, fmt.Errorf("grantkey: the key %s cannot be opened", lost[0])
	}
	found := &known{signing: make(map[uint64]ed25519.PrivateKey)}
	pick := func(epoch uint64, keys []string) {
		for _, key := range keys {
			if private[key] != nil {
				found.signing[epoch] = private[key]
				return
			}
		}
	}
	pick(0, r.first())
	for _, list := range lists {
		pick(list.Epoch, list.Keys)
		found.last = list
	}
	r.known.Store(found)
	return found, nil
}

// private returns the private keys that are not retired by their public keys, and the public keys of those that cannot be opened.
func (r *Ring) private(keys []postgres.GrantKey) (private map[string]ed25519.PrivateKey, lost []string) {
	private = make(map[string]ed25519.PrivateKey)
	for _, key := range r.First {
		private[public(key)] = key
	}
	for _, k := range keys {
		switch {
		case !k.RetiredAt.IsZero():
			delete(private, k.Public)
		case k.Seed != nil:
			if seed, err := r.Keys.Open(Purpose, k.Seed); err == nil && len(seed) == ed25519.SeedSize {
				private[k.Public] = ed25519.NewKeyFromSeed(seed)
			} else {
				lost = append(lost, k.Public)
			}
		}
	}
	return private, lost
}

func (r *Ring) first() []string {
	keys := make([]string, len(r.First))
	for i, key := range r.First {
		keys[i] = public(key)
	}
	return keys
}

func public(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}

// Current returns the keys for a new credential.
func (r *Ring) Current(ctx context.Context, q postgres.Querier) (Set, error) {
	_, lists, err := postgres.GrantKeys(ctx, q)
	if err != nil {
		return Set{}, fmt.Errorf("grantkey: read keys: %w", err)
	}
	if len(lists) == 0 {
		return Set{Public: r.first()}, nil
	}
	last := lists[len(lists)-1]
	return Set{Epoch: last.Epoch, Public: last.Keys}, nil
}

// Of returns the keys of an epoch.
func (r *Ring) Of(ctx context.Context, q postgres.Querier, epoch uint64) (Set, error) {
	if epoch == 0 {
		return Set{Public: r.first()}, nil
	}
	keys, err := postgres.KeysOfEpoch(ctx, q, epoch)
	return Set{Epoch: epoch, Public: keys}, err
}

// Rotate makes a new key, which signs grants for each agent as soon as the agent has reported that it trusts it. It returns
// the epoch of the list that adds the key, or ErrInProgress.
func (r *Ring) Rotate(ctx context.Context, actor string) (epoch uint64, err error) {
	err = r.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockGrantKeys(ctx, tx); err != nil {
			return err
		}
		k, err := r.read(ctx, tx)
		if err != nil {
			return err
		}
		before := k.last.Keys
		if k.last.Epoch == 0 {
			before = r.first()
		} else if len(before) > 1 {
			return ErrInProgress
		}
		signing := k.signing[k.last.Epoch]
		if signing == nil {
			return fmt.Errorf("%w: %d", ErrNoKey, k.last.Epoch)
		}
		_, fresh, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		list := protocol.KeyList{Epoch: k.last.Epoch + 1, Keys: append([]string{public(fresh)}, before[:min(len(before), protocol.MaxKeys-1)]...)}
		epoch = list.Epoch
		if err := postgres.InsertKeyList(ctx, tx, list.Sign(signing), r.Keys.Seal(Purpose, fresh.Seed()), now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.keys.rotate", Target: public(fresh)})
	})
	if err != nil {
		return 0, fmt.Errorf("grantkey: rotate: %w", err)
	}
	return epoch, nil
}

// Finish ends a rotation: the new key remains alone, and the old ones are retired. It returns ErrNone, or ErrBehind if an
// active agent does not have the new key, unless anyway is set. Such an agent opens no door until it has connected and has
// applied the lists that it missed, which takes less than a second.
func (r *Ring) Finish(ctx context.Context, actor string, anyway bool) error {
	err := r.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockGrantKeys(ctx, tx); err != nil {
			return err
		}
		k, err := r.read(ctx, tx)
		if err != nil {
			return err
		}
		if len(k.last.Keys) < 2 {
			return ErrNone
		}
		behind, err := postgres.AgentsBehind(ctx, tx, true)
		if err != nil {
			return err
		}
		if len(behind) > 0 && !anyway {
			return fmt.Errorf("%w: %d", ErrBehind, len(behind))
		}
		list := protocol.KeyList{Epoch: k.last.Epoch + 1, Keys: k.last.Keys[:1]}
		if err := postgres.InsertKeyList(ctx, tx, list.Sign(k.signing[k.last.Epoch]), nil, now); err != nil {
			return err
		}
		if err := postgres.RetireGrantKeys(ctx, tx, list.Keys, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.keys.finish", Target: list.Keys[0]})
	})
	r.known.Store(nil) // read again: the old keys must not sign any more
	if err != nil {
		return fmt.Errorf("grantkey: finish: %w", err)
	}
	return nil
}

// ReplaceLost makes a new key if one cannot be opened, as after the loss of the encryption key, and retires those that are lost. Agents that
// trust a key that is left receive the new one; the others have to be enrolled again. It reports whether a key was lost.
func (r *Ring) ReplaceLost(ctx context.Context, actor string) (replaced bool, err error) {
	err = r.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		replaced = false
		if err := postgres.LockGrantKeys(ctx, tx); err != nil {
			return err
		}
		keys, lists, err := postgres.GrantKeys(ctx, tx)
		if err != nil {
			return err
		}
		private, lost := r.private(keys)
		if len(lost) == 0 {
			return nil
		}
		_, fresh, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		last, signing := lists[len(lists)-1], fresh
		kept := slices.DeleteFunc(slices.Clone(last.Keys), func(key string) bool { return private[key] == nil })
		if len(kept) > 0 {
			signing = private[kept[0]]
		}
		if err := postgres.RetireGrantKeys(ctx, tx, kept, now); err != nil {
			return err
		}
		list := protocol.KeyList{Epoch: last.Epoch + 1, Keys: append([]string{public(fresh)}, kept[:min(len(kept), protocol.MaxKeys-1)]...)}
		if err := postgres.InsertKeyList(ctx, tx, list.Sign(signing), r.Keys.Seal(Purpose, fresh.Seed()), now); err != nil {
			return err
		}
		replaced = true
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.keys.replace", Target: public(fresh), Detail: map[string]any{"lost": lost}})
	})
	if err != nil {
		return false, fmt.Errorf("grantkey: replace lost keys: %w", err)
	}
	return replaced, nil
}

// Run sends key lists to agents that are behind, and finishes a rotation once every active agent has the new key, until ctx
// ends.
func (r *Ring) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("grantkey: rotation not continued", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Ring) step(ctx context.Context) error {
	k, err := r.read(ctx, r.DB.Pool)
	if err != nil || k.last.Epoch == 0 {
		return err
	}
	behind, err := postgres.AgentsBehind(ctx, r.DB.Pool, false)
	if err != nil {
		return err
	}
	behind = slices.DeleteFunc(behind, func(b postgres.AgentBehind) bool { return !b.Online })
	for few := range slices.Chunk(behind, atOnce) {
		for _, b := range few {
			r.Offer(b.Agent, b.Next)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	if len(k.last.Keys) == 1 {
		return nil
	}
	waiting, err := postgres.AgentsBehind(ctx, r.DB.Pool, true)
	if err != nil || len(waiting) > 0 {
		return err
	}
	// Another replica may be faster, and an agent may have returned with old keys.
	if err := r.Finish(ctx, "system", false); err != nil {
		if errors.Is(err, ErrNone) || errors.Is(err, ErrBehind) {
			return nil
		}
		return err
	}
	r.Log.Info("grantkey: rotation finished: the old key opens nothing from now on")
	return r.step(ctx)
}

// Offer sends an agent its next key list. A lost one is sent again.
func (r *Ring) Offer(agent protocol.Agent, list protocol.KeyList) {
	if err := r.Send(protocol.Peer{Agent: agent}, list); err != nil {
		r.Log.Error("grantkey: key list not sent", "branch", agent.Branch, "username", agent.Username, "error", err)
	}
}

// State describes a key for operators.
type State struct {
	Public    string
	Epoch     uint64 // of the first list that has the key; 0: a key of the setting
	CreatedAt time.Time
	RetiredAt time.Time // zero: not retired
	Signs     bool      // grants to agents with the last list
}

// List returns the keys, the oldest first, and the active agents that do not use the last list.
func (r *Ring) List(ctx context.Context) ([]State, []postgres.AgentBehind, error) {
	keys, lists, err := postgres.GrantKeys(ctx, r.DB.Pool)
	if err != nil {
		return nil, nil, fmt.Errorf("grantkey: read keys: %w", err)
	}
	rows := make(map[string]postgres.GrantKey)
	for _, k := range keys {
		rows[k.Public] = k
	}
	order := r.first()
	since := make(map[string]uint64)
	signs := order[:1]
	for _, list := range lists {
		signs = list.Keys[:1]
		for _, key := range list.Keys {
			if !slices.Contains(order, key) {
				order, since[key] = append(order, key), list.Epoch
			}
		}
	}
	states := make([]State, len(order))
	for i, key := range order {
		states[i] = State{Public: key, Epoch: since[key], CreatedAt: rows[key].CreatedAt, RetiredAt: rows[key].RetiredAt, Signs: key == signs[0]}
	}
	behind, err := postgres.AgentsBehind(ctx, r.DB.Pool, true)
	return states, behind, err
}
