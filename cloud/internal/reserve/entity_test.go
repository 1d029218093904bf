package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestPaymentKeepsItsEntity: the branch gets another legal entity after purchases. They are confirmed, deposited, looked up and
// refunded with the keys that took them, and new purchases with the new ones. The sandbox reports every foreign key: see audit.
func TestPaymentKeepsItsEntity(t *testing.T) {
	t.Parallel()
	s := open(t)
	card, cardOrder, cardID := s.paid(t, sandbox.MethodCard)
	account, waiting, accountWish := s.bought(t, sandbox.MethodVirtualAccount)
	late, lateOrder, _ := s.order(t, sandbox.MethodCard)
	_, lostOrder, _ := s.bought(t, sandbox.MethodVirtualAccount)
	lostID := s.wantState(t, lostOrder.OrderID, "WAITING_FOR_DEPOSIT")

	s.Assign(t, "", "gangnam")
	s.Sandbox.UseClientKey("")
	_, newOrder, _ := s.paid(t, sandbox.MethodCard)
	for order, want := range map[string]string{cardOrder.OrderID: "widget:seoul", waiting.OrderID: "widget:seoul", newOrder.OrderID: "widget"} {
		if n := s.count(t, `select count(*) from payment p join reservation r on r.id = p.reservation_id where r.order_id = $1 and p.key_set = $2`, order, want); n != 1 {
			t.Errorf("order %s is not of %s", order, want)
		}
	}
	s.answer(t, late, "/payment/confirm", lateOrder, 200, "") // the widget was opened with the key of the earlier entity
	s.deposit(t, waiting.OrderID)
	accountID := s.await(t, waiting.OrderID, "DONE")
	if err := account.Login(s.ctx, accountWish.Mobile); err != nil {
		t.Fatal(err)
	}

	// The database loses an order, and its callback rebuilds it with the keys of its entity.
	s.exec(t, `update reservation set state = 'EXPIRED', order_id = null where id = $1`, lostID)
	s.exec(t, `delete from orders where order_id = $1`, lostOrder.OrderID)
	s.exec(t, `update payment set payment_key = null, closed_at = now(), check_at = 'infinity' where reservation_id = $1`, lostID)
	s.deposit(t, lostOrder.OrderID)
	s.await(t, lostOrder.OrderID, "DONE")

	replica := s.Replica(t)
	if report := s.reconcile(t, replica); len(report.Discrepancies) > 0 {
		t.Errorf("discrepancies %+v", report.Discrepancies)
	}
	if _, complete, err := replica.Settlement(s.ctx, []string{"gangnam"}, s.Clock.Now().UTC().Truncate(24*time.Hour)); err != nil || !complete {
		t.Errorf("settlement: complete %v, %v", complete, err)
	}
	part := map[string]any{"amount": 1000, "reason": "소음"}
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	s.answer(t, admin, fmt.Sprintf("/v2/admin/reservations/%d/refunds", cardID), part, 200, "")
	s.answer(t, card, "/payment/cancel", map[string]any{"id": cardID, "cancelReason": "변심"}, 200, "")
	s.answer(t, account, "/payment/cancel", refundAccount(map[string]any{"id": accountID, "cancelReason": "변심"}), 200, "")
	s.await(t, cardOrder.OrderID, "CANCELED")
	s.await(t, waiting.OrderID, "CANCELED")
	if report := s.reconcile(t, replica); len(report.Discrepancies) > 0 {
		t.Errorf("discrepancies after the refunds %+v", report.Discrepancies)
	}
}

// ended is the number of a merchant whose keys the sandbox rejects.
const ended = 100

