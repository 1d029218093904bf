package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

var refundAccount = map[string]any{"bank": "88", "accountNumber": "11012345678", "holderName": "홍길동"}

func reason(more ...any) map[string]any {
	body := map[string]any{"cancelReason": "단순 변심"}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return body
}

func TestCancelCard(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	r := w.cancel(key, reason())
	cancels, _ := r.body["cancels"].([]any)
	if r.status != 200 || r.text("status") != "CANCELED" || r.number("balanceAmount") != 0 || r.number("totalAmount") != 18000 || len(cancels) != 1 {
		t.Fatalf("cancel: %d %s", r.status, r.raw)
	}
	c := cancels[0].(map[string]any)
	if c["cancelAmount"] != 18000.0 || c["cancelReason"] != "단순 변심" || c["cancelStatus"] != "DONE" || c["transactionKey"] != r.text("lastTransactionKey") {
		t.Errorf("cancels: %v", c)
	}
	w.wantSums(18000, 18000)
	wantStatus(t, w.cancel(key, reason()), 400, "ALREADY_CANCELED_PAYMENT")
	w.wantSums(18000, 18000)
}

// A payment that is cancelled in parts remains PARTIAL_CANCELED even if its balance is 0.
func TestCancelInParts(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	for _, step := range []struct{ amount, balance int }{{8000, 10000}, {10000, 0}} {
		r := w.cancel(key, reason("cancelAmount", step.amount))
		if r.status != 200 || r.text("status") != "PARTIAL_CANCELED" || r.number("balanceAmount") != step.balance {
			t.Fatalf("cancel %d: %d %s", step.amount, r.status, r.raw)
		}
	}
	wantStatus(t, w.cancel(key, reason()), 403, "NOT_CANCELABLE_AMOUNT")
	w.wantSums(18000, 18000)
}

func TestCancelRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method  string
		deposit bool
		body    map[string]any
		status  int
		code    string
	}{
		"no reason":              {sandbox.MethodCard, false, map[string]any{}, 400, "INVALID_REQUEST"},
		"long reason":            {sandbox.MethodCard, false, reason("cancelReason", strings.Repeat("가", 201)), 400, "INVALID_REQUEST"},
		"more than there is":     {sandbox.MethodCard, false, reason("cancelAmount", 18001), 403, "NOT_CANCELABLE_AMOUNT"},
		"nothing":                {sandbox.MethodCard, false, reason("cancelAmount", 0), 400, "INVALID_REQUEST"},
		"other balance":          {sandbox.MethodCard, false, reason("refundableAmount", 17000), 400, "NOT_MATCHES_REFUNDABLE_AMOUNT"},
		"account for a card":     {sandbox.MethodCard, false, reason("refundReceiveAccount", refundAccount), 400, "INVALID_REQUEST"},
		"account before deposit": {sandbox.MethodVirtualAccount, false, reason("refundReceiveAccount", refundAccount), 400, "INVALID_REQUEST"},
		"part before deposit":    {sandbox.MethodVirtualAccount, false, reason("cancelAmount", 1000), 403, "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT"},
		"no account":             {sandbox.MethodVirtualAccount, true, reason(), 400, "INVALID_REQUEST"},
		"bankCode instead":       {sandbox.MethodVirtualAccount, true, reason("refundReceiveAccount", map[string]any{"bankCode": "88", "accountNumber": "1", "holderName": "홍"}), 400, "INVALID_BANK"},
		"three-digit bank":       {sandbox.MethodVirtualAccount, true, reason("refundReceiveAccount", map[string]any{"bank": "088", "accountNumber": "1", "holderName": "홍"}), 400, "INVALID_BANK"},
		"dashes in account":      {sandbox.MethodVirtualAccount, true, reason("refundReceiveAccount", map[string]any{"bank": "88", "accountNumber": "110-1", "holderName": "홍"}), 400, "INVALID_REFUND_ACCOUNT_NUMBER"},
		"account of 21 digits":   {sandbox.MethodVirtualAccount, true, reason("refundReceiveAccount", map[string]any{"bank": "88", "accountNumber": strings.Repeat("1", 21), "holderName": "홍"}), 400, "INVALID_REFUND_ACCOUNT_NUMBER"},
		"no holder":              {sandbox.MethodVirtualAccount, true, reason("refundReceiveAccount", map[string]any{"bank": "88", "accountNumber": "1"}), 400, "INVALID_REFUND_ACCOUNT_INFO"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.paid(test.method)
			charged := 0
			if test.deposit {
				w.must("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order}))
			}
			if test.deposit || test.method == sandbox.MethodCard {
				charged = 18000
			}
			before := w.get(key)
			wantStatus(t, w.cancel(key, test.body), test.status, test.code)
			if after := w.get(key); string(after.raw) != string(before.raw) {
				t.Errorf("the refused request changed the payment:\n%s\n%s", before.raw, after.raw)
			}
			w.wantSums(charged, 0)
		})
	}
}

