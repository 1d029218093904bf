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
