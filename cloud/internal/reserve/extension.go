package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// extensionHoldTTL is the time for which an unpaid extension is held (docs/specification.md, Changes 3).
const extensionHoldTTL = 5 * time.Minute

// ErrNotExtendable is returned for a stay that is not confirmed, is over, or came from a partner channel.
var ErrNotExtendable = errors.New("reserve: the stay cannot be extended")

// ErrExtensionWaits is returned while another extension of the stay waits for its deposit or for the outcome of its payment.
var ErrExtensionWaits = errors.New("reserve: another extension of the stay waits for its payment")

// ExtensionOption is an end to which a stay can be extended.
type ExtensionOption struct {
	End    time.Time
	Amount int // won for the time from the current end
}

// ExtensionOffer lists the ends to which a stay can be extended.
type ExtensionOffer struct {
	Options   []ExtensionOption
	HoldUntil time.Time // the end of the live hold of an extension, or of one that is taken now
}

// ExtensionOffer returns every end that can be sold, up to booking.MaxLength for the whole stay. It has no options if the
// stay cannot be extended. It returns ErrNotFound if there is no such reservation.
func (s *Service) ExtensionOffer(ctx context.Context, id booking.ReservationID) (offer ExtensionOffer, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		offer = ExtensionOffer{HoldUntil: now.Add(extensionHoldTTL)}
		// The locks are those of Extend, so the offer sees either side of a concurrent one.
		stay, err := lockStay(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, e := range stay.extensions {
			switch {
			case e.State == booking.Hold && e.Occupies(now):
				offer.HoldUntil = e.ExpiresAt
			case e.State == booking.Confirming, e.State == booking.WaitingForDeposit:
				return nil // its payment decides first
			}
		}
		offer.Options, err = s.extensionOptions(ctx, tx, stay.root, now)
		return err
	})
	return offer, err
}

func extendable(r booking.Reservation, now time.Time) bool {
	return r.State == booking.Done && r.Extends == 0 && r.Source != booking.Partner && now.Before(r.Stay().End)
}

func (s *Service) extensionOptions(ctx context.Context, tx pgx.Tx, root booking.Reservation, now time.Time) ([]ExtensionOption, error) {
	if !extendable(root, now) {
		return nil, nil
	}
	branch, err := postgres.BranchOf(ctx, tx, root.Branch)
	if err != nil {
		return nil, err
	}
	room, ok := branch.Room(root.RoomNo)
	if !ok || !room.Enabled {
		return nil, nil
	}
	end := root.Stay().End
	next, err := postgres.NextOccupied(ctx, tx, root.Room, end.Add(room.Margin()), root.ID, now)
	if err != nil {
		return nil, err
	}
	var options []ExtensionOption
	for to := end.Add(booking.SlotLength); to.Sub(root.Start) <= booking.MaxLength; to = to.Add(booking.SlotLength) {
		times := booking.Interval{Start: end, End: to}
		if !next.IsZero() && times.Occupied(room.Margin()).End.After(next) {
			break
		}
		if named, err := booking.ReadClock(booking.WallClock(to, branch.Zone), branch.Zone, end); err != nil || !named.Equal(to) {
			continue // a request with this clock time means the moment at which the clock showed it first
		}
		if checkTimes(branch, room, times, booking.Customer, now) != nil {
			continue
		}
		if won, ok := branch.PriceOf(room, times); ok {
			options = append(options, ExtensionOption{to, won})
		}
	}
	return options, nil
}

// ExtendRequest is a guest's request to hold an extension of a stay.
type ExtendRequest struct {
	ID      booking.ReservationID // of the reservation with the guest's key
	End     time.Time             // the new end on the wall clock of the branch, in UTC
	Earlier Token                 // the client's current hold; empty: none
	Client  string                // limit.Address of the client; empty: unlimited
}

// Extension is an extension that is held. Its order is registered under the contact of the stay, so it can be paid at once.
type Extension struct {
	Token     Token
	TTL       time.Duration
	Amount    int
	OrderID   string
	HoldUntil time.Time
}

