package reserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// A Token is the secret in a hold cookie: 256 random bits. The database knows only its hash.
type Token string

func newToken() Token {
	var random [32]byte
	rand.Read(random[:]) // never fails
	return Token(base64.RawURLEncoding.EncodeToString(random[:]))
}

func (t Token) hash() []byte {
	sum := sha256.Sum256([]byte(t))
	return sum[:]
}

// HoldRequest asks for a room to be kept while the rest of the purchase goes on.
type HoldRequest struct {
	Branch  string
	Room    int
	Times   func(zone *time.Location) (booking.Interval, error) // read in the branch's zone
	Earlier Token                                               // the caller's hold until now; empty: none
	Admin   string                                              // login id of the administrator; empty: a customer
}

// Hold keeps a room for the length of a purchase and returns the secret that the hold goes by. An earlier hold of the
// same caller is given back in the same transaction; if the new one cannot be had the earlier one stays.
//
// Errors: postgres.ErrNoBranch, ErrNoRoom, those of booking about times, ErrNotForSale, ErrRoomDisabled, ErrTaken, ErrHeld.
func (s *Service) Hold(ctx context.Context, r HoldRequest) (Token, time.Duration, error) {
	branch, room, err := s.room(ctx, r.Branch, r.Room)
	if err != nil {
		return "", 0, err
	}
	times, err := r.Times(branch.Zone)
	if err != nil {
		return "", 0, err
	}
	now := s.now()
	ttl, source := s.HoldTTL, booking.Customer
	if r.Admin != "" {
		ttl, source = s.AdminHoldTTL, booking.Admin
	}
	if err := checkTimes(branch, room, times, source, now); err != nil {
		return "", 0, err
	}
	token := newToken()
	hold := postgres.NewHold{
		Room: room.ID, Interval: times, Source: source, Token: token.hash(), ExpiresAt: now.Add(ttl), By: r.Admin,
	}
	if err := s.takeHold(ctx, hold, r.Earlier, now); err != nil {
		return "", 0, err
	}
	if err := s.recheckTimes(ctx, branch, room, times, source, token); err != nil {
		return "", 0, err
	}
	return token, ttl, nil
}

// recheckTimes releases a hold that was taken while the branch's settings changed, if they no longer allow it. A change of
// settings locks the rooms, so a hold is either among the conflicts of the change or sees its revision here.
func (s *Service) recheckTimes(ctx context.Context, checked booking.Branch, room booking.Room, times booking.Interval, source booking.Source, token Token) error {
	branch, err := s.DB.Branch(ctx, checked.Code)
	if err != nil || branch.Revision == checked.Revision {
		return err
	}
	if err := checkTimes(branch, room, times, source, s.now()); err != nil {
		return errors.Join(err, s.Release(context.WithoutCancel(ctx), token))
	}
	return nil
}

// checkTimes applies the rules of docs/specification.md, Time and Prices that do not depend on other reservations.
func checkTimes(branch booking.Branch, room booking.Room, times booking.Interval, source booking.Source, now time.Time) error {
	if err := booking.CheckStart(times, now); err != nil {
		return err
	}
	if err := branch.Schedule.Check(times, branch.Zone); err != nil {
		return err
	}
	if source != booking.Customer {
		return nil
	}
	if err := booking.CheckHorizon(times, now, branch.Horizon); err != nil {
		return err
	}
	if _, ok := room.Price.For(times.Length()); !ok {
		return ErrNotForSale
	}
	return nil
}

func (s *Service) takeHold(ctx context.Context, hold postgres.NewHold, earlier Token, now time.Time) error {
	if earlier != "" {
		held, err := postgres.ReservationByToken(ctx, s.DB.Pool, earlier.hash())
		if err == nil && held.State == booking.Hold && held.Occupies(now) {
			return s.swapHold(ctx, hold, held)
		}
		if err != nil && !errors.Is(err, postgres.ErrNoReservation) {
			return err
		}
	}
	id, err := postgres.InsertHold(ctx, s.DB.Pool, hold, now)
	if err != nil {
		return err
	}
	if id == 0 {
		return s.conflict(ctx, s.DB.Pool, hold.Room, hold.Interval, 0)
	}
	return nil
}

// swapHold gives one hold back for another, both or neither.
func (s *Service) swapHold(ctx context.Context, hold postgres.NewHold, held booking.Reservation) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, hold.Room, held.Room); err != nil {
			return err
		}
		if _, err := postgres.SetState(ctx, tx, held.ID, booking.Hold, booking.Released); err != nil {
			return err
		}
		id, err := postgres.InsertHold(ctx, tx, hold, now)
		if err != nil {
			return err
		}
		if id == 0 {
			return s.conflict(ctx, tx, hold.Room, hold.Interval, held.ID)
		}
		return nil
	})
}

// obstacle names what kept a room from being had.
func (s *Service) conflict(ctx context.Context, q postgres.Querier, room booking.RoomID, times booking.Interval, except booking.ReservationID) error {
	obstacle, err := postgres.ConflictAt(ctx, q, room, times, except)
	switch {
	case err != nil:
		return err
	case obstacle.Disabled:
		return ErrRoomDisabled
	case obstacle.Confirmed:
		return ErrTaken
	}
	return ErrHeld
}

// Release gives a hold back. It succeeds whatever has become of the hold.
func (s *Service) Release(ctx context.Context, token Token) error {
	if token == "" {
		return nil
	}
	return postgres.ReleaseHold(ctx, s.DB.Pool, token.hash())
}

// Held returns the caller's live hold with its price, or ErrHoldExpired.
func (s *Service) Held(ctx context.Context, token Token) (booking.Branch, booking.Reservation, int, error) {
	r, err := s.ofToken(ctx, token)
	if err != nil {
		return booking.Branch{}, r, 0, err
	}
	if r.State != booking.Hold || !r.Occupies(s.now()) {
		return booking.Branch{}, r, 0, ErrHoldExpired
	}
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	if err != nil {
		return branch, r, 0, err
	}
	room, _ := branch.Room(r.RoomNo)
	price, _ := room.Price.For(r.Length())
	return branch, r, price, nil
}

// ofToken returns what a hold's cookie has led to, whatever its state. ErrHoldExpired: nothing.
func (s *Service) ofToken(ctx context.Context, token Token) (booking.Reservation, error) {
	if token == "" {
		return booking.Reservation{}, ErrHoldExpired
	}
	r, err := postgres.ReservationByToken(ctx, s.DB.Pool, token.hash())
	if errors.Is(err, postgres.ErrNoReservation) {
		return r, ErrHoldExpired
	}
	return r, err
}
