package reserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Token is the secret in a hold cookie: 256 random bits. The database stores only its hash.
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

// HoldRequest is a request to hold a room while the guest completes the purchase.
type HoldRequest struct {
	Branch  string
	Room    int
	Times   booking.LocalInterval
	Earlier Token             // the client's current hold; empty: none
	Admin   account.Principal // the administrator; the zero value for a customer
	Client  string            // limit.Address of a customer; empty: unlimited
}

// Hold holds a room for HoldTTL and returns the hold's secret. An earlier hold of the same client is released in the same
// transaction; if the new one cannot be taken, the earlier one is kept. An earlier purchase whose outcome is unknown is
// abandoned.
//
// Errors: booking.ErrNoBranch, ErrNoRoom, account.ErrBranchForbidden, those of booking about times, ErrNotForSale,
// ErrRoomDisabled, ErrTaken, ErrHeld, [limit.ExceededError].
func (s *Service) Hold(ctx context.Context, r HoldRequest) (Token, time.Duration, error) {
	if r.Admin.Administrator() && !r.Admin.Reaches(r.Branch) {
		return "", 0, account.ErrBranchForbidden
	}
	branch, room, err := s.room(ctx, r.Branch, r.Room)
	if err != nil {
		return "", 0, err
	}
	now := s.now()
	times, err := r.Times.In(branch.Zone, now)
	if err != nil {
		return "", 0, err
	}
	ttl, source := s.HoldTTL, booking.Customer
	if r.Admin.Administrator() {
		ttl, source = s.AdminHoldTTL, booking.Admin
	}
	if err := checkTimes(branch, room, times, source, now); err != nil {
		return "", 0, err
	}
	token := newToken()
	hold := postgres.NewHold{
		Room: room.ID, Interval: times, Source: source, Token: token.hash(), ExpiresAt: now.Add(ttl),
		By: r.Admin.AdminLoginID, Client: r.Client,
	}
	if source == booking.Customer {
		hold.Price, _ = branch.PriceOf(room, times)
	}
	if err := s.takeHold(ctx, hold, r.Earlier, now); err != nil {
		if ctx.Err() != nil || postgres.IsUnavailable(err) { // the database may have committed the hold
			err = errors.Join(err, s.releaseUnanswered(ctx, token))
		}
		return "", 0, err
	}
	if err := s.recheckTimes(ctx, branch, room, times, source); err != nil {
		return "", 0, errors.Join(err, s.releaseUnanswered(ctx, token))
	}
	return token, ttl, nil
}

// recheckTimes checks a new hold again if the branch's settings changed meanwhile. A change of settings locks the rooms, so
// either that change reports the hold as a conflict or this check reads the new revision.
func (s *Service) recheckTimes(ctx context.Context, checked booking.Branch, room booking.Room, times booking.Interval, source booking.Source) error {
	branch, err := s.DB.Branch(ctx, checked.Code)
	if err != nil || branch.Revision == checked.Revision {
		return err
	}
	return checkTimes(branch, room, times, source, s.now())
}

// releaseUnanswered releases a hold whose secret the client does not receive. Until it expired, it would keep the slot from
// every client, also from one that repeats its request after a time-out.
func (s *Service) releaseUnanswered(ctx context.Context, token Token) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	return s.Release(ctx, token)
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
	if _, ok := branch.PriceOf(room, times); !ok {
		return ErrNotForSale
	}
	return nil
}

func (s *Service) takeHold(ctx context.Context, hold postgres.NewHold, earlier Token, now time.Time) error {
	if earlier != "" {
		held, err := postgres.ReservationByToken(ctx, s.DB.Pool, earlier.hash())
		if err == nil && (held.State == booking.Hold && held.Occupies(now) || held.State == booking.Confirming) {
			return s.swapHold(ctx, hold, held)
		}
		if err != nil && !errors.Is(err, booking.ErrNoReservation) {
			return err
		}
	}
	if s.MaxHoldsPerClient == 0 || hold.Client == "" {
		return s.insertHold(ctx, s.DB.Pool, hold, 0, now)
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := s.insertHold(ctx, tx, hold, 0, now); err != nil {
			return err
		}
		return s.limitClient(ctx, tx, hold, now)
	})
}

