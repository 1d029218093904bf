package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ByCompensation is the initiator of what a guest gets whose door did not open.
const ByCompensation = "system:compensation"

// The kinds of compensation.
const (
	compensatedTime  = "extended"
	compensatedMoney = "refunded"
	uncompensated    = "none"
)

// Compensate compensates the guests who cannot enter, according to the settings of their branches: the stay is extended if
// the next slots are free, otherwise money is returned. Each reservation is compensated at most once.
func (s *Service) Compensate(ctx context.Context) error {
	stuck, err := postgres.StuckDoors(ctx, s.DB.Pool, 0, s.now())
	if err != nil {
		return fmt.Errorf("reserve: stuck doors: %w", err)
	}
	var errs []error
	for _, one := range stuck {
		branch, err := s.DB.BranchByID(ctx, one.Branch)
		if err == nil && s.now().Sub(one.Since) >= time.Duration(branch.Compensation.AfterMinutes)*time.Minute {
			err = s.compensate(ctx, one)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("compensate reservation %d: %w", one.Reservation, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Service) compensate(ctx context.Context, one postgres.StuckDoor) error {
	var refund int64
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		refund = 0
		if err := postgres.LockRooms(ctx, tx, one.Room); err != nil { // rooms first, then reservations
			return err
		}
		r, err := postgres.LockReservation(ctx, tx, one.Reservation)
		if err != nil {
			return err
		}
		still, err := postgres.StuckDoors(ctx, tx, r.ID, now)
		if err != nil || len(still) == 0 || r.Room != one.Room {
			return err // the guest is inside, or the stay has changed
		}
		given, err := s.change(ctx, tx, r, now).giveCompensation(still[0].Since)
		if err != nil || given.Kind == "" {
			return err
		}
		refund = given.Refund
		given.Since, given.At = still[0].Since, now
		if _, err := postgres.PutCompensation(ctx, tx, r, given); err != nil {
			return err
		}
		failpoint.Hit("compensation.beginning")
		return nil
	})
	failpoint.Hit("compensation.begun")
	if err != nil || refund == 0 {
		return err
	}
	f, err := postgres.RefundByID(ctx, s.DB.Pool, refund)
	if err != nil || f.State != money.RefundRequested {
		return err // it waits for the guest's account
	}
	var refused *PaymentRefused
	if err := s.runRefund(ctx, f); !errors.Is(err, ErrPaymentPending) && !errors.As(err, &refused) {
		return err
	}
	return nil // pending, or listed for an administrator
}

// giveCompensation decides about a guest who has been stuck since a time. The kind is empty if a refund in progress has to
// end first.
func (c *change) giveCompensation(since time.Time) (given postgres.Compensated, err error) {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return given, err
	}
	settings := branch.Compensation
	if limited, err := c.compensatedEnough(branch); limited || err != nil {
		return postgres.Compensated{Kind: uncompensated, Reason: "limit per phone"}, err
	}
	stuck := min(c.now.Sub(since), c.r().Stay().End.Sub(since))
	if settings.ExtendFirst && c.now.Before(c.r().LastUnlock()) {
		longer := settings.Extension(stuck)
		ok, err := c.extendFree(branch, longer)
		if ok || err != nil {
			return postgres.Compensated{Kind: compensatedTime, Minutes: int(longer / time.Minute)}, err
		}
	}
	return c.compensateMoney(settings, stuck)
}

// compensatedEnough reports whether the guest's phone number has reached the branch's limit in this month.
func (c *change) compensatedEnough(branch booking.Branch) (bool, error) {
	if branch.Compensation.PerPhonePerMonth == 0 || c.r().Mobile == "" {
		return false, nil
	}
	local := c.now.In(branch.Zone)
	month := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, branch.Zone)
	n, err := postgres.CountCompensations(c.ctx, c.tx, c.r().Mobile, month)
	return n >= branch.Compensation.PerPhonePerMonth, err
}

// extendFree extends the stay if its room is free and the branch open. It returns false without a change otherwise, and if
// the guest has bought, or is buying, an extension.
func (c *change) extendFree(branch booking.Branch, longer time.Duration) (ok bool, err error) {
	r := c.r()
	room, ok := branch.Room(r.RoomNo)
	times := booking.Interval{Start: r.Start, End: r.End.Add(longer)}
	stay, err := lockStay(c.ctx, c.tx, r.ID)
	if err != nil || !ok || len(stay.extensions) > 0 || times.Length() > booking.MaxLength {
		return false, err
	}
	outer := c.tx
	err = pgx.BeginFunc(c.ctx, outer, func(tx pgx.Tx) error {
		c.tx = tx
		if err := c.moveTo(stay, branch, room, times, ByCompensation, "문 고장 보상"); err != nil {
			return err
		}
		return c.notifyMoved()
	})
	c.tx = outer
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrTaken), errors.Is(err, ErrHeld), errors.Is(err, booking.ErrInvalid), errors.Is(err, booking.ErrClosed),
		errors.Is(err, booking.ErrBreak), errors.Is(err, booking.ErrAfterHours), postgres.IsExclusionViolation(err, "reservation_no_overlap"):
		return false, nil
	}
	return false, err
}

// compensateMoney records a refund for the time without entry.
func (c *change) compensateMoney(settings booking.Compensation, stuck time.Duration) (given postgres.Compensated, err error) {
	if c.Snapshot, err = load(c.ctx, c.tx, c.r()); errors.Is(err, postgres.ErrNoPayment) {
		return postgres.Compensated{Kind: uncompensated, Reason: "no payment"}, nil
	}
	if err != nil || c.Refund != nil {
		return given, err
	}
	won := settings.Won(c.left(), stuck)
	if c.r().PaidAt.IsZero() || won <= 0 {
		return postgres.Compensated{Kind: uncompensated, Reason: "nothing to refund"}, nil
	}
	id, err := c.startPart(won, "문 고장 보상", ByCompensation, nil)
	if err != nil {
		return given, err
	}
	if c.r().Method == booking.VirtualAccount {
		err = c.failRefund(id, won, accountRequired, "환불 계좌가 필요합니다.")
	}
	return postgres.Compensated{Kind: compensatedMoney, Amount: won, Refund: id}, err
}

// CompensationOf returns what the guest of a reservation got for a door that did not open; its kind is empty for nothing.
func (s *Service) CompensationOf(ctx context.Context, id booking.ReservationID) (postgres.Compensated, error) {
	c, err := postgres.CompensationOf(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoCompensation) || c.Kind == uncompensated {
		return postgres.Compensated{}, nil
	}
	return c, err
}
