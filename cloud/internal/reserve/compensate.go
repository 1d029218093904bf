package reserve

import (
	"cmp"
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
// the next slots are free, otherwise money is returned, and in a second step everything. Each step is taken at most once.
func (s *Service) Compensate(ctx context.Context) error {
	stuck, err := postgres.StuckDoors(ctx, s.DB.Pool, 0, s.now())
	if err != nil {
		return fmt.Errorf("reserve: stuck doors: %w", err)
	}
	var errs []error
	for _, one := range stuck {
		if err := s.compensate(ctx, one); err != nil {
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
		given.Since = still[0].Since
		if err := postgres.PutCompensation(ctx, tx, r, given); err != nil {
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

// giveCompensation decides about a guest who has been stuck since a time, and returns the refunds to send. It returns what the guest
// has then got in all. The kind is empty if a refund in progress has to end first.
func (c *change) giveCompensation(since time.Time) (given postgres.Compensated, refunds []int64, err error) {
	before, err := postgres.CompensationOf(c.ctx, c.tx, c.r().ID)
	first := errors.Is(err, postgres.ErrNoCompensation)
	if err != nil && !first {
		return given, nil, err
	}
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return given, nil, err
	}
	settings := branch.Compensation
	owed := before.Reason == postgres.CompensationOwed
	if first || before.Kind == uncompensated && !owed { // otherwise this reservation counts already
		if limited, err := c.compensatedEnough(branch); limited || err != nil {
			return postgres.Compensated{Kind: uncompensated, At: c.now, Reason: postgres.CompensationLimit}, nil, err
		}
	}
	stuck := min(c.now.Sub(since), c.r().Stay().End.Sub(since))
	whole := owed || settings.Whole(stuck)
	if !first && !whole {
		return given, nil, nil // the settings have changed
	}
	stay, err := lockStay(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return given, nil, err
	}
	if first && settings.ExtendFirst && !whole && c.now.Before(c.r().LastUnlock()) {
		longer := settings.Extension(stuck)
		ok, err := c.extendFree(stay, branch, longer)
		if ok || err != nil {
			return postgres.Compensated{Kind: compensatedTime, At: c.now, Minutes: int(longer / time.Minute)}, nil, err
		}
	}
	return c.compensateMoney(stay, settings, stuck, whole, before)
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
// the guest has bought, or is buying, an extension, or has ended the stay.
func (c *change) extendFree(stay stay, branch booking.Branch, longer time.Duration) (ok bool, err error) {
	r := c.r()
	room, ok := branch.Room(r.RoomNo)
	times := booking.Interval{Start: r.Start, End: r.End.Add(longer)}
	if !ok || len(stay.extensions) > 0 || times.Length() > booking.MaxLength {
		return false, nil
	}
	if ended, err := postgres.EndedByGuest(c.ctx, c.tx, r.ID, r.End, endReason); err != nil || ended {
		return false, err // the guest has left
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

// compensateMoney records refunds for the time without entry: of the first payment of the stay, then of its extensions. before is what
// the guest has got in the first step. A refund of it that waits for the guest's account grows. While another refund is open, everything is
// owed, also if it ends long after the stay.
func (c *change) compensateMoney(stay stay, settings booking.Compensation, stuck time.Duration, whole bool, before postgres.Compensated) (given postgres.Compensated, refunds []int64, err error) {
	var paid []*change
	balance := 0
	for _, r := range stay.confirmed() {
		part := c.on(r)
		part.Snapshot, err = load(c.ctx, c.tx, r)
		switch {
		case errors.Is(err, postgres.ErrNoPayment):
			continue
		case err != nil:
			return given, nil, err
		case part.Refund != nil && !awaitsAccount(*part.Refund):
			if whole {
				given = before
				given.Reason, given.Kind, given.At = postgres.CompensationOwed, cmp.Or(before.Kind, uncompensated), c.now
			}
			return given, nil, nil
		case !r.PaidAt.IsZero():
			paid = append(paid, part)
			balance += part.leftToCompensate()
		}
	}
	given = before
	won := settings.Won(balance, stuck)
	if whole {
		won, given.Reason = balance, postgres.CompensatedWhole
	}
	if won <= 0 {
		if given.Kind == "" {
			given.Kind, given.At, given.Reason = uncompensated, c.now, cmp.Or(given.Reason, "nothing to refund")
		}
		return given, nil, nil
	}
	given.Kind, given.At, given.Amount = compensatedMoney, c.now, before.Amount+won
	for _, part := range paid {
		some := min(won, part.leftToCompensate())
		if some <= 0 {
			continue
		}
		id, err := part.compensate(some)
		if err != nil {
			return given, nil, err
		}
		refunds = append(refunds, id)
		won -= some
	}
	given.Refund = refunds[0]
	return given, refunds, nil
}

// awaitsAccount reports whether a refund is a compensation that has not been sent, because its guest has not entered an account.
func awaitsAccount(f money.Refund) bool {
	return f.By == ByCompensation && f.KeepsStay && f.Unsent() && f.ErrorCode == accountRequired && f.AccountBy == ""
}

// leftToCompensate returns the won of a payment that no refund returns.
func (c *change) leftToCompensate() int {
	if c.Refund != nil {
		return c.Left() - c.Refund.Amount // which has not been sent
	}
	return c.Left()
}

// compensate records a refund of won, which is added to one that waits for the guest's account.
func (c *change) compensate(won int) (refund int64, err error) {
	if f := c.Refund; f != nil {
		if err := postgres.JoinRefund(c.ctx, c.tx, f.ID, won); err != nil {
			return 0, err
		}
		if err := c.entry("refund.requested", won, "", map[string]any{"by": ByCompensation, "with": f.ID}); err != nil {
			return 0, err
		}
		return f.ID, c.askAccount(f.ID, f.Amount+won)
	}
	refund, err = c.startPart(won, "문 고장 보상", ByCompensation, nil)
	if err == nil && c.r().Method == booking.VirtualAccount {
		err = c.failRefund(refund, won, accountRequired, "환불 계좌가 필요합니다.")
	}
	return refund, err
}

// CompensationOf returns what the guest of a reservation got for a door that did not open; its kind is empty for nothing.
func (s *Service) CompensationOf(ctx context.Context, id booking.ReservationID) (postgres.Compensated, error) {
	c, err := postgres.CompensationOf(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoCompensation) || c.Kind == uncompensated {
		return postgres.Compensated{}, nil
	}
	return c, err
}