// TestSettlementWithoutOneEntity: an entity whose keys the provider does not accept any more leaves the settlement incomplete, and the fees of the
// other entities in it.
func TestSettlementWithoutOneEntity(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.paid(t, sandbox.MethodCard) // of the entity seoul
	s.AddEntity(t, "busan", ended)
	today := s.Clock.Now().UTC().Add(9 * time.Hour).Truncate(24 * time.Hour) // of Korea
	rows, complete, err := s.Replica(t).Settlement(s.ctx, []string{"gangnam"}, today)
	if err != nil || complete || len(rows) != 1 || rows[0].Entity != "seoul" || rows[0].Fee == 0 {
		t.Errorf("settlement %+v: complete %v, %v; want the fees of seoul in an incomplete one", rows, complete, err)
	}
}

// TestReconciliationWithoutOneEntity: an entity whose keys the provider does not accept any more keeps the payments of the others neither from
// being compared nor from being rebuilt. Its own ones are not taken for missing.
func TestReconciliationWithoutOneEntity(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, unread, unreadID := s.paid(t, sandbox.MethodCard)
	_, canceled, _ := s.paid(t, sandbox.MethodCard)
	_, lost, _ := s.bought(t, sandbox.MethodVirtualAccount)
	lostID := s.wantState(t, lost.OrderID, "WAITING_FOR_DEPOSIT")
	s.AddEntity(t, "busan", ended)
	s.exec(t, `update payment set key_set = 'widget:busan' where reservation_id = $1`, unreadID)
	s.lose(t, lostID, lost)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCallback, Kind: sandbox.FaultError, Times: -1})
	if _, err := s.Sandbox.Deposit(lost.OrderID); err != nil {
		t.Fatal(err)
	}
	s.dashboard(t, canceled, 0, nil)

	replica := s.Replica(t)
	_, before, err := postgres.LastReconciliation(s.ctx, s.DB.Pool, reserve.Full)
	if err != nil {
		t.Fatal(err)
	}
	report, err := replica.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan)
	if !errors.Is(err, reserve.ErrBooksUnavailable) {
		t.Errorf("got %v, want ErrBooksUnavailable", err)
	}
	s.await(t, canceled.OrderID, "CANCELED")
	for _, d := range report.Discrepancies {
		if d.OrderID == unread.OrderID {
			t.Errorf("an order of the entity that does not answer is listed: %+v", d)
		}
	}
	if _, completed, err := postgres.LastReconciliation(s.ctx, s.DB.Pool, reserve.Full); err != nil || !completed.Equal(before) {
		t.Errorf("the comparison is complete (%v)", err)
	}

	if err := s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Rebuild(s.ctx, reserve.ReconcileSpan); !errors.Is(err, reserve.ErrBooksUnavailable) {
		t.Errorf("the rebuild: got %v, want ErrBooksUnavailable", err)
	}
	s.await(t, lost.OrderID, "DONE")
	if open, err := postgres.RebuildOpen(s.ctx, s.DB.Pool); err != nil || !open {
		t.Errorf("the rebuild has ended without the orders of one entity (%v)", err)
	}
	s.exec(t, `update payment set key_set = $1 where reservation_id = $2`, widget, unreadID)
	s.exec(t, `delete from legal_entity where code = $1`, "busan")
	if _, err := replica.Rebuild(s.ctx, reserve.ReconcileSpan); err != nil {
		t.Error(err)
	}
}

