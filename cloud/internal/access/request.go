package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
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

// parseKey parses a doorlockKey and hashes its canonical form.
func parseKey(text string) (key uuid.UUID, hash []byte, err error) {
	key, err = uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		return uuid.Nil, nil, ErrInvalidKey
	}
	return key, postgres.HashKey(key), nil
}

// pressSubject is what the presses of a key for a kind of door are counted by. A key opens doors whatever the case of its letters is. Of a
// longer text only the beginning is remembered: any client can send thousands of them.
func pressSubject(kind, doorlockKey string) string {
	const longest = len("00000000-0000-0000-0000-000000000000") + 1 // such a text is not a key, and is not counted as the key that it begins with
	return kind + " " + strings.ToLower(doorlockKey[:min(len(doorlockKey), longest)])
}

// Request requests the doors of a guest: those of kind Front, or the reserved room. It returns the id for Await. Only the
// key authorizes it. If the branch is offline, the request has already failed. If a request with this key for this door is
// in progress, its id is returned.
func (s *Service) Request(ctx context.Context, branch, kind, doorlockKey string) (requestID string, err error) {
	return s.RequestFor(ctx, branch, kind, doorlockKey, 0)
}

// RequestFor is Request on condition that the key's reservation is for a room; 0 is any. It returns ErrOtherRoom.
func (s *Service) RequestFor(ctx context.Context, branch, kind, doorlockKey string, room int) (requestID string, err error) {
	if kind != Front && kind != Room {
		return "", ErrUnknownDoor
	}
	if !protocol.ValidBranch(branch) {
		return "", postgres.ErrNoBranch
	}
	if err := s.keyed.Take(s.Limits, pressesByKey, pressSubject(kind, doorlockKey), time.Now()); err != nil {
		return "", err
	}
	now := s.now()
	// A key that is not a UUID opens nothing, but an unknown branch is reported first.
	key, hash, keyErr := parseKey(doorlockKey)
	ask := postgres.KeyedAsk{ID: tracing.RequestID(ctx), Branch: branch, Kind: kind, Key: key, KeyHash: hash,
		Room: room, Online: s.Link.Online(branch), Now: now, Until: s.pressUntil()}
	announced := s.announced.take(pressKey{branch, kind, string(hash)}, time.Now())
	if announced != nil {
		ask.ID, ask.Nonce, ask.Claimant = announced.id, announced.nonce, announced.from.Username
		ctx = context.WithoutCancel(ctx) // a grant that is written must be sent, also if the client closes the connection
	}
	id := ask.ID
	found, err := s.asks.Do(ctx, ask, s.write)
	if announced != nil {
		s.announced.forget(announced)
		if err == nil && (!found.Made || found.State.Final()) {
			s.discard(announced)
		}
	}
	switch {
	case err != nil:
		countError()
		return "", fmt.Errorf("access: request %s at %s: %w", id, branch, err)
	case found.BranchID == 0:
		return "", postgres.ErrNoBranch
	case keyErr != nil || found.Holder.ID == 0:
		return "", ErrInvalidKey
	case room != 0 && room != found.Holder.RoomNo:
		return "", ErrOtherRoom
	}
	if err := found.Holder.CanUnlock(now); err != nil {
		return "", err
	}
	if found.Joined {
		return found.ID.String(), nil
	}
	if !found.Made {
		countError()
		return "", fmt.Errorf("access: request %s of reservation %d: the database rejects the press: it is outside the unlock window, or reached the database too late", id, found.Holder.ID)
	}
	if found.State == door.Granted {
		s.acceptGranted(found, announced, hash) //nolint:contextcheck // as below
		return found.ID.String(), nil
	}
	s.accept(found.Request, found.Agent, hash) //nolint:contextcheck // the attempt outlives the request
	return found.ID.String(), nil
}

func (s *Service) write(ctx context.Context, asks []postgres.KeyedAsk) ([]postgres.KeyedDoor, error) {
	return postgres.RequestDoorsByKey(ctx, s.DB.Doors, asks, driveLimit)
}

// accept starts the attempt for a request that was written, unless it has failed already.
func (s *Service) accept(r door.Request, agent string, keyHash []byte) {
	s.Log.Info("access: door requested", "branch", r.Branch, "request", r.ID.String(), "device", r.Device, "state", string(r.State))
	if r.State == door.Pending {
		s.attempt(r, agent, keyHash)
	} else {
		count(r.State)
	}
}

