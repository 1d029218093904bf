package reserve_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestChargedAfterRefusalIsFound: the provider refuses one request of an attempt, and later charges another, slower one. No
// client asks about the payment again and there is no callback for cards, so the sweep must find it. (Seed 1363 of
// moneysim.)
func TestChargedAfterRefusalIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"})
	s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	s.wantState(t, order.OrderID, "HOLD")
	s.exec(t, `delete from river_job where kind = $1`, "settle") // as if the watchdog had already run, before the charge

	s.chargeBehindOurBack(t, order)
	s.await(t, order.OrderID, "DONE")
}

// lateAccount returns an order that ended while its account waits for a deposit, and a replica that has tried to close the account
// once. The provider answers each attempt with an error.
func (s *shop) lateAccount(t *testing.T, status int, code string) (order moneytest.Confirm, id int64, replica *reserve.Service) {
	t.Helper()
	_, order, _ = s.bought(t, sandbox.MethodVirtualAccount)
	id = s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: status, Code: code, Times: -1})
	s.exec(t, `update reservation set state = 'EXPIRED' where id = $1`, id)
	replica = s.Replica(t)
	_ = replica.Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
	s.wantState(t, order.OrderID, "CANCELED")
	return order, id, replica
}

// TestDepositWhileLateAccountIsClosed: a deposit arrives before the account of an ended order is closed, and the bank rejects its
// refund. The refund has the amount of the deposit, so an administrator can return it by hand. (Seed 6625 of moneysim.)
func TestDepositWhileLateAccountIsClosed(t *testing.T) {
	t.Parallel()
	s := open(t)
	order, id, replica := s.lateAccount(t, 429, "TOO_MANY_REQUESTS")
	if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
		t.Fatal(err)
	}
	s.Sandbox.ClearFaults()
	s.eventually(t, "the account is not closed", func() bool {
		_ = replica.Settle(s.ctx, booking.ReservationID(id))
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED'`, id) == 1
	})
	wantAmount := func(when string) {
		t.Helper()
		if won := s.count(t, `select amount from refund where reservation_id = $1`, id); won != order.Amount {
			t.Errorf("%s: the refund is of %d won, want %d", when, won, order.Amount)
		}
	}
	wantAmount("the guest is asked for an account")
	s.exec(t, `update refund set amount = 0 where reservation_id = $1`, id) // as if the deposit had arrived after the answer
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	s.retryPart(t, id)
	wantAmount("the bank transfers it")
	s.eventually(t, "the bank rejects the transfer", func() bool {
		return s.count(t, `select count(*) from refund where reservation_id = $1 and error_code = 'FAILED'`, id) == 1
	})
	if got, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil || got.Amount != order.Amount {
		t.Errorf("returned by hand: %+v, %v, want %d won", got, err, order.Amount)
	}
}

// TestUnpaidAccountThatStaysOpen: the provider refuses to close the account of an ended order before any deposit. The guest receives
// no message about a refund; the account is closed later, or its deposit asks for an account of the guest.
func TestUnpaidAccountThatStaysOpen(t *testing.T) {
	t.Parallel()
	const links = `select count(*) from message where reservation_id = $1 and template in ('refund-account', 'refund-completed')`
	for _, deposited := range []bool{false, true} {
		t.Run(map[bool]string{false: "closed later", true: "paid into"}[deposited], func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order, id, replica := s.lateAccount(t, 403, "NOT_CANCELABLE_PAYMENT")
			for range 4 {
				_ = replica.Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
			}
			if n := s.count(t, links, id); n != 0 {
				t.Error("a message about a refund of an account that was never paid into")
			}
			want := `state = 'COMPLETED' and amount = 0`
			if deposited {
				if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
					t.Fatal(err)
				}
				want = `state = 'FAILED' and amount > 0`
			} else {
				s.Sandbox.ClearFaults()
			}
			s.eventually(t, "the account is not decided", func() bool {
				_ = replica.Settle(s.ctx, booking.ReservationID(id))
				return s.count(t, `select count(*) from refund where reservation_id = $1 and `+want, id) == 1
			})
			if n := s.count(t, links, id); n != map[bool]int{false: 0, true: 1}[deposited] {
				t.Errorf("%d messages about a refund", n)
			}
		})
	}
}

