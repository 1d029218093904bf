package reserve_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

var gangnamManager = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "manager", Role: account.Manager, Branches: []string{"gangnam"}}

// limited returns a replica on which one administrator returns at most won of a payment.
func (s *shop) limited(t *testing.T, won int) *reserve.Service {
	replica := s.Replica(t)
	replica.RefundLimit = won
	return replica
}

// TestPartsAboveTheLimitWait: parts within the limit are sent at once, also one by one; the part that exceeds it waits, and is
// sent when another administrator approves it.
func TestPartsAboveTheLimitWait(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodCard)
	replica, reservation := s.limited(t, 4000), booking.ReservationID(id)
	for _, won := range []int{3000, 1000} {
		if got, err := replica.RefundPart(s.ctx, part(id, won)); err != nil || got.Waits {
			t.Fatalf("%d won within the limit: %+v, %v", won, got, err)
		}
	}
	request := part(id, 1)
	request.IdempotencyKey = "waits"
	for range 2 {
		if got, err := replica.RefundPart(s.ctx, request); err != nil || !got.Waits || got.Balance != order.Amount-4001 {
			t.Fatalf("one won above the limit: %+v, %v", got, err)
		}
	}
	if err := replica.Settle(s.ctx, reservation); err != nil {
		t.Fatal(err)
	}
	if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount-4000 {
		t.Errorf("the provider holds %d before the approval, want %d", p.BalanceAmount, order.Amount-4000)
	}
	if err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: reservation, By: hq}); !errors.Is(err, reserve.ErrSameAdministrator) {
		t.Errorf("retried without approval: %v", err)
	}
	if err := replica.ApproveRefund(s.ctx, reservation, hq); !errors.Is(err, reserve.ErrSameAdministrator) {
		t.Errorf("approved by the administrator who requested it: %v", err)
	}
	if err := replica.ApproveRefund(s.ctx, reservation, gangnamManager); err != nil {
		t.Fatal(err)
	}
	if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount-4001 {
		t.Errorf("the provider holds %d after the approval, want %d", p.BalanceAmount, order.Amount-4001)
	}
	if got, err := replica.RefundPart(s.ctx, request); err != nil || got.Waits {
		t.Errorf("repeated after the approval: %+v, %v", got, err)
	}
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and requested_by = 'admin:hq' and account_approved_by = 'admin:manager'`, id); n != 1 {
		t.Errorf("%d refunds record both administrators, want 1", n)
	}
	if n := s.count(t, `select count(*) from audit where action = 'reservation.approve-refund' and actor = 'admin:manager' and detail ->> 'enteredBy' = 'admin:hq'`); n != 1 {
		t.Errorf("%d entries in the audit log, want 1", n)
	}
	if err := replica.ApproveRefund(s.ctx, reservation, gangnamManager); !errors.Is(err, reserve.ErrNotFound) {
		t.Errorf("approved twice: %v", err)
	}
}

// TestTokenIsNoSecondAdministrator: the administrator who created a token does not approve what was requested with it, also after the
// token was revoked.
func TestTokenIsNoSecondAdministrator(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodCard)
	replica, reservation := s.limited(t, 4000), booking.ReservationID(id)
	accounts := &account.Service{DB: replica.DB}
	token, _, err := accounts.AddToken(s.ctx, account.NewToken{Name: "books", Scopes: []account.Scope{account.ScopeMoney}}, hq.Actor())
	if err != nil {
		t.Fatal(err)
	}
	request := part(id, 4001)
	request.By = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: fmt.Sprintf("token:%d books", token), Role: account.HQ, Scopes: []account.Scope{account.ScopeMoney}}
	if got, err := replica.RefundPart(s.ctx, request); err != nil || !got.Waits {
		t.Fatalf("above the limit: %+v, %v", got, err)
	}
	for _, revoked := range []bool{false, true} {
		if revoked {
			if err := accounts.RemoveToken(s.ctx, token, hq.Actor()); err != nil {
				t.Fatal(err)
			}
		}
		if err := replica.ApproveRefund(s.ctx, reservation, hq); !errors.Is(err, reserve.ErrSameAdministrator) {
			t.Errorf("revoked %t: approved by the creator of the token: %v", revoked, err)
		}
	}
	if err := replica.ApproveRefund(s.ctx, reservation, gangnamManager); err != nil {
		t.Fatal(err)
	}
	if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount-4001 {
		t.Errorf("the provider holds %d after the approval, want %d", p.BalanceAmount, order.Amount-4001)
	}
}

// TestCorrectedNameIsNoSecondAdministrator: an administrator who has given a stay another name does not refund it alone to an account of
// that name. Another administrator does.
func TestCorrectedNameIsNoSecondAdministrator(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica, name := s.Replica(t), "매니저본인"
	for _, corrector := range []account.Principal{gangnamManager, hq} {
		_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
		reservation := booking.ReservationID(id)
		if err := replica.CorrectContact(s.ctx, reserve.ContactCorrection{ID: reservation, Name: &name, Reason: "오타", By: corrector}); err != nil {
			t.Fatal(err)
		}
		err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{
			ID: reservation, Status: "paid", By: gangnamManager, Account: &toss.RefundAccount{Bank: "20", Number: "1002999999999", Holder: name},
		})
		if err != nil {
			t.Fatal(err)
		}
		if corrector.AdminLoginID == gangnamManager.AdminLoginID {
			s.awaitRefund(t, id, "FAILED")
			s.wantState(t, order.OrderID, "CANCELING")
			if err := replica.ApproveRefund(s.ctx, reservation, gangnamManager); !errors.Is(err, reserve.ErrSameAdministrator) {
				t.Errorf("approved by the administrator who corrected the name: %v", err)
			}
			if err := replica.ApproveRefund(s.ctx, reservation, hq); err != nil {
				t.Fatal(err)
			}
		}
		s.awaitRefund(t, id, "COMPLETED")
		s.wantState(t, order.OrderID, "CANCELED")
	}
}

// TestHeadquartersRefundToAnyAccount: an account that an administrator of the headquarters enters needs no approval for any holder. One that
// a branch's administrator or a token enters does.
func TestHeadquartersRefundToAnyAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	token := account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "token:1 books", Role: account.HQ, Scopes: []account.Scope{account.ScopeMoney, account.ScopeBook}}
	stranger := guestAccount
	stranger.Holder = "다른 사람"
	for by, want := range map[*account.Principal]string{&hq: "CANCELED", &gangnamManager: "CANCELING", &token: "CANCELING"} {
		_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
		err := s.Replica(t).AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(id), Status: "paid", By: *by, Account: &stranger})
		if err != nil {
			t.Fatal(err)
		}
		s.wantState(t, order.OrderID, want)
		if n := s.count(t, `select count(*) from refund where reservation_id = $1 and account_summary like '% 다***람'`, id); n != 1 {
			t.Errorf("%s: the masked account is not on record", by.Actor())
		}
		if want == "CANCELING" {
			if err := s.Replica(t).ApproveRefund(s.ctx, booking.ReservationID(id), hq); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestGuestOfWaitingCancellation: a guest whose stay an administrator has ended, and whose money waits for another one, learns that it is on its way, not
// that there is no such reservation or that a second administrator is missing.
func TestGuestOfWaitingCancellation(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodVirtualAccount)
	if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
		t.Fatal(err)
	}
	replica, stranger := s.Replica(t), guestAccount
	stranger.Holder = "다른 사람"
	err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(g.id), Status: "paid", By: gangnamManager, Account: &stranger})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := g.Do(s.ctx, "GET", fmt.Sprintf("/v2/my-reservations/%d/refund", g.id), nil)
	if err != nil || reply.HTTP != 503 || reply.ErrorType != "PaymentPendingException" {
		t.Errorf("the quote: %v %s", err, reply.Raw)
	}
	s.answer(t, g.Buyer, "/payment/cancel", refundAccount(cancelBody(g.id)), 200, "")
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(g.id), hq); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, g.order.OrderID, "CANCELED")
	s.answer(t, g.Buyer, "/payment/cancel", refundAccount(cancelBody(g.id)), 200, "")
}

// TestWaitingPartIsDeclined: a part that is declined is not returned and no longer counts, and a part that waits does not keep
// the guest from cancelling.
func TestWaitingPartIsDeclined(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, id := s.paid(t, sandbox.MethodCard)
	replica, reservation := s.limited(t, 4000), booking.ReservationID(id)
	for range 2 {
		if got, err := replica.RefundPart(s.ctx, part(id, order.Amount)); err != nil || !got.Waits {
			t.Fatalf("got %+v, %v", got, err)
		}
		if err := replica.DeclineRefund(s.ctx, reservation, gangnamManager); err != nil {
			t.Fatal(err)
		}
	}
	if err := replica.DeclineRefund(s.ctx, reservation, hq); !errors.Is(err, reserve.ErrNotFound) {
		t.Errorf("declined twice: %v", err)
	}
	if p := s.Sandbox.Payments(order.OrderID)[0]; p.BalanceAmount != order.Amount {
		t.Errorf("the provider holds %d, want %d", p.BalanceAmount, order.Amount)
	}
	if _, err := replica.RefundPart(s.ctx, part(id, 5000)); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	s.await(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select sum(amount)::int from refund where reservation_id = $1 and state = 'COMPLETED'`, id); n != order.Amount {
		t.Errorf("%d won are refunded, want %d", n, order.Amount)
	}
	if report := s.reconcile(t, replica); len(report.Discrepancies) != 0 {
		t.Errorf("reconciled: %+v", report)
	}
}

