package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// ErrNoKeypad is returned when the door has no keypad that takes one-time codes.
var ErrNoKeypad = errors.New("access: the door takes no codes")

// ErrNoCode is returned when no code can be given at the moment: the agent does not have the key of the codes yet, or all
// codes of this minute are given.
var ErrNoCode = errors.New("access: no code can be given now")

// codesByKey limits the codes of one key for one kind of door.
var codesByKey = limit.Rate{Name: "code", Burst: 3, Interval: 20 * time.Second}

// Code is a one-time code for a keypad.
type Code struct {
	Digits string
	Door   string    // front, room
	Until  time.Time // the first moment at which it is not accepted
}

// GiveCode returns a one-time code for the doors of a guest's key, without a press (docs/specification.md, Passes 8). client
// is the guest's address, for the audit log. Errors: ErrUnknownDoor, ErrInvalidKey, ErrOutsideWindow, ErrNoKeypad, ErrNoCode
// and [limit.ExceededError].
func (s *Service) GiveCode(ctx context.Context, client, doorlockKey, kind string) (Code, error) {
	if kind != Front && kind != Room {
		return Code{}, ErrUnknownDoor
	}
	id, _, err := parseKey(doorlockKey)
	if err != nil {
		return Code{}, err
	}
	key, err := s.Lookup(ctx, doorlockKey)
	if err != nil {
		return Code{}, err
	}
	if err := key.Reservation.CanUnlock(s.now()); err != nil {
		return Code{}, err
	}
	device := Front
	if room, ok := key.Branch.Room(key.Reservation.RoomNo); ok && kind == Room {
		device = room.Device()
	}
	if key.Branch.Keypad(device) != booking.KeypadAgent {
		return Code{}, ErrNoKeypad
	}
	if err := s.codes.Take(s.Limits, codesByKey, fmt.Sprintf("%d %s", key.Reservation.ID, kind), time.Now()); err != nil {
		return Code{}, err
	}
	given, err := s.giveCode(ctx, client, id, key.Reservation, device)
	if errors.Is(err, postgres.ErrNoCode) {
		return Code{}, ErrNoCode
	}
	if err != nil {
		return Code{}, fmt.Errorf("access: code for %s of reservation %d: %w", device, key.Reservation.ID, err)
	}
	digits, err := s.digits(given)
	return Code{digits, kind, codeEnd(given.Step)}, err
}

// giveCode gives a code for a device, if the key still opens it with the reservation that was looked up.
func (s *Service) giveCode(ctx context.Context, client string, key uuid.UUID, known booking.Reservation, device string) (given postgres.PassCode, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		// The lock waits for a cancellation in progress and then sees it.
		if _, err := postgres.LockReservation(ctx, tx, known.ID); err != nil {
			return err
		}
		r, _, err := postgres.ReservationByKey(ctx, tx, key)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrInvalidKey
		}
		if err != nil {
			return err
		}
		if err := r.CanUnlock(s.now()); err != nil {
			return err
		}
		if r.RoomNo != known.RoomNo {
			return ErrInvalidKey
		}
		if given, err = postgres.GiveCode(ctx, tx, r.Branch, device, r.ID, s.now()); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: fmt.Sprintf("customer:%d", r.ID), BranchID: &r.Branch, Action: OneTimeCode.action(), Target: device, Address: client,
		})
	})
	return given, err
}

// digits computes a code that was given.
func (s *Service) digits(c postgres.PassCode) (string, error) {
	key, err := s.Keys.Open(postgres.CodeKeyPurpose, c.Key)
	if err != nil {
		return "", fmt.Errorf("code key of %s: %w", c.Branch, err)
	}
	return protocol.Code(key, c.Branch, c.Device, c.Step, c.I), nil
}

// codeEnd returns the first moment at which the agent, whose time is exact, does not accept a code of this step.
func codeEnd(step uint64) time.Time {
	return time.Unix(int64(step+2)*int64(protocol.CodeStep/time.Second), 0).UTC() //nolint:gosec // a unix time
}
