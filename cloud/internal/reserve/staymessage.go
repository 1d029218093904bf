package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// stayBatch is the number of messages of a stay that are queued in one transaction.
const stayBatch = 200

// SweepStays queues the messages of stays that are due: the reminder, the PIN, the end, a door that failed. Each is recorded
// in the transaction that queues it, so a stay gets it once.
func (s *Service) SweepStays(ctx context.Context) error {
	var errs []error
	for _, m := range postgres.StayMessages {
		for {
			n, err := s.sendStayMessages(ctx, m)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.Template, err))
			}
			if err != nil || n < stayBatch {
				break
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Service) sendStayMessages(ctx context.Context, m postgres.StayMessage) (n int, err error) {
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		list, err := postgres.ClaimStayMessages(ctx, tx, m, now, stayBatch)
		if err != nil {
			return err
		}
		n = len(list)
		for _, r := range list {
			if err := s.change(ctx, tx, r, now).notifyStay(m); err != nil {
				return fmt.Errorf("reservation %d: %w", r.ID, err)
			}
		}
		return nil
	})
	return n, err
}

func (c *change) notifyStay(m postgres.StayMessage) error {
	r := c.r()
	branch, err := postgres.BranchOf(c.ctx, c.tx, r.Branch)
	if err != nil {
		return err
	}
	until := r.Stay().End
	if m.Template == string(notify.StayNotArrived) {
		until = r.Stay().LastUnlock() // until then the guest can enter
	}
	more := map[string]string{"endTime": until.In(branch.Zone).Format("15:04")}
	_, more["time"] = notify.Period(notify.Language(r.Language), r.Start.In(branch.Zone), r.Stay().End)
	if m.Template == postgres.StayPIN.Template {
		if more["pin"], err = c.pin(r.ID); err != nil {
			return err
		}
	}
	return c.notifyGuest(r, notify.Template(m.Template), more)
}

// notifyConfirmed sends the guest the key with the time of the whole stay, and the PIN if its disclosure has begun.
func (c *change) notifyConfirmed(r booking.Reservation, template notify.Template) error {
	r.Interval = r.Stay()
	disclosed, err := postgres.DisclosePIN(c.ctx, c.tx, r.ID, c.now)
	if err != nil {
		return err
	}
	if !disclosed {
		return c.notifyGuest(r, template, nil)
	}
	pin, err := c.pin(r.ID)
	if err != nil {
		return err
	}
	return c.notifyGuest(r, withPIN[template], map[string]string{"pin": pin})
}

// withPIN are the templates that carry the PIN beside the key.
var withPIN = map[notify.Template]notify.Template{
	notify.ReservationConfirmed: notify.ReservationConfirmedPIN,
	notify.DepositConfirmed:     notify.DepositConfirmedPIN,
}

// pin returns the PIN of a reservation's pass.
func (c *change) pin(id booking.ReservationID) (string, error) {
	pass, err := postgres.PassOf(c.ctx, c.tx, id)
	if err != nil {
		return "", err
	}
	pin, err := c.Keys.Open(postgres.PassPINPurpose, pass.PIN)
	return string(pin), err
}