// acceptGranted starts the attempt for a request that was granted when it was written: it sends the grant instead of an ask.
func (s *Service) acceptGranted(found postgres.KeyedDoor, a *announcement, keyHash []byte) {
	r := found.Request
	s.Log.Info("access: door requested", "branch", r.Branch, "request", r.ID.String(), "device", r.Device, "state", string(r.State))
	usedTotal.Inc()
	now := time.Now()
	s.proceedLater(&attempt{row: r, peer: peer(r.Branch, found.Agent), keyHash: keyHash, accepted: now, claimed: now, granted: true})
	ctx, cancel := context.WithTimeout(context.Background(), protocol.GrantAge)
	defer cancel()
	if err := s.sendGrant(ctx, a.from, r.ID, a.nonce, found.Grant); err != nil {
		s.Log.Error("access: grant not sent", "branch", r.Branch, "request", r.ID, "error", err) // the next ask repeats it
	}
}

// pressesByKey limits the presses of one key for one kind of door.
var pressesByKey = limit.Rate{Name: "unlock", Burst: 10, Interval: time.Second}

// pressesByStaff is far above what a member of staff does by hand.
var pressesByStaff = limit.Rule{Name: "unlock", Max: 1200, Window: time.Minute}

// Actor is the person at a door, as named in the audit log.
type Actor struct {
	Name      string // admin:<login id>, discord:<id>; empty: the guest with the key
	Address   string
	RequestID string
	NoPIN     bool // no PIN is disclosed: the actor may only look

	BetweenStays bool // rooms open only while no stay occupies them

	// Once makes the request idempotent: a second one with the same value, at any replica, is rejected with ErrRepeated. Empty: each call
	// makes a request.
	Once string
}

// onceSpace is the name space of the ids of requests with Actor.Once.
var onceSpace = uuid.MustParse("0e9c8c1e-6d0b-4c5c-9a57-3f1c8d7b2a64")

// RequestAs requests doors without a key. room is needed for kind Room. The caller authorizes the actor for the branch. It
// returns ErrUnknownDoor, ErrUnknownRoom, ErrOccupied, ErrRepeated, postgres.ErrNoBranch or a [limit.ExceededError].
func (s *Service) RequestAs(ctx context.Context, actor Actor, branch, kind string, room int) (requestID string, err error) {
	b, err := s.DB.Branch(ctx, branch)
	if err != nil {
		return "", fmt.Errorf("access: request at %s: %w", branch, err)
	}
	var vacant booking.RoomID
	r := door.Request{ID: tracing.RequestID(ctx), BranchID: b.ID, Branch: b.Code, RequestedBy: actor.Name, Kind: kind}
	if actor.Once != "" {
		r.ID = uuid.NewSHA1(onceSpace, []byte(actor.Once))
	}
	switch kind {
	case Front:
		r.Device, r.Devices = Front, b.FrontDoors
	case Room:
		found, ok := b.Room(room)
		if !ok {
			return "", ErrUnknownRoom
		}
		if actor.BetweenStays {
			occupied, err := postgres.RoomOccupied(ctx, s.DB.Pool, found.ID, s.now())
			if err != nil {
				return "", fmt.Errorf("access: request at %s: %w", branch, err)
			}
			if occupied {
				return "", ErrOccupied
			}
			vacant = found.ID // checked again with the claim
		}
		r.Device = protocol.DoorRoom.Device(strconv.Itoa(room))
		r.Devices = []string{r.Device}
	default:
		return "", ErrUnknownDoor
	}
	if err := s.staffed.Take(ctx, s.Limits, pressesByStaff, actor.Name); err != nil {
		return "", err
	}
	r, agent, err := s.insert(ctx, actor, r, vacant)
	if postgres.IsUniqueViolation(err, "door_request_pkey") {
		return "", ErrRepeated
	}
	if err != nil {
		countError()
		return "", fmt.Errorf("access: request %s at %s: %w", r.ID, branch, err)
	}
	s.accept(r, agent, nil) //nolint:contextcheck // the attempt outlives the request
	return r.ID.String(), nil
}

func (s *Service) insert(ctx context.Context, actor Actor, r door.Request, vacant booking.RoomID) (written door.Request, agent string, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if written, agent, err = postgres.InsertDoorRequest(ctx, tx, r, vacant, s.Link.Online(r.Branch), s.now()); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: actor.Name, BranchID: &r.BranchID, Action: "door.unlock", Target: r.Device,
			Detail: map[string]string{"requestId": r.ID.String()}, Address: actor.Address, RequestID: actor.RequestID,
		})
	})
	return written, agent, err
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