func TestCancelUnconfirmed(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.authenticated(sandbox.MethodCard)
	wantStatus(t, w.cancel(key, reason()), 403, "NOT_CANCELABLE_PAYMENT")
}

// A payment by phone bill can be cancelled only in the calendar month of the payment, in Korean time.
func TestCancelMobilePhone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait   time.Duration
		status int
	}{
		"same month": {9*24*time.Hour + 9*time.Hour - time.Second, 200}, // 11-30 23:59:59 KST
		"next month": {9*24*time.Hour + 9*time.Hour, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.paid(sandbox.MethodMobilePhone)
			w.clock.add(test.wait)
			r := w.cancel(key, reason())
			if r.status != test.status || test.status == 403 && r.text("code") != "EXCEED_MAX_REFUND_DUE" {
				t.Errorf("cancel: %d %s", r.status, r.raw)
			}
		})
	}
}

// TestBouncedPartIsSentAgain: a refund of a part that the bank has returned is transferred to another account, without a second
// refund.
func TestBouncedPartIsSentAgain(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodVirtualAccount)
	if _, err := w.Deposit(order); err != nil {
		t.Fatal(err)
	}
	if err := w.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1}); err != nil {
		t.Fatal(err)
	}
	for i, refunded := range []int{0, 1000} {
		if r := w.cancel(key, reason("cancelAmount", 1000, "refundReceiveAccount", refundAccount)); r.status != 200 {
			t.Fatalf("request %d: %d %s", i+1, r.status, r.raw)
		}
		w.clock.add(time.Minute)
		if got := w.get(key); got.number("balanceAmount") != 17000 {
			t.Errorf("request %d: %s, want a balance of 17000", i+1, got.raw)
		}
		w.wantSums(18000, refunded)
	}
}

func TestRefundOfDeposit(t *testing.T) {
	t.Parallel()
	refundStatus := func(r reply) any {
		va, _ := r.body["virtualAccount"].(map[string]any)
		return va["refundStatus"]
	}
	for name, test := range map[string]struct {
		fault    *sandbox.Fault
		wait     time.Duration
		want     string
		refunded int
	}{
		"in progress": {nil, time.Second, "PENDING", 18000},
		"arrives":     {nil, 3 * time.Second, "COMPLETED", 18000},
		"comes back":  {&sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}, 3 * time.Second, "FAILED", 0},
		"late":        {&sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow, Delay: time.Minute}, 59 * time.Second, "PENDING", 18000},
		"late, there": {&sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow, Delay: time.Minute}, time.Minute, "COMPLETED", 18000},
		"never":       {&sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultTimeout}, 1000 * time.Hour, "PENDING", 18000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, sandbox.Options{})
			key := w.paid(sandbox.MethodVirtualAccount)
			if _, err := w.Deposit(order); err != nil {
				t.Fatal(err)
			}
			if test.fault != nil {
				if err := w.SetFault(*test.fault); err != nil {
					t.Fatal(err)
				}
			}
			r := w.cancel(key, reason("refundReceiveAccount", refundAccount))
			if r.status != 200 || r.text("status") != "CANCELED" || refundStatus(r) != "PENDING" {
				t.Fatalf("cancel: %d %s", r.status, r.raw)
			}
			w.clock.add(test.wait)
			if got := refundStatus(w.get(key)); got != test.want {
				t.Errorf("refundStatus %v, want %s", got, test.want)
			}
			w.wantSums(18000, test.refunded)
		})
	}
}

