package moneysim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// extend holds an extension of a confirmed stay, and pays it in most cases.
func (b *both) extend(t *rapid.T) {
	root := b.confirmedStay(t)
	end := b.rows.reservation(root).Stay().End
	times := booking.Interval{Start: end, End: end.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "longer")) * 10 * time.Minute)}
	b.change(t, booking.Reservation{Room: b.room, Interval: times, Extends: root.ID}, root, extensionPrice, nil)
}

// exchange holds another time instead of a confirmed stay, and pays it in most cases.
func (b *both) exchange(t *rapid.T) {
	old := b.confirmedStay(t)
	start := time.Date(2026, 11, 21, 17+rapid.IntRange(0, 1).Draw(t, "hour"), 0, 0, 0, time.UTC)
	var sealed []byte
	if old.Method == booking.VirtualAccount || b.rows.extendedByDeposit(old) {
		plain, err := json.Marshal(refundAccount)
		if err != nil {
			t.Fatal(err)
		}
		sealed = b.Keys.Seal("refund-account", plain)
	}
	b.change(t, booking.Reservation{Room: b.room, Interval: booking.Interval{Start: start, End: start.Add(time.Hour)}, Replaces: old.ID}, old, exchangePrice, sealed)
}

// cancelExtended cancels a stay with a paid extension, of which the provider declines the refund, or loses it, before it makes it.
func (b *both) cancelExtended(t *rapid.T) {
	root := b.confirmedStay(t)
	if !slices.ContainsFunc(b.rows.extensions(root.ID), func(e *row) bool { return e.State == booking.Done }) {
		t.Skip("it has no paid extension")
	}
	p := func(status string, balance int) reply {
		p := map[string]any{"paymentKey": root.payment.PaymentKey, "orderId": root.OrderID, "status": status, "totalAmount": root.Amount,
			"balanceAmount": balance, "method": string(root.Method), "approvedAt": root.PaidAt.Format(time.RFC3339)}
		if root.Method == booking.VirtualAccount {
			p["virtualAccount"] = map[string]any{"accountNumber": "1", "bankCode": "20", "refundStatus": "COMPLETED"}
		}
		return reply{payment: p}
	}
	held, done := p(root.payment.Status, root.payment.Balance), p(toss.StatusCanceled, 0)
	b.script.cancel, b.script.look = rapid.SampledFrom([]reply{done, {}, {status: 403, code: "NOT_CANCELABLE_PAYMENT"}}).Draw(t, "cancel"), held
	by := account.Principal{LoginType: booking.LoginMobile, LoginID: root.Mobile}
	err := b.Cancel(t.Context(), reserve.CancelRequest{ID: b.ids[root.OrderID], By: by, Reason: "x", Account: refundAccount})
	sameVerdict(t, "cancel an extended stay", err, b.model.cancel(t.Context(), root, "customer", true))
	b.compare(t)
	b.pass(t)
	b.script.cancel, b.script.look = rapid.SampledFrom([]reply{done, {status: 403, code: "NOT_CANCELABLE_PAYMENT"}}).Draw(t, "cancel again"), held
	sameVerdict(t, "settle", b.Settle(t.Context(), b.ids[root.OrderID]), b.model.settle(t.Context(), root))
	b.compare(t)
}

// confirmedStay returns one of the latest stays, after its payment if it is held.
func (b *both) confirmedStay(t *rapid.T) *row {
	r, _ := b.some(t)
	if r.State == booking.Hold && r.Occupies(b.now) {
		b.pay(t, r)
	}
	if r.State != booking.Done || r.Extends != 0 {
		t.Skip("it is not a confirmed stay")
	}
	return r
}

// change inserts the hold of an extension or an exchange into both.
func (b *both) change(t *rapid.T, hold booking.Reservation, of *row, won int, account []byte) {
	order := fmt.Sprintf("order-%d-%d", b.cases, len(b.rows.list))
	hold.ExpiresAt = b.now.Add(holdTTL)
	r := b.rows.insert(hold, b.now)
	stored := postgres.NewHold{Room: b.room, Interval: hold.Interval, Source: booking.Customer, Token: []byte(fmt.Sprint(order, time.Now().UnixNano())), ExpiresAt: hold.ExpiresAt}
	if hold.Extends != 0 {
		stored.Extends = b.ids[of.OrderID]
	} else {
		stored.Replaces = b.ids[of.OrderID]
	}
	id, err := postgres.InsertHold(t.Context(), b.db.Pool, stored, b.now)
	if err != nil {
		t.Fatal(err)
	}
	if (id != 0) != (r != nil) {
		t.Fatalf("held %d, the model has %t", id, r != nil)
	}
	if r == nil {
		return
	}
	r.OrderID, r.order.ID, r.Amount, r.Mobile, r.account = order, order, won, of.Mobile, account != nil
	b.ids[order] = id
	err = b.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		locked, err := postgres.LockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := postgres.SetReplacedAccount(ctx, tx, id, account); err != nil {
			return err
		}
		return postgres.RegisterOrder(ctx, tx, locked, postgres.NewOrder{
			ID: order, Contact: booking.Contact{Name: "홍길동", Mobile: r.Mobile, Language: "ko"}, Amount: won,
		}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.compare(t)
	if rapid.IntRange(0, 3).Draw(t, "pays") > 0 {
		b.pay(t, r)
	}
}

// pay pays a hold by card or deposit.
func (b *both) pay(t *rapid.T, r *row) {
	key := fmt.Sprintf("pay-%s", r.OrderID)
	p := map[string]any{"paymentKey": key, "orderId": r.OrderID, "status": toss.StatusDone, "totalAmount": r.Amount, "balanceAmount": r.Amount,
		"method": "카드", "secret": "secret-" + r.OrderID, "approvedAt": b.now.Format(time.RFC3339)}
	if rapid.Bool().Draw(t, "by deposit") {
		p["method"], p["virtualAccount"] = toss.MethodVirtualAccount, map[string]any{"accountNumber": "1", "bankCode": "20", "refundStatus": "NONE"}
	}
	b.script.confirm, b.script.look = reply{payment: p}, reply{payment: p}
	req := reserve.ConfirmRequest{PaymentKey: key, OrderID: r.OrderID, Amount: r.Amount}
	_, got := b.Confirm(t.Context(), req)
	sameVerdict(t, "pay", got, b.model.confirm(t.Context(), req))
	b.compare(t)
}