// TestRetiredEntity: a contract with the provider ends. An administrator gives its branches another entity, ends what is open by hand, and
// retires the entity: the comparison, the rebuild and the settlement are complete again, without its orders.
func TestRetiredEntity(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, kept, _ := s.paid(t, sandbox.MethodCard)
	_, refunded, refundedID := s.paid(t, sandbox.MethodCard)
	_, waiting, _ := s.bought(t, sandbox.MethodVirtualAccount)
	waitingID := s.wantState(t, waiting.OrderID, "WAITING_FOR_DEPOSIT")
	s.AddEntity(t, seoul, ended)
	entities := s.Entities(t)
	retire := func(want error) {
		t.Helper()
		if err := entities.Retire(s.ctx, seoul, true, "admin:hq"); !errors.Is(err, want) {
			t.Fatalf("retired with %v, want %v", err, want)
		}
	}

	retire(company.ErrEntityUsed)
	s.Assign(t, "", "gangnam", "hongdae", "jamsil")
	s.Sandbox.UseClientKey("")
	retire(company.ErrEntityOpen)
	replica := s.Replica(t)
	for _, r := range []struct {
		id     int64
		order  moneytest.Confirm
		status string
		won    int
	}{{waitingID, waiting, "waitingForDeposit", 0}, {refundedID, refunded, "paid", refunded.Amount}} {
		end := reserve.AdminCancelRequest{ID: booking.ReservationID(r.id), Status: r.status, By: hq}
		if err := replica.AdminCancel(s.ctx, end); !errors.Is(err, reserve.ErrPaymentPending) {
			t.Fatalf("%s: canceled with keys that the provider rejects: %v", r.status, err)
		}
		if _, err := replica.SettleOutside(s.ctx, outside(r.id, 0)); !errors.Is(err, reserve.ErrPaymentPending) {
			t.Errorf("%s: settled by hand at once: %v", r.status, err)
		}
		retire(company.ErrEntityOpen)
		s.exec(t, `update refund set created_at = created_at - interval '16 minutes' where reservation_id = $1`, r.id)
		if got, err := replica.SettleOutside(s.ctx, outside(r.id, 0)); err != nil || got.Amount != r.won {
			t.Errorf("%s: settled by hand: %+v, %v; want %d won", r.status, got, err, r.won)
		}
		s.wantState(t, r.order.OrderID, "CANCELED")
	}
	if n := s.count(t, `select count(*) from reconciliation_difference where kind = 'provider-key' and resolved_at is null`); n == 0 {
		t.Error("no discrepancy about the keys")
	}
	retire(nil)
	retire(nil) // again
	if n := s.count(t, `select count(*) from reconciliation_difference where resolved_at is null`); n != 0 {
		t.Errorf("%d discrepancies are open", n)
	}
	if n := s.count(t, `select count(*) from audit where action = 'entity.retire' and target = $1`, seoul); n != 1 {
		t.Errorf("%d entries of the audit log, want 1", n)
	}

	_, order, _ := s.paid(t, sandbox.MethodCard) // of the entity of the settings
	if _, err := replica.Payments.Cancel(s.ctx, toss.Widget, "dashboard", order.PaymentKey, toss.CancelRequest{Reason: "고객 요청"}); err != nil {
		t.Fatal(err)
	}
	report := s.reconcile(t, replica)
	if !slices.Equal(report.Retired, []string{seoul}) {
		t.Errorf("not compared: %v", report.Retired)
	}
	s.await(t, order.OrderID, "CANCELED")
	today := s.Clock.Now().UTC().Add(9 * time.Hour).Truncate(24 * time.Hour) // of Korea
	if rows, complete, err := replica.Settlement(s.ctx, []string{"gangnam"}, today); err != nil || !complete || !slices.ContainsFunc(rows, func(r money.SettlementRow) bool { return r.Entity == seoul && r.Paid > 0 }) {
		t.Errorf("settlement %+v: complete %v, %v", rows, complete, err)
	}
	if err := s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	if rebuilt, err := replica.Rebuild(s.ctx, reserve.ReconcileSpan); err != nil || !slices.Equal(rebuilt.Retired, []string{seoul}) {
		t.Errorf("rebuilt %+v, %v", rebuilt, err)
	}

	if err := entities.Assign(s.ctx, booking.Branch{ID: 1}, seoul, "admin:hq"); !errors.Is(err, company.ErrRetired) {
		t.Errorf("a branch gets a retired entity: %v", err)
	}
	s.wantState(t, kept.OrderID, "DONE")
	if err := entities.Retire(s.ctx, seoul, false, "admin:hq"); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan); !errors.Is(err, reserve.ErrBooksUnavailable) {
		t.Errorf("in use again: got %v, want ErrBooksUnavailable", err)
	}
	s.AddEntity(t, seoul, 2) // the keys of the contract, so that the test can close the account
	s.dashboard(t, waiting, 0, nil)
}

