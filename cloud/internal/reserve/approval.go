package reserve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// ErrSameAdministrator is returned when an administrator approves a refund of his own, or retries a refund that is not
// approved yet.
var ErrSameAdministrator = errors.New("reserve: another administrator has to approve the refund")

// above reports whether another administrator has to approve a refund after which won of the payment are returned in all
// (docs/specification.md, Refunds 15).
func (c *change) above(won int) bool { return c.RefundLimit > 0 && won > c.RefundLimit }

// approval reports whether an administrator other than by has to approve a refund account: its holder is neither the depositor nor
// the guest, and by is a branch's administrator, a token, or an administrator who is disabled since. A name of the guest
// that the same administrator has corrected does not count: it would replace the second administrator.
func (c *change) approval(to *toss.RefundAccount, by string) (bool, error) {
	if to == nil {
		return false, nil
	}
	if login, ok := strings.CutPrefix(by, "admin:"); ok {
		admin, err := postgres.AdministratorByLogin(c.ctx, c.tx, login)
		if err != nil && !errors.Is(err, booking.ErrNoAdministrator) {
			return false, err
		}
		if account.Role(admin.Role) == account.HQ && admin.DisabledAt.IsZero() {
			return false, nil
		}
	}
	switch plainName(to.Holder) {
	case plainName(c.Payment.Account.Holder):
		return false, nil
	case plainName(c.r().Name):
		correctors, err := c.correctors("name")
		if err != nil {
			return false, err
		}
		for _, corrector := range correctors {
			if same, err := c.samePerson(corrector, by); err != nil || same {
				return true, err
			}
		}
		return false, nil
	}
	return true, nil
}

// correctors returns the actors who have corrected one of the fields of the stay's contact, the last one first.
func (c *change) correctors(fields ...string) ([]string, error) {
	return postgres.ContactCorrectors(c.ctx, c.tx, cmp.Or(c.r().Extends, c.r().ID), fields...)
}

// responsible returns the administrator who answers for a refund account: by, or for an account of the guest the last administrator
// who has given the stay another phone number or e-mail address, at which the login code and the refund link arrive. Empty: none has.
func (c *change) responsible(by string) (string, error) {
	if byStaff(by) {
		return by, nil
	}
	correctors, err := c.correctors("mobileNum", "email")
	if i := slices.IndexFunc(correctors, byStaff); err == nil && i >= 0 {
		return correctors[i], nil
	}
	return "", err
}

