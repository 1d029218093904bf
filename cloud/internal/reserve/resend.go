package reserve

import (
	"context"
	"errors"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
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
