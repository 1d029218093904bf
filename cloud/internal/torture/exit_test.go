package torture

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// leaveAndCrash captures a payment whose response is lost. The guest leaves meanwhile, and the service is killed at a step of
// the refund that follows. The money is refunded once.
func leaveAndCrash(r *rig) error {
	step := []string{"settle.answered", "settle.applied", "cancel.begun", "cancel.answered"}[r.run%4]
	b, order, err := r.ordered("", card)
	if err != nil {
		return err
	}
	for _, f := range []sandbox.Fault{
		{Target: sandbox.TargetConfirm, Kind: sandbox.FaultDropAfterCommit},
		{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1},
	} {
		if err := r.fault(f); err != nil {
			return err
		}
	}
	if reply, err := b.Post(r.ctx, "/payment/confirm", order); err != nil || reply.HTTP != http.StatusServiceUnavailable {
		return fmt.Errorf("confirmed without an answer: %d (%w)", reply.HTTP, err)
	}
	reply, err := b.Do(r.ctx, http.MethodDelete, "/reservation", nil)
	if err := errors.Join(err, reply.OK()); err != nil {
		return err
	}
	r.replicas[0].kill()
	r.box.ClearFaults()
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	if err := r.until(func() (bool, error) { return r.refundedOnce(order) == nil, nil }, "the money is refunded"); err != nil {
		return err
	}
	return r.await(order.OrderID, "CANCELED")
}

// crashInOutside kills the service while an administrator records a refund outside the provider, before or after the commit.
// It is recorded completely or not at all, and then once.
func crashInOutside(r *rig) error {
	step := []string{"outside.beginning", "outside.finished"}[r.run%2]
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	b, w := r.buyer(), r.wish(card)
	order, err := b.Buy(r.ctx, w)
	if err != nil {
		return err
	}
	_, id, err := r.state(order.OrderID)
	if err != nil {
		return err
	}
	record := func() error {
		admin := r.buyer()
		if err := admin.LoginAdmin(r.ctx, "hq", "hq-demo"); err != nil {
			return err
		}
		reply, err := admin.Post(r.ctx, fmt.Sprintf("/v2/admin/reservations/%d/refunds", id), map[string]any{
			"amount": order.Amount, "reason": "결제사 기간 만료", "settledOutside": map[string]string{"how": "계좌 이체", "reference": "1"},
		})
		return errors.Join(err, reply.OK())
	}
	if err := record(); err == nil {
		return errors.New("the crash was answered")
	}
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	if step == "outside.beginning" {
		if err := record(); err != nil {
			return err
		}
	}
	if state, _, err := r.state(order.OrderID); err != nil || state != "CANCELED" {
		return fmt.Errorf("the order is %s, want CANCELED (%w)", state, err)
	}
	var entries int
	err = r.pool.QueryRow(r.ctx, `select count(*) from money_entry where reservation_id = $1 and kind = 'outside'`, id).Scan(&entries)
	if err != nil || entries != 1 {
		return fmt.Errorf("%d entries, want 1 (%w)", entries, err)
	}
	return nil
}

// reversalWhileDown takes a deposit back while the service is down, and kills it again when it has looked the payment up.
func reversalWhileDown(r *rig) error {
	step := []string{"settle.answered", "settle.applied"}[r.run%2]
	_, order, _, err := r.bought(account)
	if err != nil {
		return err
	}
	if _, err := r.box.Deposit(order.OrderID); err != nil {
		return err
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	r.replicas[0].kill()
	if _, err := r.box.Reverse(order.OrderID); err != nil {
		return err
	}
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	return r.await(order.OrderID, "WAITING_FOR_DEPOSIT")
}
