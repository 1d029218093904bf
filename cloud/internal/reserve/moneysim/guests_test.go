package moneysim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// lightInterval is the interval of light comparisons.
const lightInterval = 2 * time.Minute

// leave models a guest who goes back and releases the hold.
func (w *world) leave(row *row, r *rand.Rand) {
	err := w.process(r.IntN(2), "leave "+row.OrderID, func(_ context.Context, t *modelService) error {
		t.release(row)
		return nil
	})
	w.note("the guest of %s leaves: %v", row.OrderID, err)
	w.count("left")
}

// registerAgain models a guest who registers the hold again after a refusal, and pays the new order.
func (w *world) registerAgain(row *row, order, method string, r *rand.Rand) {
	again := order + "-again"
	ok := false
	err := w.process(r.IntN(2), "register "+again, func(_ context.Context, t *modelService) error {
		ok = t.registerAgain(row, again)
		return nil
	})
	if err != nil || !ok {
		return
	}
	key, err := w.box.Authenticate(sandbox.Checkout{OrderID: again, OrderName: "room", Amount: price, Method: method})
	if err != nil {
		w.violation("authenticate: %v", err)
		return
	}
	w.mu.Lock()
	w.owners[key] = again
	w.mu.Unlock()
	time.Sleep(upTo(r, 20*time.Second))
	w.confirm(again, key, "0", r)
}

// dashboard cancels an order in the provider's dashboard, completely or in part.
func (w *world) dashboard(order, method string, r *rand.Rand) {
	w.rowMu.Lock()
	defer w.rowMu.Unlock()
	of := w.rows.byOrder(order)
	if of.refund != nil {
		return // an administrator ends it at the desk
	}
	known := of.State == booking.Done
	for _, p := range w.box.Payments(order) {
		if p.Status != sandbox.StatusDone && p.Status != sandbox.StatusPartialCanceled || method == sandbox.MethodVirtualAccount && !known {
			continue
		}
		won, what := p.BalanceAmount, "canceled in the dashboard"
		if r.IntN(2) == 0 {
			won, what = 1000+100*r.IntN(50), "returned in part"
		}
		cancel := map[string]any{"cancelReason": "고객 요청", "cancelAmount": won}
		if method == sandbox.MethodVirtualAccount {
			if r.IntN(3) == 0 {
				if err := w.box.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}); err != nil {
					panic(err)
				}
			}
			cancel["refundReceiveAccount"] = map[string]any{"bank": refundAccount.Bank, "accountNumber": refundAccount.Number, "holderName": refundAccount.Holder}
		}
		body, err := json.Marshal(cancel)
		if err != nil {
			panic(err)
		}
		request := httptest.NewRequest(http.MethodPost, "/v1/payments/"+p.PaymentKey+"/cancel", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.SetBasicAuth(sandbox.DemoWidgetSecretKey, "")
		recorder := httptest.NewRecorder()
		w.box.ServeHTTP(recorder, request)
		w.note("dashboard: %d won of %s: %d", won, order, recorder.Code)
		if recorder.Code == http.StatusOK {
			w.by[order] += won
			w.asks(order, "dashboard")
			w.count(what)
			w.look(order)
		}
	}
}

// grace is how long money may be held after the provider is back, or after it came, without a stay that uses it.
const grace = 3 * time.Minute

// lag notes that the provider is not back completely: look-ups lag behind, or it cannot execute a refund now.
func (w *world) lag() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lagged = time.Now()
}

func (w *world) lags() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.lagged) < grace
}

// watchHeld checks every minute that the provider holds no money of an order that is past, abandoned or replaced, from three
// minutes after the provider is back: a request may be on its way for 50 seconds after the faults.
func (w *world) watchHeld() {
	back := w.wire.until.Add(50 * time.Second)
	time.Sleep(time.Until(back.Add(grace)))
	for end := w.start.Add(length); time.Now().Before(end); time.Sleep(time.Minute + time.Microsecond) {
		if w.lags() {
			continue
		}
		w.rowMu.Lock()
		for _, r := range w.rows.list {
			if held := w.held(r.OrderID); held > 0 && !w.mayHold(r, time.Now().Add(-grace)) {
				w.violation("held: %d won of %s, %s, abandoned %t, replaced %t, end %v", held, r.OrderID, r.State, r.order.Abandoned(), !r.order.ReplacedAt.IsZero(), r.End.Sub(w.start))
			}
		}
		w.rowMu.Unlock()
	}
}

