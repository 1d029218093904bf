package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// together runs n calls concurrently.
func together(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func confirmFifty(r *rig) error {
	if err := r.replicas[1].start(""); err != nil {
		return err
	}
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	r.mark()
	answers := make([]string, 50)
	err = together(len(answers), func(i int) error {
		browser := *b
		browser.API = "http://" + r.replicas[i%2].http + "/api"
		reply, err := browser.Post(r.ctx, "/payment/confirm", order)
		answers[i] = reply.Raw
		return errors.Join(err, reply.OK())
	})
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a != answers[0] {
			return fmt.Errorf("answers differ: %s, %s", answers[0], a)
		}
	}
	if calls, captured := moneytest.Confirms(r.box, order.OrderID); calls != 1 || captured != 1 {
		return fmt.Errorf("%d confirmations sent, %d charges", calls, captured)
	}
	return nil
}

// shortHold is the length of a hold that is to expire. The order of a guest must be registered within it, also on a busy machine.
const shortHold = 6 * time.Second

// outliveHold delays the provider beyond the hold's TTL. No other client may get the slot.
func outliveHold(r *rig) error {
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	b, w := r.buyer(), r.wish(card)
	order, err := b.Order(r.ctx, w)
	if err != nil {
		return err
	}
	if err := r.fault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: shortHold + 2*time.Second}); err != nil {
		return err
	}
	confirmed := make(chan error, 1)
	go func() {
		reply, err := b.Post(r.ctx, "/payment/confirm", order)
		confirmed <- errors.Join(err, reply.OK())
	}()
	for end := time.Now().Add(shortHold + time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if err := r.buyer().Hold(r.ctx, w); err == nil {
			return errors.New("a stranger got the slot")
		}
	}
	return <-confirmed
}

func confirmExpired(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	time.Sleep(shortHold + 100*time.Millisecond)
	if err := confirmTwice(r, b, order); err != nil {
		return fmt.Errorf("slot free: %w", err)
	}
	w := r.wish(card)
	if order, err = b.Order(r.ctx, w); err != nil {
		return err
	}
	time.Sleep(shortHold + 100*time.Millisecond)
	if err := r.buyer().Hold(r.ctx, w); err != nil {
		return err
	}
	reply, err := b.Post(r.ctx, "/payment/confirm", order)
	if err != nil || reply.HTTP != http.StatusUnauthorized || reply.ErrorType != "ResourceTimeOutException" {
		return fmt.Errorf("slot taken: %d %s (%w)", reply.HTTP, reply.Raw, err)
	}
	if calls, _ := moneytest.Confirms(r.box, order.OrderID); calls != 0 {
		return fmt.Errorf("the provider was asked %d times", calls)
	}
	return nil
}

// babble has the provider return unreadable or unlisted responses: none of them may be treated as a refusal.
func babble(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	const confirm = "/v1/payments/confirm"
	page := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\r\n<html>Hello!</html>\n"
	half := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"status\":\"DONE\","
	faults := []sandbox.Fault{
		{Status: 500}, {Status: 502, Code: "BAD_GATEWAY"}, {Status: 429, Code: "TOO_MANY_REQUESTS"}, {Status: 409, Code: "IDEMPOTENT_REQUEST_PROCESSING"},
		{Code: "ALREADY_PROCESSED_PAYMENT"}, {Status: 400, Code: "NEVER_HEARD_OF"},
	}
	switch n := r.run % (len(faults) + 2); n {
	case 0:
		r.provider.Add(faultproxy.Rule{On: confirm, Answer: page})
	case 1:
		r.provider.Add(faultproxy.Rule{On: confirm, Answer: half})
	default:
		fault := faults[n-2]
		fault.Target, fault.Kind = sandbox.TargetConfirm, sandbox.FaultError
		if err := r.fault(fault); err != nil {
			return err
		}
	}
	return r.confirmedOrPending(b, order)
}

