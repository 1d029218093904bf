package reserve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestDepositAgainstSweep pays deposits before, at and after their deadlines, while two processes close the accounts: either
// the reservation is confirmed or the deposit is rejected, and never both.
func TestDepositAgainstSweep(t *testing.T) {
	t.Parallel()
	const accounts, certain = 120, 10 // the first deposits precede all deadlines, the last ones find a closed account
	s := open(t)
	issued := s.issue(t, accounts)
	errs := make([]error, accounts)
	deposit := func(i int) { _, errs[i] = s.Sandbox.Deposit(issued[i].order) }
	for i := range certain {
		deposit(i)
	}
	s.raceDeadlines(t, issued, certain, deposit)
	for i := accounts - certain; i < accounts; i++ {
		s.await(t, issued[i].order, "CANCELED")
		deposit(i)
	}
	var deposited, bounced int
	for i, err := range errs {
		switch {
		case err == nil && i < accounts-certain:
			deposited++
		case errors.Is(err, sandbox.ErrBounced) && i >= certain:
			bounced++
		default:
			t.Errorf("deposit %d: %v", i, err)
		}
	}
	t.Logf("%d deposited, %d bounced", deposited, bounced)
	s.audit(t)
	if n := s.count(t, `select count(*) from reservation where state = 'DONE'`); n != deposited {
		t.Errorf("%d deposits, %d reservations", deposited, n)
	}
	if n := s.count(t, `select count(*) from reservation where state = 'CANCELED'`); n != bounced {
		t.Errorf("%d bounced, %d cancelled", bounced, n)
	}
}

// virtualAccount is a virtual account that waits for its deposit.
type virtualAccount struct {
	id    booking.ReservationID
	order string
	due   time.Time
}

// issue issues virtual accounts and returns them by deadline.
func (s *shop) issue(t *testing.T, n int) (issued []virtualAccount) {
	t.Helper()
	var begun atomic.Int64
	err := together(10, func(int) error {
		for begun.Add(1) <= int64(n) {
			if _, err := s.buyer().Buy(s.ctx, s.wish(sandbox.MethodVirtualAccount)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.DB.Pool.Query(s.ctx, `select id, order_id, expires_at from reservation where state = 'WAITING_FOR_DEPOSIT' order by expires_at`)
	if err != nil {
		t.Fatal(err)
	}
	issued, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a virtualAccount, err error) {
		return a, row.Scan(&a.id, &a.order, &a.due)
	})
	if err != nil || len(issued) != n {
		t.Fatalf("got %d accounts, %v; want %d", len(issued), err, n)
	}
	return issued
}

// raceDeadlines advances the clock from deadline to deadline. At each one, the service's sweep and a second process close the
// account. Its deposit, unless it is one of the first or last few, comes up to two deadlines earlier or three later.
func (s *shop) raceDeadlines(t *testing.T, issued []virtualAccount, few int, deposit func(i int)) {
	t.Helper()
	replica, slots := s.Replica(t), make(chan struct{}, 8)
	due := make([]chan struct{}, len(issued))
	for i := range due {
		due[i] = make(chan struct{})
	}
	var running sync.WaitGroup
	for i := few; i < len(issued)-few; i++ {
		running.Go(func() {
			<-due[i-2+i%6]
			deposit(i)
		})
	}
	for i, a := range issued {
		slots <- struct{}{}
		s.Clock.Advance(max(0, a.due.Sub(s.Clock.Now())))
		close(due[i])
		running.Go(func() {
			defer func() { <-slots }()
			_ = replica.Settle(s.ctx, a.id) // the audit checks the outcome
		})
	}
	running.Wait()
}

// TestOverdueClosesAccountFirst: the slot of an overdue account becomes free only after the provider has closed the account.
func TestOverdueClosesAccountFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: 2})
	s.Clock.Advance(11 * time.Minute)
	s.await(t, order.OrderID, "CANCELING")
	if err := s.buyer().Hold(s.ctx, w); err == nil {
		t.Error("the slot was sold while money might still arrive")
	}
	s.await(t, order.OrderID, "CANCELED")
	if _, err := s.Sandbox.Deposit(order.OrderID); !errors.Is(err, sandbox.ErrBounced) {
		t.Errorf("the closed account took a deposit: %v", err)
	}
	if err := s.buyer().Hold(s.ctx, w); err != nil {
		t.Errorf("the slot is not free: %v", err)
	}
}

