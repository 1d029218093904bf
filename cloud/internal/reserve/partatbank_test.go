package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// partAtBank refunds a part of a deposit whose transfer has a fault.
func (s *shop) partAtBank(t *testing.T, kind sandbox.FaultKind) (*moneytest.Buyer, moneytest.Confirm, int64) {
	t.Helper()
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: kind, Times: 1})
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	return b, order, id
}

// wantPaidBack waits until the guest has everything back, and checks that no refund is open.
func (s *shop) wantPaidBack(t *testing.T, id int64) {
	t.Helper()
	s.nothingHeld(t)
	s.refundsDone(t, id)
}

func cancelBody(id int64) map[string]any { return map[string]any{"id": id, "cancelReason": "변심"} }

// A part that the bank has rejected counts as owed although its rejection was not known at the cancellation.
func TestCancelAfterUnknownRejectionOfPart(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.partAtBank(t, sandbox.FaultError)
	s.eventually(t, "the bank has rejected the part", func() bool {
		return s.Sandbox.Payments(order.OrderID)[0].VirtualAccount.RefundStatus == "PARTIAL_FAILED"
	})
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	s.wantPaidBack(t, id)
	s.wantMessage(t, id, order.Amount-1000)
}

// A guest cancels while the correction of the account is awaited: the account of the cancellation is the correction.
func TestCancelAfterRejectionOfPart(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.partAtBank(t, sandbox.FaultError)
	s.awaitRefund(t, id, "FAILED")
	s.answer(t, b, "/payment/cancel", cancelBody(id), 400, "IllegalArguemntError") // without an account
	s.wantState(t, order.OrderID, "DONE")
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	s.wantPaidBack(t, id)
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
}