// TestEntityRetiredDuringAPurchase: an entity is retired between the reading of a branch and the registration of an order, which is refused. An
// order that is registered first prevents the retirement.
func TestEntityRetiredDuringAPurchase(t *testing.T) {
	t.Parallel()
	s := open(t)
	order := func(entity string) (moneytest.Confirm, error) {
		_, order, w := s.order(t, sandbox.MethodCard)
		return order, s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			r, err := postgres.LockOrder(ctx, tx, order.OrderID)
			if err != nil {
				return err
			}
			return postgres.RegisterOrder(ctx, tx, r, postgres.NewOrder{
				ID: "again-" + order.OrderID, Contact: booking.Contact{Name: "김", Mobile: w.Mobile, Language: "ko"}, Entity: entity, Amount: order.Amount,
			}, now)
		})
	}
	s.Assign(t, "", "gangnam", "hongdae", "jamsil")
	entities := s.Entities(t)
	if _, err := order(seoul); err != nil {
		t.Fatal(err)
	}
	if err := entities.Retire(s.ctx, seoul, true, "admin:hq"); !errors.Is(err, company.ErrEntityOpen) {
		t.Errorf("retired with %v, want ErrEntityOpen", err)
	}
	s.exec(t, `update reservation set state = 'EXPIRED' where legal_entity = $1`, seoul)
	if err := entities.Retire(s.ctx, seoul, true, "admin:hq"); err != nil {
		t.Fatal(err)
	}
	if _, err := order(seoul); !errors.Is(err, booking.ErrSellerChanged) {
		t.Errorf("ordered with %v, want ErrSellerChanged", err)
	}
}

// TestOrphanIsRefundedWithItsKeys: money of an entity for an order that the database does not have is refunded with that entity's
// keys.
func TestOrphanIsRefundedWithItsKeys(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	const order, won = "ord-of-seoul", 5000
	key, err := s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order, Amount: won, Method: sandbox.MethodCard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Payments.Confirm(s.ctx, widget, "planted", toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: won}); err != nil {
		t.Fatal(err)
	}
	s.reconcile(t, replica)
	id := s.count(t, `select id from reconciliation_difference where kind = 'orphan' and order_id = $1 and key_set = 'widget:seoul'`, order)
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	s.answer(t, admin, fmt.Sprintf("/v2/admin/differences/%d/refund", id), map[string]any{}, 200, "")
}

// TestForgedCallbackOfAnotherEntity: a callback with the secret of another entity's payment, and one without a secret, change
// nothing.
func TestForgedCallbackOfAnotherEntity(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, ofSeoul, _ := s.bought(t, sandbox.MethodVirtualAccount)
	s.Assign(t, "", "gangnam")
	s.Sandbox.UseClientKey("")
	_, ofDefault, _ := s.bought(t, sandbox.MethodVirtualAccount)
	for _, forged := range []struct{ secret, order string }{
		{s.secret(t, ofSeoul.OrderID), ofDefault.OrderID}, {s.secret(t, ofDefault.OrderID), ofSeoul.OrderID},
	} {
		reply, err := s.buyer().Post(s.ctx, "/virtualaccount/webhook", map[string]any{"secret": forged.secret, "status": "DONE", "orderId": forged.order})
		if err != nil || reply.HTTP != http.StatusForbidden {
			t.Errorf("a forged secret: %d %s, %v", reply.HTTP, reply.Raw, err)
		}
		unsigned := map[string]any{"eventType": "PAYMENT_STATUS_CHANGED", "data": map[string]any{"orderId": forged.order, "status": "DONE"}}
		if reply, err = s.buyer().Post(s.ctx, "/virtualaccount/webhook", unsigned); err != nil || reply.HTTP != http.StatusOK {
			t.Errorf("an unsigned callback: %d %s, %v", reply.HTTP, reply.Raw, err)
		}
		s.wantState(t, forged.order, "WAITING_FOR_DEPOSIT")
	}
}
