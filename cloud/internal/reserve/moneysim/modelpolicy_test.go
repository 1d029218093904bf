package moneysim

import (
	"encoding/json"
	"time"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// policies are refund policies with deadlines before the stays of a test.
var policies = []booking.RefundPolicy{
	nil,
	{{UntilMinutesBefore: 125, Percent: 100}, {UntilMinutesBefore: 100, Percent: 67}, {UntilMinutesBefore: 40, Percent: 33}},
	{{UntilMinutesBefore: 30, Percent: 50}},
	{{UntilMinutesBefore: 170, Percent: 50}},
}

// setPolicy changes the refund policy of the branch.
func (b *both) setPolicy(t *rapid.T, policy booking.RefundPolicy) {
	b.rows.policy = policy
	var stored []byte
	if policy != nil {
		var err error
		if stored, err = json.Marshal(policy); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.db.Pool.Exec(t.Context(), `update branch set refund_policy = $2 where id = $1`, b.branch, stored); err != nil {
		t.Fatal(err)
	}
}

func (b *both) policy(t *rapid.T) { b.setPolicy(t, rapid.SampledFrom(policies).Draw(t, "policy")) }

// cancelByPolicy cancels a confirmed stay, for which the provider returns the share of the policy, declines it, or loses its answer.
func (b *both) cancelByPolicy(t *rapid.T) {
	r := b.confirmedStay(t)
	left, taken := r.left(), r.Amount-r.payment.Balance
	share := r.policy.Refund(left, r.Start, b.now)
	p := map[string]any{"paymentKey": r.payment.PaymentKey, "orderId": r.OrderID, "status": toss.StatusPartialCanceled, "totalAmount": r.Amount,
		"balanceAmount": r.Amount - taken - share, "method": string(r.Method), "approvedAt": r.PaidAt.Format(time.RFC3339),
		"cancels": []map[string]any{{"cancelAmount": share, "transactionKey": "share-" + r.OrderID, "canceledAt": b.now.Format(time.RFC3339)}}}
	if r.Method == booking.VirtualAccount {
		p["virtualAccount"] = map[string]any{"accountNumber": "1", "bankCode": "20",
			"refundStatus": rapid.SampledFrom([]string{"PENDING", "PENDING", "COMPLETED", "PARTIAL_FAILED"}).Draw(t, "transfer")}
	}
	done := reply{payment: p}
	b.script.cancel = rapid.SampledFrom([]reply{done, done, done, {}, {status: 403, code: "NOT_CANCELABLE_AMOUNT"}}).Draw(t, "cancel")
	by := account.Principal{LoginType: booking.LoginMobile, LoginID: r.Mobile}
	err := b.Cancel(t.Context(), reserve.CancelRequest{ID: b.ids[r.OrderID], By: by, Reason: "x", Account: refundAccount})
	sameVerdict(t, "cancel by policy", err, b.model.cancel(t.Context(), r, "customer", true))
	b.compare(t)
	b.script.cancel, b.script.look = done, done
	for range 2 {
		sameVerdict(t, "settle", b.Settle(t.Context(), b.ids[r.OrderID]), b.model.settle(t.Context(), r))
		b.compare(t)
	}
}
