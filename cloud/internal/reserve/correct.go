package reserve

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// CorrectMobile lets a guest correct the phone number of a purchase until a door has opened for it, or its stay is over. The
// effects are those of CorrectContact.
//
// Errors: ErrNotFound, ErrNotCorrectable.
func (s *Service) CorrectMobile(ctx context.Context, id booking.ReservationID, mobile string) error {
	return s.locked(ctx, id, func(c *change) error {
		ok, err := correctable(c.ctx, c.tx, c.r(), c.now)
		if err != nil {
			return err
		}
		if !ok {
			return ErrNotCorrectable
		}
		return c.correctContact(ContactCorrection{Mobile: &mobile, Reason: "예약한 고객이 고침"}, account.Principal{}.Actor())
	})
}

func correctable(ctx context.Context, q postgres.Querier, r booking.Reservation, now time.Time) (bool, error) {
	live := r.State == booking.Done || r.State == booking.WaitingForDeposit
	if !live || r.Extends != 0 || !now.Before(r.Stay().End) {
		return false, nil
	}
	opened, err := postgres.HasOpened(ctx, q, r.ID)
	return !opened, err
}

// Delivery is what a guest is shown about the delivery of the key.
type Delivery struct {
	KeyMessage  booking.MessageState // of the latest message with the key; empty if there is none
	Mailed      bool                 // it was sent to the e-mail address, also where the number did not take it
	Correctable bool                 // CorrectMobile is possible
}

// Delivery returns the delivery of the key of a reservation.
func (s *Service) Delivery(ctx context.Context, r booking.Reservation) (d Delivery, err error) {
	if d.Correctable, err = correctable(ctx, s.DB.Pool, r, s.now()); err != nil {
		return d, err
	}
	var channel string
	d.KeyMessage, channel, err = postgres.LatestMessageState(ctx, s.DB.Pool, r.ID, notify.KeyTemplates())
	d.Mailed = d.KeyMessage == booking.MessageSent && channel == string(notify.Email)
	return d, err
}