// anotherAmount has the provider charge a wrong amount: it is refunded, no key is created, and headquarters is notified.
func anotherAmount(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	r.provider.Add(faultproxy.Rule{On: "/v1/payments/confirm", Replace: [2]string{`"totalAmount":30000`, `"totalAmount":29000`}})
	reply, err := b.Post(r.ctx, "/payment/confirm", order)
	if err != nil || reply.HTTP != http.StatusBadRequest {
		return fmt.Errorf("answer %d %s (%w)", reply.HTTP, reply.Raw, err)
	}
	if err := r.await(order.OrderID, "CANCELED"); err != nil {
		return err
	}
	return errors.Join(r.reported(order.OrderID, "amount"), r.refundedOnce(order))
}

// reported returns an error unless a discrepancy is listed for an administrator.
func (r *rig) reported(order, kind string) error {
	return r.until(func() (told bool, err error) {
		err = r.pool.QueryRow(r.ctx, `select exists (select from reconciliation_difference where order_id = $1 and kind = $2)`, order, kind).Scan(&told)
		return told, err
	}, "the headquarters are notified of "+kind)
}

// overtakingCallback delivers the callback about a deposit before the virtual account is stored.
func overtakingCallback(r *rig) error {
	b, order, err := r.ordered("", account)
	if err != nil {
		return err
	}
	err = errors.Join(
		r.fault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit}),
		r.fault(sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: 2}),
	)
	if err != nil {
		return err
	}
	if _, err := b.Post(r.ctx, "/payment/confirm", order); err != nil {
		return err
	}
	delivery, err := r.box.Deposit(order.OrderID)
	if err != nil {
		return err
	}
	if reply, err := delivery.First(r.ctx); err != nil || reply.Status != http.StatusServiceUnavailable {
		return fmt.Errorf("callback: %d %s (%w)", reply.Status, reply.Body, err)
	}
	return r.await(order.OrderID, "DONE")
}

// bought returns a confirmed purchase. It starts the service if necessary.
func (r *rig) bought(method string) (*moneytest.Buyer, moneytest.Confirm, moneytest.Wish, error) {
	if r.replicas[0].command == nil {
		if err := r.replicas[0].start(""); err != nil {
			return nil, moneytest.Confirm{}, moneytest.Wish{}, err
		}
	}
	b, w := r.buyer(), r.wish(method)
	order, err := b.Order(r.ctx, w)
	if err != nil {
		return b, order, w, err
	}
	// On a slow machine the provider may take longer than a request's timeout.
	err = r.until(func() (bool, error) {
		reply, err := b.Post(r.ctx, "/payment/confirm", order)
		return reply.HTTP == http.StatusOK, errors.Join(err, reply.OK())
	}, "bought")
	return b, order, w, err
}

// deposit pays into an order's account.
func (r *rig) deposit(order string) error {
	delivery, err := r.box.Deposit(order)
	if err != nil {
		return err
	}
	reply, err := delivery.First(r.ctx)
	if err == nil && reply.Status != http.StatusOK {
		err = fmt.Errorf("callback: %d %s", reply.Status, reply.Body)
	}
	return err
}

func mixedCallbacks(r *rig) error {
	b, order, _, err := r.bought(account)
	if err != nil {
		return err
	}
	if err := r.deposit(order.OrderID); err != nil {
		return err
	}
	r.mark()
	secret := *r.box.Payments(order.OrderID)[0].Secret
	// Repeated deliveries may be outdated, so only the provider's answer counts (see reserve.Service.ReceiveCallback).
	late := *b
	late.Header = http.Header{toss.RetriedCountHeader: {"1"}}
	err = together(20, func(i int) error {
		reply, err := late.Post(r.ctx, "/virtualaccount/webhook", map[string]any{
			"createdAt": time.Now().Format(time.RFC3339Nano), "secret": secret, "status": []string{"DONE", "CANCELED"}[i%2],
			"transactionKey": fmt.Sprint("TX", i), "orderId": order.OrderID,
		})
		return errors.Join(err, reply.OK())
	})
	return errors.Join(err, r.await(order.OrderID, "DONE"))
}

// outage is the length of an outage.
func (r *rig) outage() time.Duration { return time.Minute / time.Duration(r.haste) }

