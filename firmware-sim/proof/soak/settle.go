package soak

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settleTimeout bounds the time until money settles without faults. M2 itself demands three minutes, which the report
// shows as a figure.
const settleTimeout = 8 * time.Minute

// open counts unsettled money, callbacks, messages and doors. A PENDING refund has left the provider; banks take days
// for it.
const open = `
	select (select count(*) from reservation where state in ('CONFIRMING', 'CANCELING'))
	     + (select count(*) from reservation where state = 'WAITING_FOR_DEPOSIT')
	     + (select count(*) from reservation where state = 'HOLD' and expires_at > now())
	     + (select count(*) from refund where state = 'REQUESTED')
	     + (select count(*) from webhook_event where applied_at is null)
	     + (select count(*) from message where state in ('QUEUED', 'SENDING'))
	     + (select count(*) from door_request where state in ('PENDING', 'GRANTED'))`

// settle waits until nothing is in progress.
func (s *Soak) settle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		var n int
		err := s.eyes.pool.QueryRow(limited, open).Scan(&n)
		if err == nil && n == 0 && !s.announcing() {
			return nil
		}
		if limited.Err() != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.say("%v", errors.Join(fmt.Errorf("%d things are still open after %s", n, settleTimeout), err))
			return nil // the checks report what
		}
		pause(limited, 500*time.Millisecond)
	}
}

// announcing reports whether the partner still has notifications for the service.
func (s *Soak) announcing() bool {
	bookings, err := s.bookings()
	if err != nil {
		return true
	}
	for _, b := range bookings {
		if b.Status == "PENDING" {
			return true
		}
	}
	return false
}
