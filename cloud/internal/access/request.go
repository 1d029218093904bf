package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/tracing"
	"github.com/yeolda/yeolda/protocol"
)

// The kinds of doors: front is all entrance doors of the branch at once.
const (
	Front = "front"
	Room  = "room"
)

// parseKey reads a doorlockKey and hashes its canonical spelling.
func parseKey(text string) (key uuid.UUID, hash []byte, err error) {
	key, err = uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		return uuid.Nil, nil, ErrInvalidKey
	}
	sum := sha256.Sum256([]byte(key.String()))
	return key, sum[:], nil
}

// Request asks for the doors of a guest: those of kind Front, or the reserved room. It returns the id to wait for with
// Await. The key decides everything; an offline branch is a result like any other.
func (s *Service) Request(ctx context.Context, branch, kind, doorlockKey string) (requestID string, err error) {
	if kind != Front && kind != Room {
		return "", ErrUnknownDoor
	}
	if !protocol.ValidBranch(branch) {
		return "", postgres.ErrNoBranch
	}
	if err := s.press(ctx, doorlockKey); err != nil {
		return "", err
	}
	now := s.now()
	state, detail := s.firstState(branch)
	// A key that is no UUID opens nothing, but whether there is such a branch is answered first.
	key, hash, keyErr := parseKey(doorlockKey)
	found, err := s.asks.Do(ctx, postgres.KeyedAsk{ID: tracing.RequestID(ctx), Branch: branch, Kind: kind, Key: key, KeyHash: hash,
		State: state, Detail: detail, Now: now}, s.write)
	switch {
	case err != nil:
		return "", fmt.Errorf("access: request: %w", err)
	case found.BranchID == 0:
		return "", postgres.ErrNoBranch
	case keyErr != nil || found.Holder.ID == 0:
		return "", ErrInvalidKey
	}
	if err := found.Holder.CanUnlock(now); err != nil {
		return "", err
	}
	if !found.Made {
		return "", fmt.Errorf("access: request of reservation %d: the database disagrees about the unlock window", found.Holder.ID)
	}
	s.accept(found.DoorRequest, hash) //nolint:contextcheck // the attempt outlives the request
	return found.ID.String(), nil
}

func (s *Service) write(ctx context.Context, asks []postgres.KeyedAsk) ([]postgres.KeyedDoor, error) {
	return postgres.RequestDoorsByKey(ctx, s.DB.Doors, asks)
}

// firstState is PENDING, or FAILED for a branch that is known to be offline.
func (s *Service) firstState(branch string) (state postgres.DoorState, detail string) {
	if s.Link.Online(branch) {
		return postgres.DoorPending, ""
	}
	return postgres.DoorFailed, "branch offline"
}

// accept goes on with a request that was written.
func (s *Service) accept(r postgres.DoorRequest, keyHash []byte) {
	s.Log.Info("access: door asked for", "branch", r.Branch, "request", r.ID.String(), "device", r.Device, "state", string(r.State))
	if r.State == postgres.DoorPending {
		s.attempt(r, keyHash)
	} else {
		count(r.State)
	}
}

// pressesPerSubject is far above what a person does, and far below what one key or one member of staff could keep others
// from doing.
var pressesPerSubject = limit.Rule{Name: "unlock", Max: 1200, Window: time.Minute}

// press counts a request of a key, or of a member of staff. It returns a [limit.ExceededError].
func (s *Service) press(ctx context.Context, subject string) error {
	if s.Limits == nil {
		return nil
	}
	return s.presses.Take(ctx, s.Limits, pressesPerSubject, subject)
}

// Actor is who stands at a door, as the audit log names them.
type Actor struct {
	Name      string // admin:<login id>, discord:<id>; empty: the guest whose key it is
	Address   string
	RequestID string
}

// RequestAs asks for doors without a key. room is needed for kind Room. Whether the actor may use the branch is for the
// caller to know. It returns ErrUnknownDoor, ErrUnknownRoom, postgres.ErrNoBranch or a [limit.ExceededError].
func (s *Service) RequestAs(ctx context.Context, actor Actor, branch, kind string, room int) (requestID string, err error) {
	b, err := s.DB.Branch(ctx, branch)
	if err != nil {
		return "", fmt.Errorf("access: request: %w", err)
	}
	r := postgres.DoorRequest{ID: tracing.RequestID(ctx), BranchID: b.ID, Branch: b.Code, RequestedBy: actor.Name, Kind: kind}
	switch kind {
	case Front:
		r.Device, r.Devices = Front, b.FrontDoors
	case Room:
		if _, ok := b.Room(room); !ok {
			return "", ErrUnknownRoom
		}
		r.Device = protocol.DoorRoom.Device(strconv.Itoa(room))
		r.Devices = []string{r.Device}
	default:
		return "", ErrUnknownDoor
	}
	r.State, r.Detail = s.firstState(branch)
	if err := s.press(ctx, actor.Name); err != nil {
		return "", err
	}
	if err := s.insert(ctx, actor, r); err != nil {
		return "", fmt.Errorf("access: request: %w", err)
	}
	s.accept(r, nil) //nolint:contextcheck // the attempt outlives the request
	return r.ID.String(), nil
}

func (s *Service) insert(ctx context.Context, actor Actor, r postgres.DoorRequest) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.InsertDoorRequest(ctx, tx, r); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: actor.Name, BranchID: &r.BranchID, Action: "door.unlock", Target: r.Device,
			Detail: map[string]string{"requestId": r.ID.String()}, Address: actor.Address, RequestID: actor.RequestID,
		})
	})
}

// BranchOf returns the code of the branch of a request, or ErrUnknownRequest.
func (s *Service) BranchOf(ctx context.Context, requestID string) (branch string, err error) {
	id, err := uuid.Parse(requestID)
	if err != nil {
		return "", ErrUnknownRequest
	}
	r, err := s.find(ctx, id, nil)
	return r.Branch, err
}
