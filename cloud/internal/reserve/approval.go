package reserve

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// ErrSameAdministrator is returned when an administrator approves an account that he entered himself, or retries a refund
// whose account is not approved yet.
var ErrSameAdministrator = errors.New("reserve: another administrator has to approve the account")

// approval reports whether another administrator has to approve a refund account: its holder is neither the guest nor the
// depositor.
func (c *change) approval(to *toss.RefundAccount) bool {
	if to == nil {
		return false
	}
	holder := plainName(to.Holder)
	return holder != plainName(c.r().Name) && holder != plainName(c.Payment.Account.Holder)
}

// plainName returns a name in lower case and without spaces, for comparison.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, name))
}

// masked returns an account as the refund record shows it: the bank, the last four digits and a masked holder.
func masked(a *toss.RefundAccount) string {
	holder := []rune(a.Holder)
	for i := 1; i < len(holder)-1; i++ {
		holder[i] = '*'
	}
	if len(holder) == 2 {
		holder[1] = '*'
	}
	return bankName(a.Bank) + " ****" + lastDigits(a.Number) + " " + string(holder)
}

// lastDigits returns the last four digits of an account number.
func lastDigits(number string) string {
	digits := []rune(number)
	return string(digits[max(0, len(digits)-4):])
}

// noteAccount records the masked account of a refund. If the account needs approval, the refund is not sent and waits is
// true.
func (c *change) noteAccount(refund int64, to *toss.RefundAccount, by account.Principal) (waits bool, err error) {
	if to == nil || !by.Administrator() {
		return false, nil
	}
	entered := ""
	if waits = c.approval(to); waits {
		entered = by.Actor()
	}
	if err := postgres.NoteRefundAccount(c.ctx, c.tx, refund, masked(to), entered); err != nil {
		return false, err
	}
	if !waits {
		return false, nil
	}
	return true, postgres.AdvanceRefund(c.ctx, c.tx, refund, money.RefundFailed, money.ApprovalRequired, "다른 관리자의 승인이 필요합니다.")
}

// ApproveRefund approves the account of a refund that another administrator entered, and sends the refund.
//
// Errors: ErrNotFound (no refund waits for approval), account.ErrBranchForbidden, ErrSameAdministrator, *PaymentRefused,
// ErrPaymentPending.
func (s *Service) ApproveRefund(ctx context.Context, id booking.ReservationID, by account.Principal) error {
	var refund money.Refund
	err := s.locked(ctx, id, func(c *change) error {
		if _, err := c.reachable(by); err != nil {
			return err
		}
		f, err := currentRefund(c.ctx, c.tx, id)
		switch {
		case err != nil:
			return err
		case f == nil || f.State != money.RefundFailed || f.AccountBy == "":
			return ErrNotFound
		case f.AccountBy == by.Actor():
			return ErrSameAdministrator
		}
		refund = *f
		refund.IdempotencyKey = newCancelKey(id)
		if err := postgres.ApproveRefundAccount(c.ctx, c.tx, f.ID, by.Actor()); err != nil {
			return err
		}
		if err := postgres.ReopenRefund(c.ctx, c.tx, f.ID, nil, refund.IdempotencyKey); err != nil {
			return err
		}
		if err := c.settleAt(c.now.Add(watchdogDelay)); err != nil {
			return err
		}
		return c.audited(by, "reservation.approve-refund", map[string]any{"enteredBy": f.AccountBy})
	})
	if err != nil {
		return err
	}
	return s.runRefund(ctx, refund)
}
