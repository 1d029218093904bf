package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Status is the result of a request (docs/specification.md, Doors 4).
type Status string

// The statuses.
const (
	Success  Status = "SUCCESS"
	Failed   Status = "FAILED"
	TimedOut Status = "TIMEOUT" // it ended without a report before the subscription
)

// Outcome is the result of a request.
type Outcome struct {
	Status Status
	Device string // front, room_<n>
	PIN    string // what the door's keypad takes; empty with Success, and if nothing may be disclosed
	Kind   PINKind
}

// PINKind is what the PIN of an Outcome is; empty without one.
type PINKind string

// The kinds. Both may have eight digits.
const (
	OneTimeCode PINKind = "code" // opens once, within one or two minutes
	StaticPIN   PINKind = "pin"  // of the door
)

// action is the name of a disclosure in the audit log.
func (k PINKind) action() string { return string(k) + ".reveal" }

// pollInterval is how often a waiter reads the row, in case notifications are lost.
const pollInterval = 2 * time.Second

// Await waits for the result of a request that was made with this key. A result that exists is returned at once, any number
// of times. client is the guest's address, for the audit log. It returns ErrInvalidKey for an unknown request or another
// key, and ErrNoResult after the result timeout.
func (s *Service) Await(ctx context.Context, client, requestID, doorlockKey string) (Outcome, error) {
	_, hash, err := parseKey(doorlockKey)
	if err != nil {
		return Outcome{}, err
	}
	r, status, err := s.await(ctx, requestID, hash)
	if errors.Is(err, ErrUnknownRequest) {
		return Outcome{}, ErrInvalidKey
	}
	if err != nil {
		return Outcome{}, err
	}
	return s.outcome(ctx, r, status, Actor{Address: client})
}

// AwaitAs is Await for staff. The PIN is disclosed only to the actor who made the request. The caller authorizes the actor
// for the branch, see BranchOf. It returns ErrUnknownRequest.
func (s *Service) AwaitAs(ctx context.Context, actor Actor, requestID string) (Outcome, error) {
	r, status, err := s.await(ctx, requestID, nil)
	if err != nil {
		return Outcome{}, err
	}
	return s.outcome(ctx, r, status, actor)
}

// Opened waits for a result without disclosing a PIN. It reports whether the doors opened.
func (s *Service) Opened(ctx context.Context, requestID string) (bool, error) {
	_, status, err := s.await(ctx, requestID, nil)
	return status == Success, err
}

// await registers first, reads second and waits third: any other order loses a result that arrives in between. If the
// request is in this replica's memory, the first read is skipped.
func (s *Service) await(ctx context.Context, requestID string, keyHash []byte) (r door.Request, status Status, err error) {
	timeout := time.NewTimer(s.resultTimeout())
	defer timeout.Stop()
	id, err := uuid.Parse(requestID)
	if err != nil {
		return r, "", ErrUnknownRequest
	}
	updates, leave := s.waiters.join(id)
	defer leave()
	r, known := s.attempts.find(id, keyHash)
	if !known {
		if r, err = s.find(ctx, id, keyHash); err != nil {
			return r, "", err
		}
	}
	if r.State == door.Unknown {
		return r, TimedOut, nil
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		switch r.State {
		case door.Success:
			return r, Success, nil
		case door.Failed:
			return r, Failed, nil
		}
		select {
		case <-ctx.Done():
			return r, "", ctx.Err()
		case <-timeout.C:
			return r, "", ErrNoResult
		case r.State = <-updates:
			if r.State != "" {
				continue
			}
		case <-poll.C:
		}
		if r, err = s.find(ctx, id, keyHash); err != nil {
			return r, "", err
		}
	}
}