// TestOverdueWithoutProvider: during an outage of the provider of twenty minutes the slot stays occupied, and after fifteen
// minutes a discrepancy is listed.
func TestOverdueWithoutProvider(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.Clock.Advance(11 * time.Minute)
	s.await(t, order.OrderID, "CANCELING")
	s.Clock.Advance(16 * time.Minute)
	listed := func(open bool) bool {
		return s.count(t, `select count(*) from reconciliation_difference
			where order_id = $1 and kind = 'stuck' and (resolved_at is null) = $2`, order.OrderID, open) == 1
	}
	s.eventually(t, "the discrepancy is listed", func() bool { return listed(true) })
	if err := s.buyer().Hold(s.ctx, w); err == nil {
		t.Error("the slot was sold while the account may still take money")
	}
	s.Sandbox.ClearFaults()
	s.await(t, order.OrderID, "CANCELED")
	s.eventually(t, "the discrepancy is closed", func() bool { return listed(false) })
}

// TestLostCallback loses the provider's callback: polling finds the deposit.
func TestLostCallback(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	delivery, err := s.Sandbox.Deposit(order.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := delivery.First(s.ctx); err != nil || reply.Status != 0 {
		t.Fatalf("callback: got %+v, %v, want it lost", reply, err)
	}
	s.await(t, order.OrderID, "DONE")
}

// TestReversal: if the bank reverses a deposit, the key is revoked and the reservation waits again. The next deposit creates
// a new key.
func TestReversal(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
	s.reverse(t, order.OrderID)
	s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	if s.key(t, id) != "" {
		t.Error("the key lives without its money")
	}
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'reversal'`, order.OrderID); n != 1 {
		t.Error("no discrepancy reports the reversal")
	}
	s.deposit(t, order.OrderID)
	s.wantState(t, order.OrderID, "DONE")
}

// TestReversedExtension: if the bank reverses the deposit of an extension, the stay before it keeps its key, and the message says
// so. The next deposit extends the stay again.
func TestReversedExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	extended := g.end().Add(10 * time.Minute)
	order := g.hold(t, s, extended)
	s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
	s.deposit(t, order.OrderID)
	g.wantEnd(t, s, extended)
	s.reverse(t, order.OrderID)
	s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	g.wantEnd(t, s, g.end())
	if got := s.key(t, g.id); got != g.key {
		t.Errorf("the stay has the key %q, want %q", got, g.key)
	}
	s.deposit(t, order.OrderID)
	g.wantEnd(t, s, extended)
	s.awaitMessages(t, g.wish.Mobile, "reservation-confirmed", "virtual-account-issued", "stay-extended", "extension-reversed", "stay-extended")
}

// TestCallbackAheadOfAnswerBlocksTheDoor: a callback with the right secret that the provider's answer contradicts blocks the
// key for a minute and changes nothing else.
func TestCallbackAheadOfAnswerBlocksTheDoor(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"WAITING_FOR_DEPOSIT", "CANCELED"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, order, id := s.paid(t, sandbox.MethodVirtualAccount)
			key := s.key(t, id)
			s.callback(t, order.OrderID, status, s.Clock.Now().Add(-time.Hour), "old")
			if got := s.key(t, id); got != key {
				t.Errorf("an old callback blocks the key")
			}
			s.callback(t, order.OrderID, status, s.Clock.Now(), "new")
			if got := s.key(t, id); got != "" {
				t.Errorf("key %s opens doors while the callback is checked", got)
			}
			s.wantState(t, order.OrderID, "DONE")
			// The first look-up comes while the key is still blocked, so the sweep has to find it for another one.
			s.exec(t, `delete from river_job where kind = $1`, "settle")
			s.eventually(t, "the key works again", func() bool { return s.key(t, id) == key })
			if l := s.Sandbox.Ledger(); l.Refunded != 0 {
				t.Errorf("refunded %d won", l.Refunded)
			}
		})
	}
}

// TestCallbackAheadOfAnswerBlocksTheExtension: an extension has no key of its own, so such a callback takes its time, and that
// of the extension after it, from the stay for a minute. The key and the PIN open doors until the end of the stay before it.
func TestCallbackAheadOfAnswerBlocksTheExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	end, extended := g.end(), g.end().Add(20*time.Minute)
	order := g.hold(t, s, end.Add(10*time.Minute))
	s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
	s.deposit(t, order.OrderID)
	s.await(t, order.OrderID, "DONE")
	g.extend(t, s, extended)
	s.callback(t, order.OrderID, "CANCELED", s.Clock.Now(), "new")
	g.wantEnd(t, s, end)
	s.wantPassEnd(t, g.id, end)
	s.wantState(t, order.OrderID, "DONE")
	s.eventually(t, "the extension counts again", func() bool {
		return s.count(t, `select count(*) from reservation where id = $1 and stay_end = end_at + interval '20 minutes'`, g.id) == 1
	})
	g.wantEnd(t, s, extended)
	s.wantPassEnd(t, g.id, extended)
}

// TestExtensionAfterDoubtedOne: a second extension that is paid while the first one is blocked is confirmed, and counts as soon as
// the first one does. If the first one is lost instead, both are.
func TestExtensionAfterDoubtedOne(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost %t", lost), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			first := g.hold(t, s, g.end().Add(10*time.Minute))
			s.pay(t, g.Buyer, first, sandbox.MethodVirtualAccount)
			s.deposit(t, first.OrderID)
			s.await(t, first.OrderID, "DONE")
			second := g.hold(t, s, g.end().Add(20*time.Minute))
			s.callback(t, first.OrderID, "CANCELED", s.Clock.Now(), "new")
			g.wantEnd(t, s, g.end())
			s.pay(t, g.Buyer, second, sandbox.MethodCard)
			s.wantState(t, second.OrderID, "DONE")
			g.wantEnd(t, s, g.end())
			if lost {
				s.reverse(t, first.OrderID)
				s.wantState(t, first.OrderID, "WAITING_FOR_DEPOSIT")
				s.Clock.Advance(10 * time.Minute) // no other deposit arrives in time
				s.await(t, second.OrderID, "CANCELED")
				g.wantEnd(t, s, g.end())
				return
			}
			s.eventually(t, "both extensions count", func() bool {
				return s.count(t, `select count(*) from reservation where id = $1 and stay_end = end_at + interval '20 minutes'`, g.id) == 1
			})
			s.wantState(t, second.OrderID, "DONE")
		})
	}
}

// wantPassEnd checks that the PIN of a stay opens doors until two minutes before end.
func (s *shop) wantPassEnd(t *testing.T, id int64, end time.Time) {
	t.Helper()
	n := s.count(t, `select count(*) from pass where reservation_id = $1 and ended_at is null and not_after = $2`, id, end.Add(-2*time.Minute))
	if n != 1 {
		t.Errorf("the pass does not end with a stay until %s", end)
	}
}

// callback sends a deposit callback with the right secret.
func (s *shop) callback(t *testing.T, order, status string, created time.Time, transaction string) {
	t.Helper()
	body := map[string]any{
		"createdAt": created.In(time.FixedZone("KST", 9*60*60)).Format("2006-01-02T15:04:05.000000"), "secret": s.secret(t, order),
		"status": status, "transactionKey": transaction, "orderId": order,
	}
	s.answer(t, s.buyer(), "/virtualaccount/webhook", body, 200, "")
	s.swept(t)
}

// TestLateDeposit: a deposit for a reservation that has ended creates no key, and its refund is listed until an
// administrator enters an account.
func TestLateDeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	s.exec(t, `update reservation set state = 'CANCELED', canceled_at = now() where order_id = $1`, order.OrderID) // not possible through the API
	if err := s.buyer().Hold(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.deposit(t, order.OrderID)
	id := s.wantState(t, order.OrderID, "CANCELED")
	s.awaitRefund(t, id, "FAILED")
	if n := s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and kind = 'late-deposit'`, order.OrderID); n != 1 {
		t.Error("the headquarters are not notified")
	}
	if n := s.count(t, `select count(*) from alert where kind = 'refund-failed' and ended_at is null`); n != 1 {
		t.Errorf("got %d alerts about the refund, want 1", n)
	}
	err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{
		ID: booking.ReservationID(id), Account: &guestAccount, By: hq,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
}

// TestLateCharge: a card charge for a reservation that has ended is refunded automatically.
func TestLateCharge(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, id := s.paid(t, sandbox.MethodCard)
	s.exec(t, `update reservation set state = 'CANCELED', doorlock_key = null, canceled_at = now() where id = $1`, id)
	if err := s.Replica(t).Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.wantState(t, order.OrderID, "CANCELED")
	if n := s.count(t, `select count(*) from alert`); n != 0 {
		t.Errorf("%d alerts about money that was refunded without help", n)
	}
}

// TestAdministratorsAccount: an administrator's account is issued once although the response is lost, then paid and
// cancelled.
func TestAdministratorsAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin, w := s.buyer(), s.wish(sandbox.MethodVirtualAccount)
	if err := admin.LoginAdmin(s.ctx, "gangnam-manager", "gangnam-demo"); err != nil {
		t.Fatal(err)
	}
	s.answer(t, admin, "/admin/reservation", map[string]any{
		"branch": "gangnam", "room": w.Room, "startDateTime": moneytest.Wire(w.Start), "endDateTime": moneytest.Wire(w.Start.Add(time.Hour)),
	}, 200, "")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetVirtualAccounts, Kind: sandbox.FaultDropAfterCommit})
	issued := s.answer(t, admin, "/admin/v2/virtual-accounts", map[string]any{
		"amount": 12000, "orderName": "2번 룸", "name": "홍길동", "mobileNum": w.Mobile, "bankCode": "20",
	}, 200, "")
	var data struct{ DataType string }
	if err := json.Unmarshal(issued.Data, &data); err != nil || data.DataType != "virtualaccount" {
		t.Errorf("data %s", issued.Data)
	}
	payments := s.Sandbox.Payments("")
	if len(payments) != 1 {
		t.Fatalf("%d accounts", len(payments))
	}
	order := payments[0].OrderID
	s.deposit(t, order)
	id := s.wantState(t, order, "DONE")
	reply, err := admin.Do(s.ctx, "DELETE", fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), refundAccount(map[string]any{}))
	if err := errors.Join(err, reply.OK()); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, order, "CANCELED")
}

