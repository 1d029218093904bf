package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Reason is why a key opens a door or does not (docs/specification.md, Why 2).
type Reason string

// The reasons, in the order of their priority.
const (
	UnknownKey    Reason = "unknown"
	RevokedKey    Reason = "revoked"
	RotatedKey    Reason = "rotated"
	WrongBranch   Reason = "wrong-branch"
	Refunded      Reason = "refunded"
	Canceled      Reason = "canceled"
	NotPaid       Reason = "not-paid"
	Moved         Reason = "moved"
	TooEarly      Reason = "too-early"
	TooLate       Reason = "too-late"
	RateLimited   Reason = "rate-limited"
	LockedOut     Reason = "locked-out"
	BranchOffline Reason = "branch-offline"
	DoorFailed    Reason = "door-failed"
	Openable      Reason = "openable"
)

// Reasons lists all reasons in the order of their priority.
var Reasons = []Reason{
	UnknownKey, RevokedKey, RotatedKey, WrongBranch, Refunded, Canceled, NotPaid, Moved, TooEarly, TooLate,
	RateLimited, LockedOut, BranchOffline, DoorFailed, Openable,
}

// Action is a way on from a reason.
type Action string

// The actions.
const (
	Wait     Action = "wait" // until an instant
	Pay      Action = "pay"
	UsePIN   Action = "use-pin"
	UseCode  Action = "use-code"
	OpenLink Action = "open-link" // the one in the newest message; it is not disclosed to an old key
	LogIn    Action = "log-in"
	Call     Action = "call"
)

// Step is one way on.
type Step struct {
	Action Action
	At     time.Time // of Wait
}

// Diagnosis is the answer to why a key opens a door or does not.
type Diagnosis struct {
	Code         Reason
	Since, Until time.Time // of the reason; zero: not known
	Next         []Step

	Branch booking.Branch // zero: the key is unknown
	Kind   string         // of the door: Front, Room
	RoomNo int
	Window booking.Interval // in which doors open

	offline bool // a press does not reach the door
}

// failureAge is the age after which a failed press no longer explains a closed door.
const failureAge = 10 * time.Minute

// whyQuantum is the granularity of the time that Why takes, so that it does not disclose whether a key is known.
const whyQuantum = 50 * time.Millisecond

// Why diagnoses a key at a branch, or at its own branch if the code is empty. It reads what a press and a claim read. It
// returns ErrUnknownDoor.
func (s *Service) Why(ctx context.Context, doorlockKey, branch, kind string) (Diagnosis, error) {
	if kind != Front && kind != Room {
		return Diagnosis{}, ErrUnknownDoor
	}
	began := time.Now()
	key, _, err := parseKey(doorlockKey) // a text that is not a key is as unknown as any other
	if err != nil {
		doorlockKey = key.String()
	}
	d, err := s.diagnose(ctx, branch, kind, s.keyed.Wait(s.Limits, pressesByKey, pressSubject(kind, doorlockKey), began), func(now time.Time) (postgres.KeyFacts, error) {
		return postgres.WhyKey(ctx, s.DB.Pool, key, kind, now, failureAge)
	})
	select {
	case <-ctx.Done():
	case <-time.After(whyQuantum - time.Since(began)%whyQuantum):
	}
	return d, err
}

// WhyReservation diagnoses the owner's key of a reservation, for staff. It returns booking.ErrNoReservation.
func (s *Service) WhyReservation(ctx context.Context, id booking.ReservationID, kind string) (Diagnosis, error) {
	if kind != Front && kind != Room {
		return Diagnosis{}, ErrUnknownDoor
	}
	return s.diagnose(ctx, "", kind, 0, func(now time.Time) (postgres.KeyFacts, error) {
		return postgres.WhyReservation(ctx, s.DB.Pool, id, kind, now, failureAge)
	})
}