// find reads a request. With keyHash, the request must have been made with that key.
func (s *Service) find(ctx context.Context, id uuid.UUID, keyHash []byte) (r door.Request, err error) {
	if keyHash == nil {
		r, err = postgres.DoorRequestByID(ctx, s.DB.Pool, id)
	} else {
		r, err = postgres.DoorRequestByKey(ctx, s.DB.Pool, id, keyHash)
	}
	if errors.Is(err, postgres.ErrNoDoorRequest) {
		return r, ErrUnknownRequest
	}
	if err != nil {
		return r, fmt.Errorf("access: request %s: %w", id, err)
	}
	return r, nil
}

// outcome discloses the PIN of a door that did not open, and records that in the audit log (docs/specification.md, Doors 12).
func (s *Service) outcome(ctx context.Context, r door.Request, status Status, actor Actor) (Outcome, error) {
	outcome := Outcome{Status: status, Device: r.Device}
	if status == Success || actor.NoPIN {
		return outcome, nil
	}
	requester := actor.Name
	if requester == "" && r.Reservation != nil {
		requester = door.Customer
		actor.Name = fmt.Sprintf("customer:%d", *r.Reservation)
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		pin, kind, err := s.reveal(ctx, tx, r, requester)
		if err != nil || pin == "" {
			return err
		}
		outcome.PIN, outcome.Kind = pin, kind
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: actor.Name, BranchID: &r.BranchID, Action: kind.action(), Target: r.Device,
			Detail: map[string]string{"requestId": r.ID.String(), "status": string(status)}, Address: actor.Address, RequestID: actor.RequestID,
		})
	})
	if errors.Is(err, seal.ErrSealed) { // its key is lost (yeolda adopt), which must not hide that the door stays shut
		s.Log.Error("access: PIN cannot be read", "branch", r.Branch, "device", r.Device, "error", err)
		err = nil
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("access: request %s: %w", r.ID, err)
	}
	if outcome.PIN == "" {
		s.Log.Warn("access: no PIN disclosed", "branch", r.Branch, "device", r.Device, "request", r.ID)
	} else {
		revealedTotal.Inc()
	}
	return outcome, nil
}

// reveal returns what the keypad of a request's door takes: the one-time code that was given when the request ended, or the
// static PIN; empty if there is neither.
func (s *Service) reveal(ctx context.Context, tx pgx.Tx, r door.Request, requester string) (digits string, kind PINKind, err error) {
	code, err := postgres.RevealCode(ctx, tx, r.ID, requester, s.now())
	if err == nil {
		digits, err = s.digits(code)
		return digits, OneTimeCode, err
	}
	if !errors.Is(err, postgres.ErrNoCode) {
		return "", "", err
	}
	sealed, err := postgres.RevealDoorPIN(ctx, tx, r.ID, requester, s.now())
	if err != nil || sealed == nil {
		return "", "", err
	}
	pin, err := s.Keys.Open(PINPurpose, sealed)
	if err != nil {
		return "", "", fmt.Errorf("PIN of %s: %w", r.Device, err)
	}
	return string(pin), StaticPIN, nil
}

// waiters are the subscribers of this replica.
type waiters struct {
	mu   sync.Mutex
	byID map[uuid.UUID]map[chan door.State]struct{}
}

// join registers a subscriber. A received state is empty if the row must be read.
func (w *waiters) join(id uuid.UUID) (updates <-chan door.State, leave func()) {
	c := make(chan door.State, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[uuid.UUID]map[chan door.State]struct{})
	}
	if w.byID[id] == nil {
		w.byID[id] = make(map[chan door.State]struct{})
	}
	w.byID[id][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byID[id], c)
		if len(w.byID[id]) == 0 {
			delete(w.byID, id)
		}
	}
}

func (w *waiters) wake(id uuid.UUID, state door.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.byID[id] {
		notify(c, state)
	}
}

func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.byID {
		for c := range of {
			notify(c, "")
		}
	}
}

// notify never blocks: one pending update is enough, because the row has the final state.
func notify(c chan door.State, state door.State) {
	select {
	case c <- state:
	default:
	}
}
