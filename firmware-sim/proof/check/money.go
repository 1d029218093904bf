package check

import (
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

var money = []rule{
	{id: "M1", text: "at most one captured payment for an order, at most one order for a payment key", check: oneCapture},
	{id: "M2", text: "a reservation is DONE if and only if the provider holds its money", check: booksAgree},
	{id: "M3", text: "no confirmation is sent without owning the slot", check: ownedBeforeCharged},
	{id: "M4", text: "quoted = stored = sent = the provider's total", check: oneAmount},
	{id: "M5", text: "an unknown outcome is never treated as failed: only a listed rejection ends an attempt, and then nothing was charged", check: unknownIsOpen},
	{id: "M6", text: "refunds: never more than captured, one intent for a payment, money leaves once", check: refundOnce},
	{id: "M7", text: "a key is valid exactly while the reservation is DONE, and is revoked before the refund is sent", check: keyDiesFirst},
	{id: "M8", text: "a slot is sold once, and never released while money might still arrive for it", check: soldOnce},
	{id: "M9", text: "the guest receives the key once, at most twice, and never before the commit", check: toldOnce},
	{id: "M10", text: "the content of a callback alone never changes a state", check: callbacksDecideNothing},
	{id: "M11", text: "the ledger is append-only, and balances can be derived from it", check: ledgerTellsAll},
	{id: "M12", text: "no transaction is open during a call to the provider (none idle for more than 100 ms while the provider hangs)", check: noOpenTransaction},
	{id: "M13", text: "a payment of one legal entity is never asked for with the key of another", check: ownKeys},
}

// holding is the balance of an order at the provider, in won, and its number of charges.
func (b *books) holding(order string) (won, captured int) {
	for _, p := range b.provider[order] {
		if !p.Approved.IsZero() {
			captured++
			won += p.Balance
		}
	}
	return won, captured
}

func oneCapture(b *books, f *finding) {
	for _, order := range ordered(b.provider) {
		_, captured := b.holding(order)
		f.expect(captured <= 1, "order %s was charged %d times", order, captured)
	}
	owner := map[string]int64{}
	for _, p := range b.Payments {
		if other, taken := owner[p.Key]; p.Key != "" && taken {
			f.violated("one payment key pays for the reservations %d and %d", other, p.Reservation)
		}
		owner[p.Key] = p.Reservation
	}
}

func booksAgree(b *books, f *finding) {
	held := 0
	for _, order := range ordered(b.byOrder) {
		v := b.latest[b.byOrder[order]]
		won, _ := b.holding(order)
		want := 0
		if v.State == done && v.Order == order {
			want = v.Amount
		}
		held += want
		if won != want && slices.Contains(b.Differences, order) {
			held += won - want
			f.Excused++
			continue // money under manual review: late, or of a refund that bounced
		}
		f.expect(won == want, "order %s of reservation %d is %s (%d won) but the provider holds %d won", order, v.ID, v.State, v.Amount, won)
	}
	if net := b.Provider.Charged - b.Provider.Refunded; net != held {
		f.violated("the provider holds %d won (%d in, %d out), the reservations amount to %d", net, b.Provider.Charged, b.Provider.Refunded, held)
	}
	for order := range b.provider {
		if _, known := b.byOrder[order]; !known {
			if won, _ := b.holding(order); won > 0 {
				f.violated("the provider holds %d won for the unknown order %s", won, order)
			}
		}
	}
}

func isConfirm(c record.Call) bool { return strings.HasSuffix(c.Path, "/payments/confirm") }

// ownedBeforeCharged checks every confirmation that reached the provider.
func ownedBeforeCharged(b *books, f *finding) {
	for _, c := range b.Provider.Calls {
		id, known := b.byOrder[c.Order]
		if !isConfirm(c) || c.Order == "" {
			continue
		}
		if !known {
			f.expect(false, "a confirmation was sent for the unknown order %s", c.Order)
			continue
		}
		// The provider's time of a call is that of its arrival or of its answer, so what counts is that the slot was
		// ours when the attempt was recorded.
		sent := slices.ContainsFunc(b.ledger[id], func(e record.Entry) bool { return e.Kind == "confirm.sent" && e.Order == c.Order && !e.At.After(c.At) })
		owned := false
		for _, v := range b.versions[id] {
			owned = owned || v.State == confirming && v.Order == c.Order && !v.At.After(c.At)
		}
		f.expect(sent && owned, "order %s was confirmed at %s without its slot being taken first (ledger %t, state %t)", c.Order, c.At.Format(clock), sent, owned)
	}
}

const clock = "15:04:05.000"

func oneAmount(b *books, f *finding) {
	for _, order := range ordered(b.provider) {
		id, known := b.byOrder[order]
		if !known {
			continue
		}
		v := b.latest[id]
		for _, p := range b.provider[order] {
			if p.Approved.IsZero() && !p.Account {
				continue
			}
			f.expect(p.Total == v.Amount, "order %s is %d won at the provider and %d here", order, p.Total, v.Amount)
		}
		first := b.versions[id][0]
		if v.Source == "CUSTOMER" && len(b.provider[order]) > 0 {
			f.expect(v.Amount == world.Price(first.Slot.End.Sub(first.Slot.Start)), "order %s costs %d won and was quoted %d", order, v.Amount, world.Price(first.Slot.End.Sub(first.Slot.Start)))
		}
	}
	for _, p := range b.Payments {
		if v := b.latest[p.Reservation]; p.Total != 0 {
			f.expect(p.Total == v.Amount, "reservation %d: the payment says %d won, the reservation %d", p.Reservation, p.Total, v.Amount)
		}
	}
}

// unclear are answers after which the outcome of the payment is unknown.
var unclear = []string{"", "TOO_MANY_REQUESTS", "IDEMPOTENT_REQUEST_PROCESSING", "ALREADY_PROCESSED_PAYMENT", "NEVER_HEARD_OF", "BAD_GATEWAY", "UNKNOWN_PAYMENT_ERROR",
	"FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", "FAILED_INTERNAL_SYSTEM_PROCESSING", "PROVIDER_ERROR"}

func unknownIsOpen(b *books, f *finding) {
	for _, e := range b.Ledger {
		if e.Kind != "confirm.refused" {
			continue
		}
		f.expect(!slices.Contains(unclear, e.Code), "order %s was given up on the unclear answer %q", e.Order, e.Code)
	}
	for _, c := range b.Provider.Calls {
		if !isConfirm(c) || c.Status > 0 && c.Status < 500 && c.Status != 409 && c.Status != 429 {
			continue
		}
		id, known := b.byOrder[c.Order]
		if !known {
			continue
		}
		won, captured := b.holding(c.Order)
		over := slices.Contains([]string{hold, expired, released}, b.latest[id].State)
		f.expect(captured == 0 || won == 0 || !over, "order %s got the unclear answer %d, was charged, and is %s", c.Order, c.Status, b.latest[id].State)
	}
}

func refundOnce(b *books, f *finding) {
	for _, order := range ordered(b.provider) {
		for _, p := range b.provider[order] {
			if len(p.Cancels) == 0 {
				continue
			}
			f.expect(len(p.Cancels) == 1 && p.Canceled <= p.Total, "order %s was refunded %d times, %d of %d won", order, len(p.Cancels), p.Canceled, p.Total)
		}
	}
	for _, id := range ordered(b.refunds) {
		intents := 0
		for _, r := range b.refunds[id] {
			if r.State != "REFUSED" {
				intents++
			}
		}
		f.expect(intents <= 1, "reservation %d has %d refund intents", id, intents)
	}
}

func keyDiesFirst(b *books, f *finding) {
	for _, v := range b.History {
		f.expect(v.Deleted || (v.Key != "") == (v.State == done), "reservation %d was %s at %s with a valid key: %t", v.ID, v.State, v.At.Format(clock), v.Key != "")
	}
	answered := map[string]bool{}
	for _, c := range b.Provider.Calls {
		id, known := b.byOrder[c.Order]
		if !known || !strings.HasSuffix(c.Path, "/cancel") {
			continue
		}
		if c.IdempotencyKey != "" && answered[c.IdempotencyKey] {
			f.Excused++ // the provider repeats its answer to this key
			continue
		}
		answered[c.IdempotencyKey] = c.Status > 0
		v, ok := b.at(id, c.At)
		f.expect(ok && v.Key == "", "the refund of order %s was sent at %s, while its key was valid", c.Order, c.At.Format(clock))
	}
}

func soldOnce(b *books, f *finding) {
	for _, list := range b.rooms {
		for i, v := range list {
			if v.State != hold {
				f.saw()
			}
			for _, w := range list[i+1:] {
				if v.ID == w.ID || v.State == hold || w.State == hold || !v.Slot.Overlaps(w.Slot) {
					continue
				}
				if until := end(v); until.IsZero() || w.At.Before(until) {
					f.violated("the reservations %d and %d both had room %d of %s at %s", v.ID, w.ID, v.Slot.Room, v.Slot.Branch, w.At.Format(clock))
				}
			}
		}
	}
	// An account that still accepts money at the provider belongs to a reservation that still keeps its slot.
	for _, p := range b.Provider.Payments {
		if p.Status != "WAITING_FOR_DEPOSIT" {
			continue
		}
		v := b.latest[b.byOrder[p.Order]]
		f.expect(v.State == waiting, "order %s is %s but its account still accepts money", p.Order, v.State)
	}
}

func toldOnce(b *books, f *finding) {
	made := map[string]record.Version{}
	for _, v := range b.History {
		if _, seen := made[v.Key]; v.Key != "" && !seen {
			made[v.Key] = v
		}
	}
	for _, key := range ordered(made) {
		v, told := made[key], 0
		for _, m := range b.told[key] {
			if m.Template == "" || strings.Contains(m.Template, "confirmed") {
				told++
			}
			f.expect(!m.At.Before(v.At), "the key of reservation %d was sent at %s, before its commit at %s", v.ID, m.At.Format(clock), v.At.Format(clock))
		}
		if v.Order == "" { // registered by an administrator: the guest is notified on request only
			f.expect(told <= 2, "the guest of reservation %d received the key %d times", v.ID, told)
			continue
		}
		f.expect(told == 1 || told == 2, "the guest of reservation %d received the key %d times", v.ID, told)
	}
}

func callbacksDecideNothing(b *books, f *finding) {
	for _, forged := range b.Forged {
		if !strings.HasPrefix(forged.Kind, "callback") || forged.Status == 0 {
			continue
		}
		if forged.Kind == "callback-wrong-secret" {
			f.expect(forged.Status == 403 || forged.Status == 404 || forged.Status >= 500, "a callback with a wrong secret got status %d", forged.Status)
			continue
		}
		// With the right secret the reservation is DONE only if the provider has the money, whatever the callback
		// contains.
		f.saw()
	}
	for _, v := range b.History {
		if v.State != done || v.Method != "가상계좌" || v.Order == "" {
			continue
		}
		paid := slices.ContainsFunc(b.provider[v.Order], func(p record.ProviderPayment) bool {
			return !p.Approved.IsZero() && !p.Approved.After(v.At.Add(time.Second)) // the provider's times are whole seconds
		})
		f.expect(paid, "reservation %d was DONE at %s although nothing was ever paid into its account", v.ID, v.At.Format(clock))
	}
}

func ledgerTellsAll(b *books, f *finding) {
	for _, attempt := range b.AppendOnly {
		f.violated("the database allowed:  %s", attempt)
	}
	f.Observations += b.Tables
	if m := b.LedgerMark; m.Rows > 0 {
		f.Observations += m.Rows
		if m.Before != m.After {
			f.violated("the first %d rows of the ledger have changed", m.Rows)
		}
	}
	for id, entries := range b.ledger {
		order, balance := "", 0
		var begun, charged, asked, paidBack int
		for _, e := range entries {
			order = e.Order
			switch e.Kind {
			case "confirm.sent", "account.requested":
				begun++
			case "confirm.done", "deposit.done":
				charged++
				balance += e.Amount
			case "cancel.requested":
				asked++
			case "cancel.done":
				paidBack++
			case "deposit.reversed", "canceled.by-provider":
				balance -= e.Amount
			}
		}
		if paidBack > 0 {
			balance = 0
		}
		f.expect(charged == 0 || begun > 0, "the ledger of reservation %d has a charge that was never sent", id)
		f.expect(paidBack <= asked, "the ledger of reservation %d has %d refunds for %d requests", id, paidBack, asked)
		if won, _ := b.holding(order); order != "" && !slices.Contains(b.Differences, order) {
			f.expect(balance == won, "order %s holds %d won in the ledger and %d at the provider", order, balance, won)
		}
	}
}

func noOpenTransaction(b *books, f *finding) {
	for _, p := range b.Probes {
		if p.What == "stall" {
			f.expect(p.OK, "a transaction was idle while the provider hung, for %s", p.Took.Round(time.Millisecond))
		}
	}
}

// ownKeys counts the calls of the second merchant.
func ownKeys(b *books, f *finding) {
	for _, c := range b.Provider.Calls {
		if strings.HasSuffix(c.Keys, "-2") {
			f.saw()
		}
	}
	for _, c := range b.Provider.Foreign {
		f.violated("%s %s of order %s with the keys %s", c.Method, c.Path, c.Order, c.Keys)
	}
}