// databaseAway disconnects PostgreSQL while the provider is charging.
func databaseAway(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	if err := r.fault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: 400 * time.Millisecond}); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		_, err := b.Post(r.ctx, "/payment/confirm", order)
		answered <- err
	}()
	err = r.until(func() (bool, error) { return len(r.box.Faults()) == 0, nil }, "the provider is asked")
	if err != nil {
		return err
	}
	r.database.Cut()
	time.Sleep(r.outage())
	r.database.Restore()
	r.mark()
	if err := <-answered; err != nil {
		return err
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	return confirmTwice(r, b, order)
}

// providerAway disconnects the provider: confirmations return "pending" within the request timeout, and are settled after
// the outage.
func providerAway(r *rig) error {
	b, first, err := r.ordered("", card)
	if err != nil {
		return err
	}
	orders := []moneytest.Confirm{first}
	for range 4 {
		order, err := r.buyer().Order(r.ctx, r.wish(card))
		if err != nil {
			return err
		}
		orders = append(orders, order)
	}
	r.provider.Cut()
	err = together(len(orders), func(i int) error {
		reply, err := b.Post(r.ctx, "/payment/confirm", orders[i])
		if err != nil || reply.HTTP != http.StatusServiceUnavailable {
			return fmt.Errorf("answer %d %s (%w)", reply.HTTP, reply.Raw, err)
		}
		return nil
	})
	time.Sleep(r.outage())
	r.provider.Restore()
	r.mark()
	for _, order := range orders {
		err = errors.Join(err, r.await(order.OrderID, "DONE"))
	}
	return err
}

// cancelTogether cancels concurrently as the customer, as an administrator at the other replica, and in the background.
func cancelTogether(r *rig) error {
	if err := r.replicas[1].start(""); err != nil {
		return err
	}
	b, order, w, err := r.bought(card)
	if err != nil {
		return err
	}
	admin := r.at(r.replicas[1])
	if err := errors.Join(b.Login(r.ctx, w.Mobile), admin.LoginAdmin(r.ctx, "hq", "hq-demo")); err != nil {
		return err
	}
	_, id, err := r.state(order.OrderID)
	if err != nil {
		return err
	}
	r.mark()
	err = together(4, func(i int) error {
		if i%2 == 0 {
			reply, err := b.Post(r.ctx, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심"})
			return errors.Join(err, reply.OK())
		}
		reply, err := admin.Do(r.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil)
		if err == nil && reply.HTTP != http.StatusOK && reply.ErrorType != "IllegalArguemntError" { // already cancelled
			err = reply.OK()
		}
		return err
	})
	return errors.Join(err, r.await(order.OrderID, "CANCELED"), r.refundedOnce(order))
}

func refundAccount(body map[string]any) map[string]any {
	body["refundReceiveAccountBank"], body["refundReceiveAccountNumber"], body["refundReceiveAccountHolderName"] = "20", "1002123456789", "홍길동"
	return body
}

// failedRefund fails a refund: it is listed, an administrator sends it to another account, and it arrives once.
func failedRefund(r *rig) error {
	b, order, w, err := r.bought(account)
	if err != nil {
		return err
	}
	err = errors.Join(r.deposit(order.OrderID), r.await(order.OrderID, "DONE"), b.Login(r.ctx, w.Mobile), r.fault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}))
	if err != nil {
		return err
	}
	_, id, err := r.state(order.OrderID)
	if err != nil {
		return err
	}
	reply, err := b.Post(r.ctx, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}))
	if err := errors.Join(err, reply.OK(), r.reported(order.OrderID, "refund")); err != nil {
		return err
	}
	admin := r.buyer()
	if err := admin.LoginAdmin(r.ctx, "hq", "hq-demo"); err != nil {
		return err
	}
	reply, err = admin.Post(r.ctx, fmt.Sprintf("/v2/admin/reservations/%d/refund", id), refundAccount(map[string]any{}))
	if err := errors.Join(err, reply.OK()); err != nil {
		return err
	}
	return r.until(func() (done bool, err error) {
		err = r.pool.QueryRow(r.ctx, `select state = 'COMPLETED' from refund where reservation_id = $1`, id).Scan(&done)
		return done, err
	}, "the refund arrives")
}

