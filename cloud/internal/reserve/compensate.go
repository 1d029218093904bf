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
	"github.com/yeolda/yeolda/cloud/internal/notify"
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
	var refunds []int64
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		refunds = nil
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
		var given postgres.Compensated
		given, refunds, err = s.change(ctx, tx, r, now).giveCompensation(still[0].Since)
		if err != nil || given.Kind == "" {
			return err
		}
		given.Since, given.At = still[0].Since, now
		if _, err := postgres.PutCompensation(ctx, tx, r, given); err != nil {
			return err
		}
		failpoint.Hit("compensation.beginning")
		return nil
	})
	failpoint.Hit("compensation.begun")
	if err != nil {
		return err
	}
	var errs []error
	for _, refund := range refunds {
		errs = append(errs, s.sendCompensation(ctx, refund))
	}
	return errors.Join(errs...)
}

// sendCompensation sends a refund unless it waits for the guest's account.
func (s *Service) sendCompensation(ctx context.Context, refund int64) error {
	f, err := postgres.RefundByID(ctx, s.DB.Pool, refund)
	if err != nil || f.State != money.RefundRequested {
		return err
	}
	var refused *PaymentRefused
	if err := s.runRefund(ctx, f); !errors.Is(err, ErrPaymentPending) && !errors.As(err, &refused) {
		return err
	}
	return nil // pending, or listed for an administrator
}

// giveCompensation decides about a guest who has been stuck since a time, and returns the refunds to send. The kind is empty if
// a refund in progress has to end first.
func (c *change) giveCompensation(since time.Time) (given postgres.Compensated, refunds []int64, err error) {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return given, nil, err
	}
	settings := branch.Compensation
	if limited, err := c.compensatedEnough(branch); limited || err != nil {
		return postgres.Compensated{Kind: uncompensated, Reason: "limit per phone"}, nil, err
	}
	stuck := min(c.now.Sub(since), c.r().Stay().End.Sub(since))
	stay, err := lockStay(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return given, nil, err
	}
	if settings.ExtendFirst && c.now.Before(c.r().LastUnlock()) {
		longer := settings.Extension(stuck)
		ok, err := c.extendFree(stay, branch, longer)
		if ok || err != nil {
			return postgres.Compensated{Kind: compensatedTime, Minutes: int(longer / time.Minute)}, nil, err
		}
	}
	return c.compensateMoney(stay, settings, stuck)
}

// compensatedEnough reports whether the guest's phone number has reached the branch's limit in this month.
func (c *change) compensatedEnough(branch booking.Branch) (bool, error) {
	if branch.Compensation.PerPhonePerMonth == 0 || c.r().Mobile == "" {
		return false, nil
	}
	first := booking.DateOf(c.now, branch.Zone)
	first.Day = 1
	n, err := postgres.CountCompensations(c.ctx, c.tx, c.r().Mobile, first.At(0, branch.Zone))
	return n >= branch.Compensation.PerPhonePerMonth, err
}

// extendFree extends the stay if its room is free and the branch open. It returns false without a change otherwise, and if
// the guest has bought, or is buying, an extension.
func (c *change) extendFree(stay stay, branch booking.Branch, longer time.Duration) (ok bool, err error) {
	r := c.r()
	room, ok := branch.Room(r.RoomNo)
	times := booking.Interval{Start: r.Start, End: r.End.Add(longer)}
	if !ok || len(stay.extensions) > 0 || times.Length() > booking.MaxLength {
		return false, nil
	}
	outer := c.tx
	err = pgx.BeginFunc(c.ctx, outer, func(tx pgx.Tx) error {
		c.tx = tx
		if err := c.moveTo(stay, branch, stay.at(room, times), ByCompensation, "문 고장 보상"); err != nil {
			return err
		}
		return c.notifyPlace(notify.StayCompensated)
	})
	c.tx = outer
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrTaken), errors.Is(err, ErrHeld), errors.Is(err, ErrRoomDisabled), errors.Is(err, booking.ErrInvalid), errors.Is(err, booking.ErrClosed),
		errors.Is(err, booking.ErrBreak), errors.Is(err, booking.ErrAfterHours), postgres.IsExclusionViolation(err, "reservation_no_overlap"):
		return false, nil
	}
	return false, err
}

// compensateMoney records refunds for the time without entry: of the first payment of the stay, then of its extensions.
func (c *change) compensateMoney(stay stay, settings booking.Compensation, stuck time.Duration) (given postgres.Compensated, refunds []int64, err error) {
	var paid []*change
	balance := 0
	for _, r := range stay.confirmed() {
		part := c.on(r)
		part.Snapshot, err = load(c.ctx, c.tx, r)
		switch {
		case errors.Is(err, postgres.ErrNoPayment):
			continue
		case err != nil || part.Refund != nil:
			return given, nil, err
		case !r.PaidAt.IsZero():
			paid = append(paid, part)
			balance += part.Left()
		}
	}
	given = postgres.Compensated{Kind: compensatedMoney, Amount: settings.Won(balance, stuck)}
	if given.Amount <= 0 {
		return postgres.Compensated{Kind: uncompensated, Reason: "nothing to refund"}, nil, nil
	}
	due := given.Amount
	for _, part := range paid {
		won := min(due, part.Left())
		if won <= 0 {
			continue
		}
		id, err := part.startPart(won, "문 고장 보상", ByCompensation, nil)
		if err != nil {
			return given, nil, err
		}
		if part.r().Method == booking.VirtualAccount {
			if err := part.failRefund(id, won, accountRequired, "환불 계좌가 필요합니다."); err != nil {
				return given, nil, err
			}
		}
		refunds = append(refunds, id)
		due -= won
	}
	given.Refund = refunds[0]
	return given, refunds, nil
}

// CompensationOf returns what the guest of a reservation got for a door that did not open; its kind is empty for nothing.
func (s *Service) CompensationOf(ctx context.Context, id booking.ReservationID) (postgres.Compensated, error) {
	c, err := postgres.CompensationOf(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoCompensation) || c.Kind == uncompensated {
		return postgres.Compensated{}, nil
	}
	return c, err
}