// TestAccountRefused: if the provider refuses to issue an account, the administrator's hold is unchanged.
func TestAccountRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin, w := s.buyer(), s.wish(sandbox.MethodVirtualAccount)
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	s.answer(t, admin, "/admin/reservation", map[string]any{
		"branch": "gangnam", "room": w.Room, "startDateTime": moneytest.Wire(w.Start), "endDateTime": moneytest.Wire(w.Start.Add(time.Hour)),
	}, 200, "")
	issue := map[string]any{"amount": 100, "orderName": "1번 룸", "name": "홍길동", "mobileNum": w.Mobile, "bankCode": "20"}
	s.answer(t, admin, "/admin/v2/virtual-accounts", issue, 400, "PaymentFailedException")
	issue["amount"] = 12000
	s.answer(t, admin, "/admin/v2/virtual-accounts", issue, 200, "")
}

// TestCancelWaitingAccount: a customer closes an unpaid account without a refund account. If a deposit has arrived
// meanwhile, a refund account is required.
func TestCancelWaitingAccount(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	s.wantState(t, order.OrderID, "CANCELED")

	b, order, w = s.bought(t, sandbox.MethodVirtualAccount)
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	id = s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	// A callback would take part in the race: it may send the request first, and the customer's answer is then pending.
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultSlow, Delay: time.Second})
	cancelled := make(chan moneytest.Reply, 1)
	go func() {
		reply, _ := b.Post(s.ctx, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"})
		cancelled <- reply
	}()
	s.awaitAtOnce(t, order.OrderID, "CANCELING")
	if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
		t.Fatal(err)
	}
	if reply := <-cancelled; reply.HTTP != 400 || reply.ErrorType != "IllegalArguemntError" {
		t.Errorf("answer %d %s", reply.HTTP, reply.Raw)
	}
	s.wantState(t, order.OrderID, "DONE")
}