// samePerson reports whether two actors are one administrator. A token acts for the administrator who created it and knows it, also
// after it was revoked.
func (c *change) samePerson(a, b string) (bool, error) {
	for _, actor := range []*string{&a, &b} {
		creator, err := postgres.TokenCreator(c.ctx, c.tx, *actor)
		if err != nil {
			return false, err
		}
		*actor = cmp.Or(creator, *actor)
	}
	return a == b, nil
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
func (c *change) noteAccount(refund int64, to *toss.RefundAccount, by string) (waits bool, err error) {
	if to == nil {
		return false, nil
	}
	responsible, err := c.responsible(by)
	if err != nil || responsible == "" {
		return false, err
	}
	if err := postgres.NoteRefundAccount(c.ctx, c.tx, refund, masked(to)); err != nil {
		return false, err
	}
	if needed, err := c.approval(to, responsible); err != nil || !needed {
		return false, err
	}
	return true, c.awaitApproval(refund, responsible, money.ApprovalRequired)
}

// byStaff reports whether an actor is an administrator or a token, neither the guest nor the service.
func byStaff(actor string) bool { return actor != "customer" && !strings.HasPrefix(actor, "system:") }

// awaitApproval holds a refund back until another administrator approves it. code is one of money.
func (c *change) awaitApproval(refund int64, by, code string) error {
	if err := postgres.AwaitApproval(c.ctx, c.tx, refund, by, nil); err != nil {
		return err
	}
	return postgres.AdvanceRefund(c.ctx, c.tx, refund, money.RefundFailed, code, "다른 관리자의 승인이 필요합니다.")
}

// awaitOutside records a refund by hand that another administrator has to approve. Without a refund to complete, it opens
// one that leaves the stay as it is.
func (c *change) awaitOutside(f *money.Refund, req OutsideRequest) (id int64, err error) {
	if f != nil {
		id = f.ID
	} else if id, err = c.startPart(req.Amount, req.Reason, req.By.Actor(), nil); err == nil {
		err = c.awaitApproval(id, req.By.Actor(), money.AmountApprovalRequired)
	}
	if err != nil {
		return 0, err
	}
	request, err := json.Marshal(req)
	if err != nil {
		return 0, err
	}
	return id, postgres.AwaitApproval(c.ctx, c.tx, id, req.By.Actor(), request)
}

// waitingRefund returns the refund of a reservation that waits for a second administrator, or ErrNotFound.
func (c *change) waitingRefund(by account.Principal) (f money.Refund, err error) {
	if _, err := c.reachable(by); err != nil {
		return f, err
	}
	open, err := currentRefund(c.ctx, c.tx, c.r().ID)
	if err == nil && (open == nil || !open.Waits()) {
		err = ErrNotFound
	}
	if err != nil {
		return f, err
	}
	return *open, nil
}

// ApproveRefund approves a refund that another administrator requested, and executes it.
//
// Errors: ErrNotFound (no refund waits for approval), account.ErrBranchForbidden, ErrSameAdministrator, *PaymentRefused,
// ErrPaymentPending, and those of SettleOutside.
func (s *Service) ApproveRefund(ctx context.Context, id booking.ReservationID, by account.Principal) error {
	byHand := false
	err := s.locked(ctx, id, func(c *change) error {
		f, err := c.waitingRefund(by)
		byHand = f.Outside != nil
		return err
	})
	if err == nil && byHand { // its money may have been returned in the provider's dashboard
		err = unlessOvertaken(func() error { return s.refresh(ctx, id) })
	}
	if err != nil {
		return err
	}
	var refund *money.Refund // to be sent
	err = s.locked(ctx, id, func(c *change) error {
		refund = nil
		f, err := c.waitingRefund(by)
		if err != nil {
			return err
		}
		if same, err := c.samePerson(f.AccountBy, by.Actor()); err != nil || same {
			return cmp.Or(err, ErrSameAdministrator)
		}
		if err := postgres.ApproveRefundAccount(c.ctx, c.tx, f.ID, by.Actor()); err != nil {
			return err
		}
		if err := c.audited(by, "reservation.approve-refund", map[string]any{"enteredBy": f.AccountBy, "amount": f.Amount, "outside": f.Outside != nil}); err != nil {
			return err
		}
		if f.Outside != nil {
			return c.approveOutside(f, by)
		}
		f.IdempotencyKey = newCancelKey(id)
		if err := postgres.ReopenRefund(c.ctx, c.tx, f.ID, nil, f.IdempotencyKey); err != nil {
			return err
		}
		refund = &f
		return c.settleAt(c.now.Add(watchdogDelay))
	})
	if err != nil || refund == nil {
		return err
	}
	return s.runRefund(ctx, *refund)
}

// approveOutside executes a refund by hand that waited for approval.
func (c *change) approveOutside(f money.Refund, by account.Principal) (err error) {
	var req OutsideRequest
	if err := json.Unmarshal(f.Outside, &req); err != nil {
		return fmt.Errorf("refund %d that waits for approval: %w", f.ID, err)
	}
	req.requestedBy, req.approvedBy = f.AccountBy, by.Actor()
	if c.Snapshot, err = load(c.ctx, c.tx, c.r()); err != nil {
		return err
	}
	_, err = c.settleOutside(req)
	return err
}

// DeclineRefund ends the wait for a second administrator: a part of a payment is not returned, a refund by hand is not recorded, and the guest
// is asked for another account for a compensation or the refund of a canceled reservation. Each administrator may decline, also the one who
// requested the refund.
//
// Errors: ErrNotFound (no refund waits for approval), account.ErrBranchForbidden.
func (s *Service) DeclineRefund(ctx context.Context, id booking.ReservationID, by account.Principal) error {
	return s.locked(ctx, id, func(c *change) error {
		f, err := c.waitingRefund(by)
		if err != nil {
			return err
		}
		if err := c.withdraw(f); err != nil {
			return err
		}
		return c.audited(by, "reservation.decline-refund", map[string]any{"enteredBy": f.AccountBy, "amount": f.Amount, "outside": f.Outside != nil})
	})
}

// remainsOwed reports whether the money of a refund that waits for a second administrator remains owed without the approval: that of a
// canceled reservation, of a part that the bank has rejected, and of a compensation.
func remainsOwed(f money.Refund) bool { return !f.KeepsStay || f.Taken || f.By == ByCompensation }

// withdraw ends the wait of a refund for a second administrator. If its money remains owed, the guest is asked for another account.
func (c *change) withdraw(f money.Refund) error {
	owed := remainsOwed(f)
	if err := postgres.WithdrawApproval(c.ctx, c.tx, f.ID, f.HeldBack() && owed); err != nil {
		return err
	}
	switch {
	case !f.HeldBack(): // a refund by hand of one that has failed, which is as before
		return c.askAccountAgain() // the contact that has the link may have been corrected meanwhile
	case owed:
		if err := postgres.AdvanceRefund(c.ctx, c.tx, f.ID, money.RefundFailed, accountRequired, "환불 계좌가 필요합니다."); err != nil {
			return err
		}
		return c.askAccount(f.ID, f.Amount)
	}
	return c.dropPart(f, money.ApprovalDeclined, "승인되지 않았습니다.")
}

// dropPart closes a refund of a part that was never sent.
func (c *change) dropPart(f money.Refund, code, message string) error {
	if err := postgres.CountReturned(c.ctx, c.tx, f.Reservation, -f.Amount); err != nil {
		return err
	}
	if err := postgres.AdvanceRefund(c.ctx, c.tx, f.ID, money.RefundRefused, code, message); err != nil {
		return err
	}
	if err := postgres.SettleDiscrepancy(c.ctx, c.tx, c.r().OrderID, refundKind, settled, c.now); err != nil {
		return err
	}
	return c.entry("refund.refused", f.Amount, code, nil)
}