// The provider has one refund status for all transfers: one that the bank returned shows until it is sent again, whatever is transferred
// after it.
func TestRefundOfDepositInParts(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodVirtualAccount)
	if _, err := w.Deposit(order); err != nil {
		t.Fatal(err)
	}
	if err := w.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}); err != nil {
		t.Fatal(err)
	}
	part := reason("cancelAmount", 1000, "refundReceiveAccount", refundAccount)
	for i, step := range []struct {
		body     map[string]any
		want     string
		balance  int
		refunded int
	}{
		{part, "PARTIAL_FAILED", 17000, 0},
		{reason("refundReceiveAccount", refundAccount), "PARTIAL_FAILED", 0, 17000},
		{reason("refundReceiveAccount", refundAccount), "COMPLETED", 0, 18000},
	} {
		if r := w.cancel(key, step.body); r.status != 200 || r.number("balanceAmount") != step.balance {
			t.Fatalf("step %d: %d %s", i, r.status, r.raw)
		}
		if got := w.get(key).body["virtualAccount"].(map[string]any)["refundStatus"]; got != "PENDING" {
			t.Errorf("step %d: refundStatus %v, want PENDING", i, got)
		}
		w.clock.add(3 * time.Second)
		if got := w.get(key).body["virtualAccount"].(map[string]any)["refundStatus"]; got != step.want {
			t.Errorf("step %d: refundStatus %v, want %s", i, got, step.want)
		}
		w.wantSums(18000, step.refunded)
	}
}

func TestCancelBeforeDeposit(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodVirtualAccount)
	if r := w.cancel(key, reason()); r.status != 200 || r.text("status") != "CANCELED" || r.number("balanceAmount") != 0 {
		t.Fatalf("cancel: %d %s", r.status, r.raw)
	}
	w.wantSums(0, 0)
	if _, err := w.Deposit(order); !errors.Is(err, sandbox.ErrBounced) {
		t.Errorf("deposit after the cancellation: %v, want it to bounce", err)
	}
	if r := w.do("POST", "/sandbox/deposits", encode(map[string]any{"orderId": order})); r.status != 409 {
		t.Errorf("deposit after the cancellation: %d %s", r.status, r.raw)
	}
	w.wantSums(0, 0)
}