// TestCancelAfterAnotherReplicaSettledTheRefusal: a deposit arrives while its account is being closed, and another replica
// applies the provider's refusal first. The administrator who cancelled receives the same error. The sandbox sends no
// callback, because it would also take part in the race.
func TestCancelAfterAnotherReplicaSettledTheRefusal(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodVirtualAccount)
	id := booking.ReservationID(s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT"))
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	replica, other := s.Replica(t), s.Replica(t)
	replica.Payments = &outrun{Payments: replica.Payments, first: func() {
		if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
			t.Error(err)
		}
	}, then: func() {
		if err := other.Settle(s.ctx, id); !errors.Is(err, reserve.ErrAccountRequired) {
			t.Errorf("the other replica: got %v, want ErrAccountRequired", err)
		}
	}}
	err := replica.AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: id, Status: "waitingForDeposit", By: hq})
	if !errors.Is(err, reserve.ErrAccountRequired) {
		t.Errorf("the cancelling replica: got %v, want ErrAccountRequired", err)
	}
	s.wantState(t, order.OrderID, "DONE")
}

// outrun calls one function before a cancellation reaches the provider, and another before its response is returned.
type outrun struct {
	reserve.Payments
	first, then func()
}

func (o *outrun) Cancel(ctx context.Context, keys toss.KeySet, key, paymentKey string, r toss.CancelRequest) (toss.Payment, error) {
	o.first()
	payment, err := o.Payments.Cancel(ctx, keys, key, paymentKey, r)
	o.then()
	return payment, err
}

