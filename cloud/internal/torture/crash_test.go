package torture

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// ordered starts the service, with a failpoint if one is named, and prepares a purchase up to its confirmation.
func (r *rig) ordered(failpoint, method string) (*moneytest.Buyer, moneytest.Confirm, error) {
	if err := r.replicas[0].start(failpoint); err != nil {
		return nil, moneytest.Confirm{}, err
	}
	b := r.buyer()
	order, err := b.Order(r.ctx, r.wish(method))
	return b, order, err
}

// crashIn confirms an order, which kills the service, and restarts the service.
func (r *rig) crashIn(b *moneytest.Buyer, order moneytest.Confirm) error {
	// The failpoint of the message is hit just after the response, so the request may fail or succeed.
	_, _ = b.Post(r.ctx, "/payment/confirm", order)
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	return r.replicas[0].start("")
}

// crashThenWait checks that the service completes the purchase without another request.
func crashThenWait(failpoint string) func(*rig) error {
	return func(r *rig) error {
		b, order, err := r.ordered(failpoint, card)
		if err != nil {
			return err
		}
		if err := r.crashIn(b, order); err != nil {
			return err
		}
		return r.await(order.OrderID, "DONE")
	}
}

// crashThenConfirm checks the state after the crash, and that the customer's next confirmation succeeds at once and can be
// repeated.
func crashThenConfirm(failpoint, state string) func(*rig) error {
	return func(r *rig) error {
		b, order, err := r.ordered(failpoint, card)
		if err != nil {
			return err
		}
		if err := r.crashIn(b, order); err != nil {
			return err
		}
		if got, _, err := r.state(order.OrderID); err != nil || got != state {
			return fmt.Errorf("after the crash the order is %s, want %s (%w)", got, state, err)
		}
		return confirmTwice(r, b, order)
	}
}