// No sequence of operations creates or loses money: deposits minus refunds equal the balances of the payments, and no
// payment refunds more than it received.
func TestMoneyIsConserved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := &clock{now: start}
		box, err := sandbox.New(sandbox.Options{Now: c.Now})
		if err != nil {
			rt.Fatal(err)
		}
		defer box.Close()
		w := handlerWorld{box, c}
		orders := []string{"order-a", "order-b"}
		var keys []string
		actions := map[string]func(*rapid.T){
			"authenticate": func(rt *rapid.T) {
				key, err := box.Authenticate(sandbox.Checkout{
					OrderID: rapid.SampledFrom(orders).Draw(rt, "order"), Amount: 18000,
					Method: rapid.SampledFrom([]string{"카드", "간편결제", "가상계좌", "휴대폰"}).Draw(rt, "method"),
				})
				if err != nil {
					rt.Fatal(err)
				}
				keys = append(keys, key)
			},
			"confirm": func(rt *rapid.T) {
				w.post("/v1/payments/confirm", map[string]any{
					"paymentKey": rapid.SampledFrom(append(keys, "none")).Draw(rt, "key"),
					"orderId":    rapid.SampledFrom(orders).Draw(rt, "order"), "amount": 18000,
				})
			},
			"cancel": func(rt *rapid.T) {
				body := reason()
				if rapid.Bool().Draw(rt, "part") {
					body["cancelAmount"] = rapid.IntRange(-1, 20000).Draw(rt, "amount")
				}
				if rapid.Bool().Draw(rt, "account") {
					body["refundReceiveAccount"] = refundAccount
				}
				w.post("/v1/payments/"+rapid.SampledFrom(append(keys, "none")).Draw(rt, "key")+"/cancel", body)
			},
			"deposit": func(rt *rapid.T) { _, _ = box.Deposit(rapid.SampledFrom(orders).Draw(rt, "order")) },
			"reverse": func(rt *rapid.T) { _, _ = box.Reverse(rapid.SampledFrom(orders).Draw(rt, "order")) },
			"wait":    func(rt *rapid.T) { c.add(time.Duration(rapid.IntRange(0, 8*24*60).Draw(rt, "minutes")) * time.Minute) },
			"": func(rt *rapid.T) {
				held, processed := 0, map[string]int{}
				for _, p := range box.Payments("") {
					canceled := 0
					for _, c := range p.Cancels {
						canceled += c.CancelAmount
					}
					if p.BalanceAmount < 0 || p.BalanceAmount != p.TotalAmount-canceled {
						rt.Fatalf("balance %d after cancelling %d of %d", p.BalanceAmount, canceled, p.TotalAmount)
					}
					if p.ApprovedAt != nil {
						held += p.BalanceAmount
					}
					if p.Method != nil {
						processed[p.OrderID]++
					}
				}
				if l := box.Ledger(); l.Charged-l.Refunded != held {
					rt.Fatalf("charged %d less refunded %d is not the %d held", l.Charged, l.Refunded, held)
				}
				for id, n := range processed {
					if n > 1 {
						rt.Fatalf("order %s was processed %d times", id, n)
					}
				}
			},
		}
		rt.Repeat(actions)
	})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key := w.paid(sandbox.MethodCard)
	w.clock.add(time.Hour)
	w.cancel(key, reason("cancelAmount", 8000))
	w.clock.add(24 * time.Hour)
	w.cancel(key, reason("cancelAmount", 10000))

	list := func(query string) []sandbox.Transaction {
		t.Helper()
		return decodeList[sandbox.Transaction](t, w.do("GET", "/v1/transactions?"+query, "", "Authorization", widgetAuth))
	}
	const day = "startDate=2026-11-21T00:00:00&endDate=2026-11-21T23:59:59"
	first := list(day)
	if len(first) != 2 || first[0].Status != "DONE" || first[0].Amount != 18000 || first[1].Status != "PARTIAL_CANCELED" || first[1].Amount != 8000 {
		t.Fatalf("transactions of the day: %+v", first)
	}
	if page := list(day + "&limit=1"); len(page) != 1 || page[0] != first[0] {
		t.Errorf("first page: %+v", page)
	}
	if page := list(day + "&startingAfter=" + first[0].TransactionKey); len(page) != 1 || page[0] != first[1] {
		t.Errorf("second page: %+v", page)
	}
	if all := list("startDate=2026-11-21&endDate=2026-11-22"); len(all) != 3 {
		t.Errorf("both days: %+v", all)
	}
	var both []sandbox.Transaction
	if err := json.Unmarshal(w.do("GET", "/v1/transactions?"+day, "", "Authorization", apiAuth).raw, &both); err != nil || !slices.Equal(both, first) {
		t.Errorf("the other key set sees %+v (%v), want %+v", both, err, first)
	}
	other := w.do("GET", "/v1/transactions?"+day, "", "Authorization", basic(sandbox.DemoAPISecretKey+"_2"))
	if string(other.raw) != "[]" {
		t.Errorf("the other merchant sees %s", other.raw)
	}
	for _, query := range []string{"", "startDate=2026-11-21", "startDate=2026-11-22&endDate=2026-11-21", day + "&limit=0", day + "&startingAfter=none"} {
		wantStatus(t, w.do("GET", "/v1/transactions?"+query, "", "Authorization", widgetAuth), 400, "INVALID_REQUEST")
	}
}

func ExampleListingID() {
	fmt.Println(sandbox.ListingID("gangnam", 2))
	// Output: gangnam-2
}