// limitClient bounds the live unpaid reservations of a client, including the new one.
func (s *Service) limitClient(ctx context.Context, tx pgx.Tx, hold postgres.NewHold, now time.Time) error {
	if s.MaxHoldsPerClient == 0 || hold.Client == "" {
		return nil
	}
	n, until, err := postgres.CountClientHolds(ctx, tx, hold.Client, now)
	if err == nil && n > s.MaxHoldsPerClient {
		return tooManyHolds(until, now)
	}
	return err
}

// insertHold reserves the slot. except is a reservation that the same transaction releases.
func (s *Service) insertHold(ctx context.Context, q postgres.Querier, hold postgres.NewHold, except booking.ReservationID, now time.Time) error {
	id, err := postgres.InsertHold(ctx, q, hold, now)
	if err != nil {
		return err
	}
	if id == 0 {
		return s.conflict(ctx, q, postgres.Place{Room: hold.Room, Interval: hold.Interval, Extension: hold.Extends != 0}, except)
	}
	return nil
}

// swapHold releases one hold and takes another in one transaction.
func (s *Service) swapHold(ctx context.Context, hold postgres.NewHold, held booking.Reservation) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, hold.Room, held.Room); err != nil {
			return err
		}
		r, err := postgres.LockReservation(ctx, tx, held.ID)
		if err != nil {
			return err
		}
		if err := s.change(ctx, tx, r, now).giveUp(); err != nil {
			return err
		}
		if err := s.insertHold(ctx, tx, hold, held.ID, now); err != nil {
			return err
		}
		return s.limitClient(ctx, tx, hold, now)
	})
}

// giveUp releases a hold. If the outcome of its payment is unknown, the order is abandoned instead: no new charge is
// requested, and a captured payment is refunded.
func (c *change) giveUp() error {
	r := c.r()
	switch {
	case r.State == booking.Hold:
		released, err := postgres.SetState(c.ctx, c.tx, r.ID, booking.Hold, booking.Released)
		if err != nil || !released || r.Source != booking.Partner {
			return err
		}
		return c.unblock() // withheld time; other holds are not reported to the partner channels
	case r.State == booking.Confirming && r.Source == booking.Customer:
		if err := postgres.AbandonOrder(c.ctx, c.tx, r, c.now); err != nil {
			return err
		}
		return c.entry("confirm.abandoned", r.Amount, "", nil)
	}
	return nil
}

// conflict returns why a place, margins included, cannot be taken: ErrRoomDisabled, ErrTaken or ErrHeld.
func (s *Service) conflict(ctx context.Context, q postgres.Querier, place postgres.Place, except ...booking.ReservationID) error {
	found, err := postgres.ConflictAt(ctx, q, place, except...)
	switch {
	case err != nil:
		return err
	case found.Disabled:
		return ErrRoomDisabled
	case found.Confirmed:
		return ErrTaken
	}
	return ErrHeld
}

// Release releases a hold, or abandons a purchase whose outcome is unknown. In every other state it does nothing and
// succeeds.
func (s *Service) Release(ctx context.Context, token Token) error {
	if token == "" {
		return nil
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockToken(ctx, tx, token.hash())
		if errors.Is(err, booking.ErrNoReservation) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.change(ctx, tx, r, now).giveUp()
	})
}

// Held returns the caller's live hold with the price that was fixed when it was taken, or ErrHoldExpired.
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
	if r.HeldPrice > 0 {
		return branch, r, r.HeldPrice, nil
	}
	room, _ := branch.Room(r.RoomNo)
	price, _ := branch.PriceOf(room, r.Interval)
	return branch, r, price, nil
}

// ofToken returns the reservation of a hold's cookie in any state, or ErrHoldExpired if there is none.
func (s *Service) ofToken(ctx context.Context, token Token) (booking.Reservation, error) {
	if token == "" {
		return booking.Reservation{}, ErrHoldExpired
	}
	r, err := postgres.ReservationByToken(ctx, s.DB.Pool, token.hash())
	if errors.Is(err, booking.ErrNoReservation) {
		return r, ErrHoldExpired
	}
	return r, err
}