// chargeBehindOurBack sends an earlier, delayed request of an order's attempt to the provider.
func (s *shop) chargeBehindOurBack(t *testing.T, order moneytest.Confirm) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"paymentKey": order.PaymentKey, "orderId": order.OrderID, "amount": order.Amount})
	if err != nil {
		t.Fatal(err)
	}
	slow := httptest.NewRequest(http.MethodPost, "/v1/payments/confirm", bytes.NewReader(body))
	slow.SetBasicAuth(sandbox.DemoWidgetSecretKey+"_2", "")
	slow.Header.Set("Idempotency-Key", "the attempt's earlier one")
	answer := httptest.NewRecorder()
	s.Sandbox.ServeHTTP(answer, slow)
	if answer.Code != http.StatusOK {
		t.Fatalf("the provider answers %d %s", answer.Code, answer.Body)
	}
}

// TestChargeOfALostAttempt: the database was restored to a moment at which the first payment of an order was being confirmed. Its guest has paid
// with a second one since: the stay is confirmed with it. Nothing would ask for its money otherwise.
func TestChargeOfALostAttempt(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 500, Times: 1})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	id := s.wantState(t, order.OrderID, "CONFIRMING")
	lost := order
	var err error
	if lost.PaymentKey, err = s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: sandbox.MethodCard}); err != nil {
		t.Fatal(err)
	}
	s.chargeBehindOurBack(t, lost)
	if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order.OrderID, "DONE")
	if n := s.count(t, `select count(*) from payment where reservation_id = $1 and payment_key = $2`, id, lost.PaymentKey); n != 1 {
		t.Error("the stay is not paid with the second payment")
	}
}

// TestAccountForAFailedCardRefund: the provider declines the refund of a late card payment, and an administrator sends it again with an
// account. The provider accepts an account for deposits only, so the account is left out.
func TestAccountForAFailedCardRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	replica := s.Replica(t)
	s.compared(t, replica) // a comparison would take the fault of the look-up
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "EXCEED_MAX_REFUND_DUE"})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	id := s.wantState(t, order.OrderID, "CONFIRMING")
	if reply, err := b.Do(s.ctx, http.MethodDelete, "/reservation", nil); err != nil || reply.OK() != nil { // the guest leaves
		t.Fatal(err, reply.OK())
	}
	s.eventually(t, "the refund is declined", func() bool {
		_ = replica.Settle(s.ctx, booking.ReservationID(id)) // the outcome is in the database
		return s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED'`, id) == 1
	})
	s.retryPart(t, id)
	s.wantPaidBack(t, id)
}

// another has the guest of an order open the payment widget once more. The provider's look-up by the order id returns the newest payment.
func (s *shop) another(t *testing.T, order string, won int) {
	t.Helper()
	if _, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, Amount: won, Method: sandbox.MethodCard}); err != nil {
		t.Fatal(err)
	}
}

// TestComparisonFollowsTheListedPayment: the provider has refused a payment and charges it later, and the guest has opened the widget
// once more. The look-up by the order id returns the newer payment, which holds nothing; the list of transactions names the charged one.
func TestComparisonFollowsTheListedPayment(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "REJECT_CARD_PAYMENT", Times: 1})
	s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	id := s.wantState(t, order.OrderID, "HOLD")
	s.chargeBehindOurBack(t, order)
	s.another(t, order.OrderID, order.Amount)
	if report := s.reconcile(t, s.Replica(t)); len(report.Discrepancies) != 1 || report.Discrepancies[0].Resolution != "settled" {
		t.Errorf("the comparison finds %+v, want the charge, settled", report)
	}
	s.wantState(t, order.OrderID, "DONE")
	if n := s.count(t, `select count(*) from payment where reservation_id = $1 and payment_key = $2`, id, order.PaymentKey); n != 1 {
		t.Error("the stay is not paid with the charged payment")
	}
}