// mayHold reports whether the money of an order is in its place: the stay is confirmed, or an administrator has to return
// it, or a payment or refund began after since.
func (w *world) mayHold(r *row, since time.Time) bool {
	switch {
	case r.refund != nil && r.refund.KeepsStay: // the rest follows the part
		return true
	case r.State == booking.Canceled && w.mayKeep(r, w.held(r.OrderID)):
		return true
	case r.State == booking.Done, w.charged[r.OrderID].After(since), r.refundAt.After(since):
		return true
	case r.payment == nil:
		return false
	}
	person := r.refund != nil && r.refund.State == money.RefundFailed
	return person || r.payment.SettledOutside > 0 || r.payment.AttemptedAt.After(since)
}

// checkMessages checks that each guest knows the outcome of each order, and that no outcome was reported twice.
func (w *world) checkMessages() {
	told := map[string]map[string]int{}
	for _, r := range w.rows.list {
		for _, m := range r.messages {
			if told[m.order] == nil {
				told[m.order] = map[string]int{}
			}
			told[m.order][m.template]++
		}
	}
	for _, r := range w.rows.list {
		t := told[r.OrderID]
		if !r.order.PendingAt.IsZero() && t["canceled"] == 0 {
			w.violation("A7: the guest of %s was notified of \"pending\" and then %v", r.OrderID, t)
		}
		if t["payment-returned"] > 1 {
			w.violation("A6: the guest of %s was notified %d times that the payment is returned", r.OrderID, t["payment-returned"])
		}
		if _, parts := w.partsOf(r.OrderID); t["part-refunded"] != parts {
			w.violation("A6: %d parts of %s were returned, and its guest was notified of %v", parts, r.OrderID, t)
		}
		captured := w.charged[r.OrderID]
		if !captured.IsZero() && t["confirmed"]+t["payment-returned"]+t["refund-failed"]+t["canceled"] == 0 {
			w.violation("A6: %s was charged and its guest was notified of %v", r.OrderID, t)
		}
		if t["payment-returned"]+t["refund-failed"] > 0 && t["confirmed"] == 0 && (!r.order.ReplacedAt.IsZero() || r.order.Abandoned()) {
			w.count("hears of a returned payment")
		}
	}
}

// checkBooks compares the entries with the provider's transactions, to the won, per order and per day in Korea. The provider
// states no time of a reversal: it is booked on the day on which it becomes known.
func (w *world) checkBooks() {
	korea := time.FixedZone("KST", 9*60*60)
	differ := map[string]int{}
	add := func(order string, at time.Time, won int) {
		differ[fmt.Sprint(order, " on ", at.In(korea).Format(time.DateOnly))] += won
	}
	reversed := map[string][]time.Time{} // by order, as booked
	for _, e := range w.rows.entries {
		add(e.OrderID, e.At, e.Won)
		if e.Kind == money.Reversed {
			reversed[e.OrderID] = append(reversed[e.OrderID], e.At)
		}
	}
	for _, t := range w.transactions() {
		won, at := t.Amount, t.TransactionAt
		if t.Status != sandbox.StatusDone {
			won = -won
		}
		if known := reversed[t.OrderID]; t.Status == sandbox.StatusWaitingForDeposit && len(known) > 0 {
			at, reversed[t.OrderID] = known[0], known[1:]
		}
		add(t.OrderID, at, -won)
		w.count("transactions")
	}
	for what, won := range differ {
		if won != 0 {
			w.violation("M11: the books and the provider differ by %d won for order %s", won, what)
		}
	}
}

// transactions returns the provider's transactions.
func (w *world) transactions() (list []sandbox.Transaction) {
	request := httptest.NewRequest(http.MethodGet, "/v1/transactions?limit=10000&startDate=2000-01-01&endDate=2000-01-09", http.NoBody)
	request.SetBasicAuth(sandbox.DemoWidgetSecretKey, "")
	recorder := httptest.NewRecorder()
	w.box.ServeHTTP(recorder, request)
	if err := json.Unmarshal(recorder.Body.Bytes(), &list); err != nil {
		w.violation("the provider's transactions: %v: %s", err, recorder.Body)
	}
	return list
}

// received reports whether the provider holds money of an order.
func (w *world) received(order string) bool {
	w.rowMu.Lock()
	defer w.rowMu.Unlock()
	return w.held(order) > 0
}

// held returns the won of an order that the provider holds.
func (w *world) held(order string) (won int) {
	for _, p := range w.box.Payments(order) {
		if p.Status == sandbox.StatusDone || p.Status == sandbox.StatusPartialCanceled {
			won += p.BalanceAmount
		}
	}
	return won
}