// TestRefundRefusedAtAnotherReplica: another replica applies the refusal of a late deposit's refund first. The administrator who sent
// it receives the refusal. The sandbox sends no callback, because it would also take part in the race.
func TestRefundRefusedAtAnotherReplica(t *testing.T) {
	t.Parallel()
	s := open(t)
	order, id := s.endedUnpaid(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	replica, other := s.Replica(t), s.Replica(t)
	if _, err := s.Sandbox.Deposit(order); err != nil {
		t.Fatal(err)
	}
	if err := replica.Settle(s.ctx, booking.ReservationID(id)); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "FAILED")
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "REFUND_REJECTED", Times: -1})
	var refused *reserve.PaymentRefused
	replica.Payments = &outrun{Payments: replica.Payments, first: func() {}, then: func() {
		if err := other.Settle(s.ctx, booking.ReservationID(id)); !errors.As(err, &refused) {
			t.Errorf("the other replica: got %v, want the refusal", err)
		}
	}}
	err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq})
	if !errors.As(err, &refused) || refused.Code != "REFUND_REJECTED" {
		t.Errorf("got %v, want the refusal", err)
	}
	s.awaitRefund(t, id, "FAILED")
}

// TestNoDifferenceWhileARefundWaits: a deposit that waits for the guest's account is held by the provider, as the books say.
func TestNoDifferenceWhileARefundWaits(t *testing.T) {
	t.Parallel()
	s := open(t)
	order, id := s.lateDeposit(t)
	s.reconcile(t, s.Replica(t))
	if n := s.open(t, order, "balance"); n != 0 {
		t.Errorf("%d differences of the balance beside the refund", n)
	}
	if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}); err != nil {
		t.Fatal(err)
	}
	s.awaitRefund(t, id, "COMPLETED")
	s.nothingHeld(t)
}

// endedUnpaid returns a reservation that ended before its deposit arrived.
func (s *shop) endedUnpaid(t *testing.T) (order string, id int64) {
	t.Helper()
	_, bought, _ := s.bought(t, sandbox.MethodVirtualAccount)
	order = bought.OrderID
	s.exec(t, `update reservation set state = 'CANCELED', canceled_at = now() where order_id = $1`, order) // not possible through the API
	return order, s.wantState(t, order, "CANCELED")
}

// lateDeposit returns a reservation whose deposit arrived after its end. Its refund waits for an account.
func (s *shop) lateDeposit(t *testing.T) (order string, id int64) {
	t.Helper()
	order, id = s.endedUnpaid(t)
	s.deposit(t, order)
	s.awaitRefund(t, id, "FAILED")
	return order, id
}

// TestCallbackAfterErasure: the provider repeats a callback about an account that was closed, after its guest was erased. The name and the receipt that
// it reports are not stored again: no later erasure would find them.
func TestCallbackAfterErasure(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.bought(t, sandbox.MethodVirtualAccount)
	id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"}, 200, "")
	s.await(t, order.OrderID, "CANCELED")
	if n, _, err := postgres.Erase(s.ctx, s.DB.Pool, w.Mobile, []byte("empty"), s.Clock.Now()); err != nil || n != 1 {
		t.Fatalf("erased %d reservations, want 1 (%v)", n, err)
	}
	before := s.count(t, `select answers from payment where reservation_id = $1`, id)
	s.callback(t, order.OrderID, "CANCELED", s.Clock.Now(), "repeated")
	s.eventually(t, "the callback is applied", func() bool { return s.count(t, `select answers from payment where reservation_id = $1`, id) > before })
	if n := s.count(t, `select count(*) from payment where reservation_id = $1 and coalesce(account_holder, receipt_url) is not null`, id); n != 0 {
		t.Error("the payment names the guest again")
	}
}