// crashAtKeyMessage kills the service three times with the message of a purchase claimed and not sent, and then with the message
// sent and not marked. The audit counts what the guest received.
func crashAtKeyMessage(r *rig) error {
	b, order, err := r.ordered("message.claimed", card)
	if err != nil {
		return err
	}
	_, _ = b.Post(r.ctx, "/payment/confirm", order) // may fail: see crashIn
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	for _, failpoint := range []string{"message.claimed", "message.claimed", "message.sent"} {
		if err := r.replicas[0].crashAgain(failpoint); err != nil {
			return err
		}
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	return r.until(func() (ok bool, err error) {
		err = r.pool.QueryRow(r.ctx, `
			select count(*) = 1 and bool_and(m.state = 'SENT') from message m join reservation r on r.id = m.reservation_id where r.order_id = $1`,
			order.OrderID).Scan(&ok)
		return ok, err
	}, "the key message is sent")
}

func confirmTwice(r *rig, b *moneytest.Buyer, order moneytest.Confirm) error {
	first, err := b.Post(r.ctx, "/payment/confirm", order)
	if err := errors.Join(err, first.OK()); err != nil {
		return err
	}
	second, err := b.Post(r.ctx, "/payment/confirm", order)
	if err == nil && second.Raw != first.Raw {
		err = fmt.Errorf("answers differ: %s, %s", first.Raw, second.Raw)
	}
	return err
}

// onProviderLine confirms while rule disturbs the connection to the provider. The response is 200 or "pending".
func onProviderLine(rule faultproxy.Rule) func(*rig) error {
	return func(r *rig) error {
		b, order, err := r.ordered("", card)
		if err != nil {
			return err
		}
		r.provider.Add(rule)
		return r.confirmedOrPending(b, order)
	}
}

// confirmedOrPending confirms an order. The response is 200, or "pending" and the order becomes DONE.
func (r *rig) confirmedOrPending(b *moneytest.Buyer, order moneytest.Confirm) error {
	reply, err := b.Post(r.ctx, "/payment/confirm", order)
	if err != nil {
		return err
	}
	if reply.HTTP != http.StatusOK && reply.HTTP != http.StatusServiceUnavailable {
		return reply.OK()
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	return confirmTwice(r, b, order)
}

// loseHold loses the response of PostgreSQL to a hold, whose cookie the customer does not receive. The next attempt must succeed.
func loseHold(r *rig) error {
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	b, w := r.buyer(), r.wish(card)
	r.database.Add(faultproxy.Rule{After: "insert into reservation (branch_id, room_id, state, source", On: "CUSTOMER"})
	first, err := b.Post(r.ctx, "/reservation", map[string]any{
		"branch": "gangnam", "room": w.Room, "startDateTime": moneytest.Wire(w.Start), "endDateTime": moneytest.Wire(w.Start.Add(time.Hour)),
	})
	if err != nil {
		return err
	}
	if first.HTTP != http.StatusServiceUnavailable {
		return fmt.Errorf("the hold was answered with %d", first.HTTP)
	}
	order, err := b.Order(r.ctx, w)
	if err != nil {
		return err
	}
	return confirmTwice(r, b, order)
}

// loseCommit loses the response to the COMMIT of the attempt, or of its outcome.
func loseCommit(r *rig) error {
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	after := []string{"confirm.sent", "confirm.done"}[r.run%2]
	r.database.Add(faultproxy.Rule{After: after, On: "commit\x00"})
	if _, err := b.Post(r.ctx, "/payment/confirm", order); err != nil {
		return err
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	return confirmTwice(r, b, order)
}

// killWorker kills the service while a worker looks up an attempt that an earlier crash left open.
func killWorker(r *rig) error {
	b, order, err := r.ordered("confirm.begun", card)
	if err != nil {
		return err
	}
	if err := r.fault(sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultTimeout}); err != nil {
		return err
	}
	if err := r.crashIn(b, order); err != nil {
		return err
	}
	err = r.until(func() (bool, error) { return len(r.box.Faults()) == 0, nil }, "a worker asks")
	if err != nil {
		return err
	}
	r.replicas[0].kill()
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	return r.await(order.OrderID, "DONE")
}

// crashInCancel kills the service at a step of a cancellation. The key must be revoked from the first commit on, and the
// slot must become free only after the refund.
func crashInCancel(r *rig) error {
	step := []string{"cancel.beginning", "cancel.begun", "cancel.answered", "cancel.finished"}[r.run%4]
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	b, w := r.buyer(), r.wish(card)
	order, err := b.Buy(r.ctx, w)
	if err != nil {
		return err
	}
	if err := b.Login(r.ctx, w.Mobile); err != nil {
		return err
	}
	_, id, err := r.state(order.OrderID)
	if err != nil {
		return err
	}
	cancel := map[string]any{"id": id, "cancelReason": "변심"}
	if _, err := b.Post(r.ctx, "/payment/cancel", cancel); err == nil {
		return errors.New("the crash was answered")
	}
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	state, _, err := r.state(order.OrderID)
	if want := map[string]string{"cancel.beginning": "DONE", "cancel.finished": "CANCELED"}[step]; err != nil || want != "" && state != want {
		return fmt.Errorf("after the crash the order is %s, want %s (%w)", state, want, err)
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	if step == "cancel.beginning" {
		reply, err := b.Post(r.ctx, "/payment/cancel", cancel)
		if err := errors.Join(err, reply.OK()); err != nil {
			return err
		}
	}
	if err := r.await(order.OrderID, "CANCELED"); err != nil {
		return err
	}
	return r.refundedOnce(order)
}

func (r *rig) refundedOnce(order moneytest.Confirm) error {
	refunds := 0
	for _, p := range r.box.Payments(order.OrderID) {
		refunds += len(p.Cancels)
	}
	if refunds != 1 {
		return fmt.Errorf("refunded %d times", refunds)
	}
	return nil
}

// rollingRestart stops one replica by SIGTERM during 50 confirmations. A client whose request fails retries at the other
// replica.
func rollingRestart(r *rig) error {
	for _, p := range r.replicas {
		if err := p.start(""); err != nil {
			return err
		}
	}
	const purchases = 50
	if err := r.fault(sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultSlow, Delay: 500 * time.Millisecond, Times: purchases}); err != nil {
		return err
	}
	buyers, orders := make([]*moneytest.Buyer, purchases), make([]moneytest.Confirm, purchases)
	for i := range purchases {
		buyers[i] = r.buyer()
		var err error
		if orders[i], err = buyers[i].Order(r.ctx, r.wish(card)); err != nil {
			return err
		}
	}
	errs := make(chan error, purchases)
	for i := range purchases {
		go func() {
			reply, err := buyers[i].Post(r.ctx, "/payment/confirm", orders[i])
			if err == nil && reply.HTTP == http.StatusOK {
				errs <- nil
				return
			}
			second := *buyers[i]
			second.API = "http://" + r.replicas[1].http + "/api"
			errs <- r.confirmedOrPending(&second, orders[i])
		}()
	}
	r.mark()
	time.Sleep(250 * time.Millisecond) // until the confirmations are in progress
	r.replicas[0].signal(syscall.SIGTERM)
	var failed error
	for range purchases {
		failed = errors.Join(failed, <-errs)
	}
	<-r.replicas[0].done
	return errors.Join(failed, r.replicas[0].start(""))
}
