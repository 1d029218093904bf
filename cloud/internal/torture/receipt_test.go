package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// receiptPoints are the crash points of a cash receipt: its request is recorded, and the provider has acted on it.
func receiptPoints() (list []point) {
	for i, step := range []string{"receipt.begun", "receipt.answered"} {
		list = append(list, point{
			name: fmt.Sprintf("C36.%d", i+1), what: "killed in a cash receipt at " + step, within: 3 * time.Minute, slow: i == 0,
			do: func(r *rig) error { return crashInReceipt(r, step) },
		})
	}
	return list
}

// crashInReceipt kills the service while it issues a cash receipt, and again while it cancels it. One is issued and one
// canceled.
func crashInReceipt(r *rig, step string) error {
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	b, w := r.buyer(), r.wish(account)
	order, err := r.wishing(b, w)
	if err != nil {
		return err
	}
	_, _ = r.box.Deposit(order.OrderID) // the crash may be faster than the answer
	if err := errors.Join(r.replicas[0].crashed(), r.replicas[0].start("")); err != nil {
		return err
	}
	if err := errors.Join(r.await(order.OrderID, "DONE"), r.receipt(order.OrderID, order.Amount), b.Login(r.ctx, w.Mobile)); err != nil {
		return err
	}
	_, id, err := r.state(order.OrderID)
	if err != nil {
		return err
	}
	cancel := func() (moneytest.Reply, error) {
		return b.Post(r.ctx, "/payment/cancel", map[string]any{"id": id, "cancelReason": "변심", "refundReceiveAccountBank": "20",
			"refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동"})
	}
	return errors.Join(r.crash(step, cancel), r.await(order.OrderID, "CANCELED"), r.receipt(order.OrderID, 0), r.receiptsAre(order.Amount))
}

// wishing orders a room with a cash receipt and issues the virtual account.
func (r *rig) wishing(b *moneytest.Buyer, w moneytest.Wish) (moneytest.Confirm, error) {
	order := moneytest.Confirm{Amount: moneytest.Prices[w.Room]}
	if err := b.Hold(r.ctx, w); err != nil {
		return order, err
	}
	reply, err := b.Post(r.ctx, "/payment", map[string]any{
		"amount": order.Amount, "name": "홍길동", "mobileNum": w.Mobile, "cashReceipt": map[string]string{"type": "personal", "number": w.Mobile},
	})
	if err := errors.Join(err, reply.OK()); err != nil {
		return order, err
	}
	if err := json.Unmarshal(reply.Data, &order); err != nil {
		return order, err
	}
	order.PaymentKey, err = b.Box.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: w.Method, Bank: "20"})
	if err != nil {
		return order, err
	}
	reply, err = b.Post(r.ctx, "/payment/confirm", order)
	return order, errors.Join(err, reply.OK())
}

// receipt waits until no request about an order's cash receipt is open and it stands for an amount.
func (r *rig) receipt(order string, won int) error {
	return r.until(func() (ok bool, err error) {
		err = r.pool.QueryRow(r.ctx, `
			select c.state in ('issued', 'completed', 'canceled') and c.standing = $2 from cash_receipt c
			join reservation r on r.id = c.reservation_id where r.order_id = $1`, order, won).Scan(&ok)
		return ok, err
	}, fmt.Sprintf("a cash receipt of %d won stands", won))
}

// receiptsAre checks that the provider issued one receipt and canceled it.
func (r *rig) receiptsAre(won int) error {
	list := r.box.CashReceipts()
	if len(list) != 2 || list[0].TransactionType != "CONFIRM" || list[1].TransactionType != "CANCEL" || list[0].Amount != won || list[1].Amount != won {
		return fmt.Errorf("cash receipts at the provider: %+v", list)
	}
	return nil
}