// TestRefundByHandAboveTheLimitWaits: a refund by hand above the limit ends nothing before another administrator approves it,
// also if it completes a refund that has failed.
func TestRefundByHandAboveTheLimitWaits(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, failed := range []bool{false, true} {
		_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
		replica, reservation := s.limited(t, 4000), booking.ReservationID(id)
		state := "DONE"
		if failed {
			s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
			if err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: reservation, Status: "paid", By: hq, Account: &guestAccount}); err != nil {
				t.Fatal(err)
			}
			s.awaitRefund(t, id, "FAILED")
			state = "CANCELED"
		}
		request := reserve.OutsideRequest{ID: reservation, Reason: "계좌 폐쇄", How: "계좌 이체", Reference: "4711", By: hq, IdempotencyKey: "hand"}
		for range 2 {
			if got, err := replica.SettleOutside(s.ctx, request); err != nil || !got.Waits || got.Amount != order.Amount {
				t.Fatalf("failed before: %t: got %+v, %v", failed, got, err)
			}
			if err := replica.DeclineRefund(s.ctx, reservation, gangnamManager); err != nil {
				t.Fatal(err)
			}
			s.wantState(t, order.OrderID, state)
			request.IdempotencyKey += "."
		}
		if got, err := replica.SettleOutside(s.ctx, request); err != nil || !got.Waits {
			t.Fatalf("failed before: %t: got %+v, %v", failed, got, err)
		}
		if err := replica.ApproveRefund(s.ctx, reservation, hq); !errors.Is(err, reserve.ErrSameAdministrator) {
			t.Errorf("approved by the administrator who requested it: %v", err)
		}
		if err := replica.ApproveRefund(s.ctx, reservation, gangnamManager); err != nil {
			t.Fatal(err)
		}
		s.wantState(t, order.OrderID, "CANCELED")
		if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'COMPLETED' and settled_outside ->> 'by' = 'admin:hq' and settled_outside ->> 'approvedBy' = 'admin:manager'`, id); n != 1 {
			t.Errorf("failed before: %t: %d refunds name both administrators, want 1", failed, n)
		}
		if got, err := replica.SettleOutside(s.ctx, request); err != nil || got.Waits {
			t.Errorf("repeated after the approval: %+v, %v", got, err)
		}
	}
}

// The account that an administrator names for a cancellation receives the deposit of an extension, too, so it needs approval for
// it even if the stay itself was paid by card.
func TestAccountForExtensionWaitsForApproval(t *testing.T) {
	t.Parallel()
	for _, method := range []string{sandbox.MethodCard, sandbox.MethodVirtualAccount} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g, extension := s.extendedByDeposit(t, method)
			stranger := guestAccount
			stranger.Holder = "다른 사람"
			replica := s.Replica(t)
			err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(g.id), Status: "paid", Account: &stranger, By: gangnamManager})
			if err != nil {
				t.Fatal(err)
			}
			if method == sandbox.MethodVirtualAccount { // the extension ends when the refund of the stay is made
				s.wantState(t, g.order.OrderID, "CANCELING")
				s.wantState(t, extension.OrderID, "DONE")
				if err := replica.ApproveRefund(s.ctx, booking.ReservationID(g.id), hq); err != nil {
					t.Fatal(err)
				}
			}
			_, id := s.state(t, extension.OrderID)
			if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED' and error_code = 'APPROVAL_REQUIRED'`, id); n != 1 {
				t.Fatalf("%d refunds of the extension wait for approval, want 1", n)
			}
			if p := s.Sandbox.Payments(extension.OrderID)[0]; p.BalanceAmount != extension.Amount {
				t.Errorf("the provider holds %d of the extension before the approval, want %d", p.BalanceAmount, extension.Amount)
			}
			if err := replica.ApproveRefund(s.ctx, booking.ReservationID(id), hq); err != nil {
				t.Fatal(err)
			}
			s.await(t, g.order.OrderID, "CANCELED")
			s.await(t, extension.OrderID, "CANCELED")
		})
	}
}
