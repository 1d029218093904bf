package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
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
	now := s.now()
	id := uuid.New()
	// A key that is no UUID opens nothing, but whether there is such a branch is answered first.
	key, hash, keyErr := parseKey(doorlockKey)
	offline := !s.Link.Online(branch)
	found, err := postgres.RequestDoorByKey(ctx, s.DB.Pool, id, branch, kind, key, hash, offline, now)
	switch {
	case err != nil:
		return "", fmt.Errorf("access: request: %w", err)
	case keyErr != nil || found.Reservation.ID == 0:
		return "", ErrInvalidKey
	}
	if err := found.Reservation.CanUnlock(now); err != nil {
		return "", err
	}
	if !found.Made {
		return "", fmt.Errorf("access: request %s: the database disagrees about the unlock window", id)
	}
	if offline {
		s.end(id, postgres.DoorFailed)
	} else {
		s.attempt(id, branch, found.Devices)
	}
	return id.String(), nil
}

// Actor is the member of staff who opens a door, as the audit log names them.
type Actor struct {
	Name      string // admin:<login id>, discord:<id>
	Address   string
	RequestID string
}

// RequestAs asks for doors without a key. room is needed for kind Room. Whether the actor may use the branch is for the
// caller to know. It returns ErrUnknownDoor, ErrUnknownRoom or postgres.ErrNoBranch.
func (s *Service) RequestAs(ctx context.Context, actor Actor, branch, kind string, room int) (requestID string, err error) {
	b, err := s.DB.Branch(ctx, branch)
	if err != nil {
		return "", fmt.Errorf("access: request: %w", err)
	}
	r := postgres.DoorRequest{ID: uuid.New(), BranchID: b.ID, RequestedBy: actor.Name, Kind: kind, State: postgres.DoorPending}
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
	if !s.Link.Online(branch) {
		r.State, r.Detail = postgres.DoorFailed, "branch offline"
	}
	if err := s.insert(ctx, actor, r); err != nil {
		return "", fmt.Errorf("access: request: %w", err)
	}
	if r.State == postgres.DoorFailed {
		s.end(r.ID, r.State)
	} else {
		s.attempt(r.ID, branch, r.Devices)
	}
	return r.ID.String(), nil
}

func (s *Service) insert(ctx context.Context, actor Actor, r postgres.DoorRequest) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.InsertDoorRequest(ctx, tx, r); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, postgres.AuditEntry{
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
