package reserve_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// rejected returns a canceled stay whose refund the bank has rejected, and the token of the link at which its guest enters another account.
func (s *shop) rejected(t *testing.T) (b *moneytest.Buyer, id int64, token string) {
	t.Helper()
	b, _, id = s.paid(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	s.answer(t, b, "/payment/cancel", refundAccount(cancelBody(id)), 200, "")
	s.awaitRefund(t, id, "FAILED")
	return b, id, s.refundToken(t, id)
}

// TestRejectedTransferIsRepeatedUntilItIsAnswered: the provider cannot repeat a transfer that the bank has rejected, because it is down or the bank
// is closed. It is requested again later, and the guest is not asked for another account.
func TestRejectedTransferIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{"outage": {Status: 503}, "bank closed": {Code: "NOT_AVAILABLE_BANK"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, id, token := s.rejected(t)
			fault.Target, fault.Kind, fault.Times = sandbox.TargetCancel, sandbox.FaultError, 1
			s.fault(t, fault)
			if err := s.Replica(t).EnterRefundAccount(s.ctx, token, guestAccount); err != nil {
				t.Fatal(err)
			}
			s.wantPaidBack(t, id)
			if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = 'refund-account'`, id); n != 1 {
				t.Errorf("the guest was asked for an account %d times, want 1", n)
			}
		})
	}
}

// TestDeclinedAccountOfARejectedTransfer: the guest who enters an account that the provider declines learns it, and receives another link.
func TestDeclinedAccountOfARejectedTransfer(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, id, token := s.rejected(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "INVALID_REFUND_ACCOUNT_INFO", Times: 1})
	var refused *reserve.PaymentRefused
	if err := s.Replica(t).EnterRefundAccount(s.ctx, token, guestAccount); !errors.As(err, &refused) || refused.Code != "INVALID_REFUND_ACCOUNT_INFO" {
		t.Errorf("got %v, want the provider's refusal", err)
	}
	s.awaitRefund(t, id, "FAILED")
	if err := s.Replica(t).EnterRefundAccount(s.ctx, s.anotherRefundToken(t, s.mobile(t, id), token), guestAccount); err != nil {
		t.Fatal(err)
	}
	s.wantPaidBack(t, id)
}

// TestByHandNotDuringALaterRequest: a refund that failed long ago is requested again. Until this request has been without an answer, or with
// the bank, for long enough, an administrator cannot record the refund as made by hand: the guest would have the money twice.
func TestByHandNotDuringALaterRequest(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, id, _ := s.rejected(t)
	s.exec(t, `update refund set created_at = created_at - interval '7 days', due_at = due_at - interval '7 days' where reservation_id = $1`, id)
	replica, reservation := s.Replica(t), booking.ReservationID(id)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 503, Times: -1}) // the sweep may ask, too
	if err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: reservation, Account: &guestAccount, By: hq}); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatalf("requested again: got %v, want ErrPaymentPending", err)
	}
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatalf("recorded by hand while the provider may still execute the request: %v", err)
	}
	s.Sandbox.ClearFaults()
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultTimeout})
	s.awaitRefund(t, id, "PENDING")
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); !errors.Is(err, reserve.ErrPaymentPending) {
		t.Fatalf("recorded by hand while the bank has time: %v", err)
	}
	s.Clock.Advance(booking.BusinessDaysAfter(s.Clock.Now(), 3).Sub(s.Clock.Now()) + time.Minute)
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil {
		t.Error(err)
	}
}

// TestByHandAfterALongOutage: the provider does not answer the request to repeat a rejected transfer. Meanwhile the guest's list shows nothing as
// refunded, and after 15 minutes an administrator can return the money by hand.
func TestByHandAfterALongOutage(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, id, token := s.rejected(t)
	replica := s.Replica(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 503, Times: -1})
	if err := replica.EnterRefundAccount(s.ctx, token, guestAccount); err != nil {
		t.Fatal(err)
	}
	var list []struct{ Amount, Refunded int }
	reply, err := b.Do(s.ctx, http.MethodGet, "/my-reservations", nil)
	if err == nil {
		err = json.Unmarshal(reply.Data, &list)
	}
	if err != nil || len(list) != 1 || list[0].Refunded != 0 {
		t.Fatalf("the guest's list has %+v (%v), want nothing refunded", list, err)
	}
	s.exec(t, `update refund set requested_at = requested_at - interval '16 minutes' where reservation_id = $1`, id)
	if got, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil || got.Amount != list[0].Amount {
		t.Fatalf("got %+v, %v, want %d won by hand", got, err, list[0].Amount)
	}
	s.wantRefunded(t, b, list[0].Amount)
}