// depositAtDeadline pays within half a second before or after the deadline.
func depositAtDeadline(r *rig) error {
	_, order, _, err := r.bought(account)
	if err != nil {
		return err
	}
	var due time.Time
	if err := r.pool.QueryRow(r.ctx, `select expires_at from reservation where order_id = $1`, order.OrderID).Scan(&due); err != nil {
		return err
	}
	offset := time.Duration(r.run%21-10) * 50 * time.Millisecond
	time.Sleep(time.Until(due.Add(offset)))
	_, err = r.box.Deposit(order.OrderID)
	switch {
	case err == nil:
		return r.await(order.OrderID, "DONE")
	case errors.Is(err, sandbox.ErrBounced):
		return r.await(order.OrderID, "CANCELED")
	}
	return err
}

// lateDeposit pays after the slot was resold: the refund is listed until an administrator enters an account, and the new
// guest is not affected.
func lateDeposit(r *rig) error {
	_, order, w, err := r.bought(account)
	if err != nil {
		return err
	}
	const forget = `update reservation set state = 'CANCELED', canceled_at = now() where order_id = $1` // not possible through the API
	if _, err := r.pool.Exec(r.ctx, forget, order.OrderID); err != nil {
		return err
	}
	next := r.buyer()
	w.Method = card
	resold, err := next.Buy(r.ctx, w)
	if err != nil {
		return err
	}
	if err := errors.Join(r.deposit(order.OrderID), r.reported(order.OrderID, "late-deposit")); err != nil {
		return err
	}
	state, _, err := r.state(order.OrderID)
	if err != nil || state != "CANCELED" {
		return fmt.Errorf("the late order is %s (%w)", state, err)
	}
	return r.await(resold.OrderID, "DONE")
}

func reversal(r *rig) error {
	_, order, _, err := r.bought(account)
	if err != nil {
		return err
	}
	if err := errors.Join(r.deposit(order.OrderID), r.await(order.OrderID, "DONE")); err != nil {
		return err
	}
	r.mark()
	if _, err := r.box.Reverse(order.OrderID); err != nil {
		return err
	}
	return errors.Join(r.await(order.OrderID, "WAITING_FOR_DEPOSIT"), r.reported(order.OrderID, "reversal"))
}

// overdueWithoutProvider lets a deposit become overdue during an outage of the provider: the slot stays occupied until the
// provider has closed the account.
func overdueWithoutProvider(r *rig) error {
	_, order, w, err := r.bought(account)
	if err != nil {
		return err
	}
	r.provider.Cut()
	time.Sleep(time.Second + r.outage())
	if err := r.buyer().Hold(r.ctx, w); err == nil {
		return errors.New("the slot was sold while its account may take money")
	}
	r.provider.Restore()
	r.mark()
	return r.await(order.OrderID, "CANCELED")
}

// readOnly makes PostgreSQL read-only: no charge is requested that cannot be recorded first.
func readOnly(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	mode := func(on string) error {
		name, err := json.Marshal(r.name) // a quoted identifier of letters and digits
		if err != nil {
			return err
		}
		_, err = r.pool.Exec(r.ctx, "alter database "+string(name)+" set default_transaction_read_only = "+on)
		if err == nil {
			r.database.Cut() // existing connections keep their old setting
			r.database.Restore()
		}
		return err
	}
	if err := mode("on"); err != nil {
		return err
	}
	reply, err := b.Post(r.ctx, "/payment/confirm", order)
	if err != nil || reply.HTTP < 500 {
		return fmt.Errorf("answer %d %s (%w)", reply.HTTP, reply.Raw, err)
	}
	if calls, captured := moneytest.Confirms(r.box, order.OrderID); calls+captured != 0 {
		return fmt.Errorf("%d confirmations sent, %d charges, and no row", calls, captured)
	}
	time.Sleep(r.outage())
	if err := mode("off"); err != nil {
		return err
	}
	r.mark()
	// Each connection that was cut may fail one request.
	err = r.until(func() (bool, error) {
		reply, err := b.Post(r.ctx, "/payment/confirm", order)
		return reply.HTTP == http.StatusOK, err
	}, "confirmed")
	return errors.Join(err, confirmTwice(r, b, order))
}
