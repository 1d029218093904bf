package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrNothingToSend is returned when the reservation has no key or no contact.
var ErrNothingToSend = errors.New("reserve: no key or no contact to send it to")

// ResendKey sends the key to the guest again.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNothingToSend.
func (s *Service) ResendKey(ctx context.Context, id booking.ReservationID, by account.Principal) error {
	return s.lockedWithKey(ctx, id, func(c *change) error {
		if _, err := c.reachable(by); err != nil {
			return err
		}
		r := c.r()
		if r.State != booking.Done || !r.HasKey() || r.Mobile == "" && r.Email == "" {
			return ErrNothingToSend
		}
		if err := c.notifyConfirmed(r, notify.ReservationConfirmed); err != nil {
			return err
		}
		return c.audited(by, "reservation.key-message", nil)
	})
}

// MessageKinds returns the templates whose messages later events may make wrong.
func MessageKinds() postgres.MessageKinds {
	return postgres.MessageKinds{
		OfStay: notify.StayTemplates(), Replacing: notify.ReplacingTemplates(), Awaiting: notify.AwaitingTemplates(), OfRefund: notify.RefundTemplates(),
		Code: string(notify.LoginCode),
	}
}

// Repeatable reports whether a message about a reservation is still right, and its recipient still the guest's contact.
func Repeatable(ctx context.Context, q postgres.Querier, m booking.Message, now time.Time) (bool, error) {
	m.Attempt = 2 // as one that could not be sent at first
	return postgres.StillDue(ctx, q, m, MessageKinds(), now)
}
