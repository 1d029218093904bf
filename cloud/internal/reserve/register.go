package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Expected is the purchase that the guest's page shows. Zero fields are not compared.
type Expected struct {
	Branch string
	Room   int
	Times  booking.LocalInterval
}

// ErrHoldChanged is returned when the hold differs from the one that the guest's page shows.
var ErrHoldChanged = errors.New("reserve: the hold is not the expected one")

func (e Expected) matches(branch booking.Branch, r booking.Reservation) bool {
	at := func(wall, actual time.Time) bool {
		return wall.IsZero() || wall.Equal(booking.WallClock(actual, branch.Zone))
	}
	return (e.Branch == "" || e.Branch == branch.Code) && (e.Room == 0 || e.Room == r.RoomNo) &&
		at(e.Times.Start, r.Start) && at(e.Times.End, r.End)
}

// Register stores the guest's contact, and the cash receipt that the guest wants for a deposit, before the payment widget opens,
// and returns the order id for the widget. Registering again replaces all of them; a payment that is still captured for the old
// id is refunded.
//
// Errors: ErrHoldExpired, ErrHoldChanged and ErrAmountMismatch (the hold is kept), ErrBlocked, [limit.ExceededError].
func (s *Service) Register(ctx context.Context, token Token, contact booking.Contact, wish ReceiptWish, amount int, expected Expected) (orderID string, err error) {
	branch, r, price, err := s.Held(ctx, token)
	if err != nil {
		return "", err
	}
	if r.Source != booking.Customer {
		return "", ErrHoldExpired
	}
	if !expected.matches(branch, r) {
		return "", ErrHoldChanged
	}
	if amount != price {
		return "", ErrAmountMismatch
	}
	orderID, err = s.newOrderID(ctx, s.DB.Pool, ordered{Entity: branch.LegalEntity, Room: r.Room, Times: r.Interval, Mobile: contact.Mobile, Language: contact.Language, Source: r.Source})
	if err != nil {
		return "", err
	}
	return orderID, s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		held, err := postgres.LockReservation(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		if held.State != booking.Hold || !held.Occupies(now) {
			return ErrHoldExpired
		}
		if held.Extends == 0 && held.Replaces == 0 { // a stay that exists may be extended and changed
			if block, err := postgres.BlockOfGuest(ctx, tx, booking.NormalizePhone(contact.Mobile)); err != nil {
				return err
			} else if block.Reason != "" {
				return ErrBlocked
			}
		}
		if err := s.limitPhone(ctx, tx, held, contact.Mobile, now); err != nil {
			return err
		}
		order := postgres.NewOrder{ID: orderID, Contact: contact, Entity: branch.LegalEntity, Amount: price}
		if err := postgres.RegisterOrder(ctx, tx, held, order, now); err != nil {
			return err
		}
		return postgres.WishReceipt(ctx, tx, held.ID, wish.seal(s))
	})
}

// limitPhone bounds the live unpaid holds of one phone number.
func (s *Service) limitPhone(ctx context.Context, tx pgx.Tx, r booking.Reservation, mobile string, now time.Time) error {
	if s.MaxHoldsPerPhone <= 0 || mobile == "" {
		return nil
	}
	n, until, err := postgres.CountPhoneHolds(ctx, tx, booking.NormalizePhone(mobile), r.ID, now)
	if err == nil && n >= s.MaxHoldsPerPhone {
		return tooManyHolds(until, now)
	}
	return err
}