func (s *Service) diagnose(ctx context.Context, branch, kind string, wait time.Duration, read func(now time.Time) (postgres.KeyFacts, error)) (Diagnosis, error) {
	now := s.now()
	facts, err := read(now)
	if err != nil {
		return Diagnosis{}, fmt.Errorf("access: why: %w", err)
	}
	_, online, err := postgres.ConnectedAgent(ctx, s.DB.Pool, facts.Branch, s.Link.Online(facts.Branch))
	if err != nil {
		return Diagnosis{}, fmt.Errorf("access: why at %s: %w", facts.Branch, err)
	}
	d := judge(facts, branch, online, wait, now)
	d.Kind, d.RoomNo = kind, facts.RoomNo
	found, err := s.DB.Branch(ctx, facts.Branch) // of an unknown key, too, so that it takes as long
	if facts.Reservation == 0 && errors.Is(err, booking.ErrNoBranch) {
		return d, nil
	}
	if d.Code != UnknownKey {
		d.Branch = found
	}
	return d, err
}

// judge finds the first reason that applies. If the key opens doors by the condition of a press, the reason lies at the door;
// otherwise it lies with the key or its reservation. wait is the time until the key may press again.
func judge(f postgres.KeyFacts, branch string, online bool, wait time.Duration, now time.Time) Diagnosis {
	from, to := booking.Reservation{Interval: f.Interval}.UnlockWindow()
	d := Diagnosis{Window: booking.Interval{Start: from, End: to}, offline: !online}
	because := func(code Reason, since, until time.Time, next ...Step) Diagnosis {
		d.Code, d.Since, d.Until, d.Next = code, since, until, next
		return d
	}
	call, login := Step{Action: Call}, Step{Action: LogIn}
	switch {
	case f.Reservation == 0 || f.RevokedAs == postgres.KeyCorrected:
		return Diagnosis{Code: UnknownKey, Next: []Step{login, call}}
	case f.RevokedAs != "" && f.Kind != booking.OwnerKey:
		return because(RevokedKey, f.RevokedAt, time.Time{}, call)
	case f.RevokedAs != "":
		return because(RotatedKey, f.RevokedAt, time.Time{}, Step{Action: OpenLink}, login, call)
	case branch != "" && branch != f.Branch:
		return because(WrongBranch, time.Time{}, time.Time{}, call)
	case f.Opens:
		return judgeDoor(f, online, wait, now, because)
	case f.State == booking.Canceled && f.Refunded:
		return because(Refunded, f.CanceledAt, time.Time{}, login, call)
	case f.State == booking.Canceled || f.State == booking.Canceling || f.State == booking.Conflict:
		return because(Canceled, f.CanceledAt, time.Time{}, login, call)
	case f.State != booking.Done:
		return because(NotPaid, time.Time{}, f.ExpiresAt, Step{Action: Pay}, call)
	case f.Blocked: // the provider is asked whether the money is lost
		return because(NotPaid, time.Time{}, time.Time{}, call)
	case !f.MovedAt.IsZero() && now.Before(from):
		return because(Moved, f.MovedAt, from, Step{Wait, from}, login, call)
	case !f.MovedAt.IsZero():
		return because(Moved, f.MovedAt, time.Time{}, login, call)
	case now.Before(from):
		return because(TooEarly, time.Time{}, from, Step{Wait, from})
	}
	return because(TooLate, to, time.Time{}, login, call)
}

// judgeDoor finds the reason at the door for a key that opens it.
func judgeDoor(f postgres.KeyFacts, online bool, wait time.Duration, now time.Time, because func(Reason, time.Time, time.Time, ...Step) Diagnosis) Diagnosis {
	_, to := booking.Reservation{Interval: f.Interval}.UnlockWindow()
	var next []Step // at the keypad
	if f.Keypad == "agent" {
		next = append(next, Step{Action: UseCode})
	}
	if f.Keypad == "standalone" || f.Keypad == "agent" && f.HasPass {
		next = append(next, Step{Action: UsePIN})
	}
	next = append(next, Step{Action: Call})
	switch {
	case wait > 0:
		return because(RateLimited, time.Time{}, now.Add(wait), Step{Wait, now.Add(wait)})
	case f.LockedUntil.After(now): // a press still opens the door of a branch that is online: the sentence names this way
		return because(LockedOut, f.LockedAt, f.LockedUntil, Step{Wait, f.LockedUntil}, Step{Action: Call})
	case !online:
		return because(BranchOffline, time.Time{}, to, next...)
	case !f.Failed.IsZero():
		return because(DoorFailed, f.Failed, to, next...)
	}
	from, _ := booking.Reservation{Interval: f.Interval}.UnlockWindow()
	return because(Openable, from, to)
}