// Extend holds an extension of a stay. An unpaid hold of another extension of the stay, or of the same client, is released in
// the same transaction; if the new one cannot be taken, the earlier one is kept. The extension opens no door before it is
// paid.
//
// Errors: ErrNotFound, ErrNotExtendable, ErrExtensionWaits, those of booking about times, ErrNotForSale, ErrRoomDisabled,
// ErrTaken, ErrHeld, [limit.ExceededError].
func (s *Service) Extend(ctx context.Context, req ExtendRequest) (Extension, error) {
	found, err := postgres.Reservation(ctx, s.DB.Pool, req.ID)
	if errors.Is(err, booking.ErrNoReservation) {
		return Extension{}, ErrNotFound
	}
	if err != nil {
		return Extension{}, err
	}
	earlier, err := s.currentHold(ctx, req.Earlier)
	if err != nil {
		return Extension{}, err
	}
	held := Extension{Token: newToken(), TTL: extensionHoldTTL}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, found.Room, max(earlier.Room, found.Room)); err != nil {
			return err
		}
		stay, err := lockStay(ctx, tx, req.ID)
		if err != nil {
			return err
		}
		if stay.root.Room != found.Room || !extendable(stay.root, now) {
			return ErrNotExtendable
		}
		for _, e := range stay.extensions {
			if e.State == booking.WaitingForDeposit || e.State == booking.Confirming && e.ID != earlier.ID {
				return ErrExtensionWaits
			}
		}
		if err := s.releaseEarlier(ctx, tx, stay, earlier, now); err != nil {
			return err
		}
		held.HoldUntil = now.Add(held.TTL)
		held.Amount, err = s.holdExtension(ctx, tx, stay.root, req, &held, now)
		return err
	})
	return held, err
}

// currentHold returns the live hold, or the purchase with an unknown outcome, of a client's cookie; the zero value if there
// is none.
func (s *Service) currentHold(ctx context.Context, token Token) (booking.Reservation, error) {
	r, err := s.ofToken(ctx, token)
	if errors.Is(err, ErrHoldExpired) || err == nil && r.State != booking.Hold && r.State != booking.Confirming {
		return booking.Reservation{}, nil
	}
	return r, err
}

// releaseEarlier releases the unpaid hold of the stay's extension and the client's earlier hold.
func (s *Service) releaseEarlier(ctx context.Context, tx pgx.Tx, stay stay, earlier booking.Reservation, now time.Time) error {
	for _, e := range stay.extensions {
		if e.State == booking.Hold || e.ID == earlier.ID {
			if err := s.change(ctx, tx, e, now).giveUp(); err != nil {
				return err
			}
		}
	}
	if earlier.ID == 0 || earlier.Extends == stay.root.ID {
		return nil
	}
	r, err := postgres.LockReservation(ctx, tx, earlier.ID)
	if err != nil {
		return err
	}
	return s.change(ctx, tx, r, now).giveUp()
}

func (s *Service) holdExtension(ctx context.Context, tx pgx.Tx, root booking.Reservation, req ExtendRequest, held *Extension, now time.Time) (won int, err error) {
	branch, err := postgres.BranchOf(ctx, tx, root.Branch)
	if err != nil {
		return 0, err
	}
	// If the clock shows the end twice, the offer has the first moment after the end of the stay.
	end, err := booking.ReadClock(req.End, branch.Zone, root.Stay().End)
	if err != nil {
		return 0, err
	}
	if _, err := booking.NewInterval(root.Start, end, branch.Zone); err != nil {
		return 0, err
	}
	times, err := booking.NewInterval(root.Stay().End, end, branch.Zone)
	if err != nil {
		return 0, err
	}
	room, ok := branch.Room(root.RoomNo)
	if !ok {
		return 0, ErrNoRoom
	}
	if err := checkTimes(branch, room, times, booking.Customer, now); err != nil {
		return 0, err
	}
	won, _ = branch.PriceOf(room, times)
	hold := postgres.NewHold{
		Room: root.Room, Interval: times, Source: booking.Customer, Token: held.Token.hash(), ExpiresAt: held.HoldUntil,
		Client: req.Client, Extends: root.ID, Price: won,
	}
	if err := s.insertHold(ctx, tx, hold, root.ID, now); err != nil {
		return 0, err
	}
	if err := s.limitClient(ctx, tx, hold, now); err != nil {
		return 0, err
	}
	r, err := postgres.LockToken(ctx, tx, held.Token.hash())
	if err != nil {
		return 0, err
	}
	held.OrderID, err = s.newOrderID(ctx, tx, ordered{
		Entity: branch.LegalEntity, Room: r.Room, Times: times, Mobile: root.Mobile, Language: root.Language, Source: booking.Customer,
	})
	if err != nil {
		return 0, err
	}
	contact := booking.Contact{Name: root.Name, Mobile: root.Mobile, Email: root.Email, Language: root.Language}
	return won, postgres.RegisterOrder(ctx, tx, r, postgres.NewOrder{
		ID: held.OrderID, Contact: contact, Entity: branch.LegalEntity, Amount: won,
	}, now)
}

// notifyExtended notifies the guest that an extension is confirmed. The message has no key: the guest's key stays valid.
func (c *change) notifyExtended() error {
	root, err := anchor(c.ctx, c.tx, c.r())
	if err != nil {
		return err
	}
	r := c.withoutKey()
	r.Start = root.Start
	return c.notifyGuest(r, notify.StayExtended, nil)
}