// The rest of a canceled stay follows when the bank has transferred the part, and retains what the policy leaves with the shop.
func TestCancelWhilePartIsTransferred(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore": 30, "percent": 50}]`)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow, Delay: time.Minute, Times: 1})
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state <> 'PENDING'`, id); n != 0 {
		t.Errorf("%d refunds are not pending before the bank has transferred the part, want 0", n)
	}
	kept := (order.Amount - 1000) - (order.Amount-1000)/2
	s.Provider.Advance(time.Minute)
	s.eventually(t, "the rest is refunded", func() bool { return s.Sandbox.Payments(order.OrderID)[0].BalanceAmount == kept })
	s.refundsDone(t, id)
	if n := s.count(t, `select sum(amount)::int from refund where reservation_id = $1`, id); n != order.Amount-kept {
		t.Errorf("refunds of %d won, want %d", n, order.Amount-kept)
	}
	if report := s.reconcile(t, s.Replica(t)); len(report.Discrepancies) != 0 {
		t.Errorf("reconciled: %+v", report)
	}
}

// The bank rejects the part after the stay was canceled: the guest names another account once, for both refunds.
func TestPartIsRejectedAfterCancellation(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Delay: time.Minute, Times: 1})
	if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.wantState(t, order.OrderID, "CANCELED")
	s.Provider.Advance(time.Minute)
	s.awaitRefund(t, id, "FAILED")
	token := s.refundToken(t, id)
	if err := s.Replica(t).EnterRefundAccount(s.ctx, token, guestAccount); err != nil {
		t.Fatal(err)
	}
	s.wantPaidBack(t, id)
}

// The provider rejects the corrected account of a part that the bank has rejected: the part remains owed.
func TestDeclinedRetryOfPartRemainsOwed(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.partAtBank(t, sandbox.FaultError)
	s.awaitRefund(t, id, "FAILED")
	wrong := guestAccount
	wrong.Number = "123456789012345678901" // longer than any account
	for _, to := range []*toss.RefundAccount{&wrong, nil} {
		if to == nil {
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "INVALID_REFUND_ACCOUNT_INFO", Times: 1})
			to = &guestAccount
		}
		var refused *reserve.PaymentRefused
		err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: to, By: hq})
		if !errors.As(err, &refused) {
			t.Errorf("got %v, want a refusal", err)
		}
		s.awaitRefund(t, id, "FAILED")
	}
	s.retryPart(t, id)
	s.refundsDone(t, id)
	if l := s.Sandbox.Ledger(); l.Charged-l.Refunded != order.Amount-1000 {
		t.Errorf("the provider holds %d, want %d", l.Charged-l.Refunded, order.Amount-1000)
	}
}

// TestTransferRepeatedInTheDashboard: the provider's dashboard repeats a transfer that the bank has rejected, and there is no callback.
// An account that is entered or approved after that does not receive the part a second time.
func TestTransferRepeatedInTheDashboard(t *testing.T) {
	t.Parallel()
	again := map[string]func(t *testing.T, s *shop, id int64){
		"another account": func(t *testing.T, s *shop, id int64) { s.retryPart(t, id) },
		"account of the guest": func(t *testing.T, s *shop, id int64) {
			if err := s.Replica(t).EnterRefundAccount(s.ctx, s.refundToken(t, id), guestAccount); err != nil {
				t.Fatal(err)
			}
		},
		"approval": func(t *testing.T, s *shop, id int64) {
			if err := s.Replica(t).ApproveRefund(s.ctx, booking.ReservationID(id), lee); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, again := range again {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1}) // of the part itself, late
			s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
			if _, err := s.Replica(t).RefundPart(s.ctx, part(id, 1000)); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, "FAILED")
			if name == "approval" {
				s.nameStranger(t, id)
			}
			held := s.Sandbox.Payments(order.OrderID)[0].BalanceAmount
			s.dashboard(t, order, order.Amount-held, &guestAccount)
			again(t, s, id)
			s.refundsDone(t, id)
			if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != held {
				t.Errorf("the provider holds %d won, want %d", p.BalanceAmount, held)
			}
		})
	}
}

// rejectedPart has a part that the bank has rejected wait for the approval of another account.
func (s *shop) rejectedPart(t *testing.T) (*moneytest.Buyer, int64) {
	t.Helper()
	b, _, id := s.partAtBank(t, sandbox.FaultError)
	s.awaitRefund(t, id, "FAILED")
	s.nameStranger(t, id)
	return b, id
}

// nameStranger has a branch's administrator name the account of a stranger for a failed refund. It waits for approval.
func (s *shop) nameStranger(t *testing.T, id int64) {
	t.Helper()
	stranger := guestAccount
	stranger.Holder = "다른 사람"
	if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &stranger, By: gangnamManager}); err != nil {
		t.Fatal(err)
	}
}

// A rejected part whose new account waits for approval was sent before, so neither a cancellation nor a decline closes it.
func TestRejectedPartWaitsForApproval(t *testing.T) {
	t.Parallel()
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		b, id := s.rejectedPart(t)
		s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
		s.wantPaidBack(t, id)
	})
	t.Run("approved after a look-up", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		_, id := s.rejectedPart(t)
		if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
			t.Fatal(err)
		}
		if err := s.Replica(t).ApproveRefund(s.ctx, booking.ReservationID(id), lee); err != nil {
			t.Fatal(err)
		}
		s.refundsDone(t, id)
	})
	t.Run("declined", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		_, id := s.rejectedPart(t)
		if err := s.Replica(t).DeclineRefund(s.ctx, booking.ReservationID(id), hq); err != nil {
			t.Fatal(err)
		}
		s.awaitRefund(t, id, "FAILED")
		if n := s.count(t, `select count(*) from refund where reservation_id = $1 and account is not null`, id); n != 0 {
			t.Error("the declined account is kept")
		}
		s.retryPart(t, id)
		s.refundsDone(t, id)
	})
}

// An administrator cancels a stay whose part was rejected. Another administrator approves the account, which gets both.
func TestAdministratorCancelsAfterRejectionOfPart(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.partAtBank(t, sandbox.FaultError)
	s.awaitRefund(t, id, "FAILED")
	stranger := guestAccount
	stranger.Holder = "다른 사람"
	err := s.Replica(t).AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: "DONE", Account: &stranger, By: gangnamManager})
	if err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "CANCELED")
	if l := s.Sandbox.Ledger(); l.Refunded != 0 {
		t.Errorf("%d won left before the approval, want 0", l.Refunded)
	}
	if err := s.Replica(t).ApproveRefund(s.ctx, booking.ReservationID(id), lee); err != nil {
		t.Fatal(err)
	}
	s.wantPaidBack(t, id)
}

// The compensation of a guest who never named an account is part of what a cancellation returns.
func TestCancellationReturnsUnsentPart(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.unsentPart(t, id)
	account := guestAccount
	err := s.Replica(t).AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: "DONE", Account: &account, By: hq})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, order.OrderID, "CANCELED")
	s.nothingHeld(t)
}

// unsentPart records a compensation that waits for the guest's account.
func (s *shop) unsentPart(t *testing.T, id int64) {
	t.Helper()
	s.exec(t, `insert into refund (reservation_id, state, reason, amount, requested_by, idempotency_key, keeps_stay, part, error_code)
		values ($1, 'FAILED', '문 고장 보상', 1000, $2, 'unsent', true, true, 'REFUND_ACCOUNT_REQUIRED')`, id, reserve.ByCompensation)
	s.exec(t, `update payment set returned = returned + 1000 where reservation_id = $1`, id)
}
