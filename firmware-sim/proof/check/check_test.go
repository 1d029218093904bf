package check_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/check"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// version finds the first version of a reservation in a state.
func version(r *record.Record, id int64, state string) *record.Version {
	for i := range r.History {
		if r.History[i].ID == id && r.History[i].State == state {
			return &r.History[i]
		}
	}
	panic("no such version")
}

// plants are violations to plant into a clean run, at least one for every rule.
var plants = []struct {
	id, what string
	plant    func(*record.Record)
}{
	{"S1", "a violation that the service has found", func(r *record.Record) { r.Proof[0].Found = []string{"reservation:1: no money"} }},
	{"S2", "a changed row of money", func(r *record.Record) { r.Audit.Problem = "rows of ledger were changed" }},
	{"S2", "entries of the audit log outside the chain", func(r *record.Record) { r.Audit.Unlinked = 1 }},
	{"M1", "an order charged twice", func(r *record.Record) {
		r.Provider.Payments = append(r.Provider.Payments, record.ProviderPayment{Key: "p1b", Order: "o1", Status: "CANCELED", Total: 15000, Approved: sec(5)})
	}},
	{"M1", "a payment key used for two", func(r *record.Record) { r.Payments[1].Key = "p1" }},
	{"M2", "money returned, reservation kept", func(r *record.Record) { r.Provider.Payments[0].Balance = 0 }},
	{"M2", "money kept, reservation cancelled", func(r *record.Record) { version(r, 1, "DONE").State = "CANCELED"; version(r, 1, "CANCELED").Key = "" }},
	{"M2", "money of an unknown order", func(r *record.Record) {
		r.Provider.Payments = append(r.Provider.Payments, record.ProviderPayment{Key: "q", Order: "unknown", Status: "DONE", Balance: 5, Total: 5, Approved: sec(5)})
	}},
	{"M2", "sums that do not agree", func(r *record.Record) { r.Provider.Charged++ }},
	{"M3", "sent before the slot was ours", func(r *record.Record) { r.Provider.Calls[1].At = sec(2.5) }},
	{"M3", "sent for no reservation", func(r *record.Record) { r.Provider.Calls[1].Order = "unknown" }},
	{"M4", "another total at the provider", func(r *record.Record) { r.Provider.Payments[0].Total = 14000 }},
	{"M4", "not the quoted price", func(r *record.Record) { version(r, 1, "DONE").Amount = 100 }},
	{"M4", "another total in our payment", func(r *record.Record) { r.Payments[0].Total = 1 }},
	{"M5", "given up on an answer that tells nothing", func(r *record.Record) { r.Ledger[8].Code = "TOO_MANY_REQUESTS" }},
	{"M5", "charged after an unclear answer, and let go", func(r *record.Record) { version(r, 1, "DONE").State = "EXPIRED" }},
	{"M6", "paid back twice", func(r *record.Record) {
		r.Provider.Payments[1].Cancels = append(r.Provider.Payments[1].Cancels, sec(43))
	}},
	{"M6", "paid back more than captured", func(r *record.Record) { r.Provider.Payments[1].Canceled = 16000 }},
	{"M6", "two intents", func(r *record.Record) { r.Refunds = append(r.Refunds, r.Refunds[0]) }},
	{"M7", "a key without a reservation", func(r *record.Record) { version(r, 2, "CANCELED").Key = "key-2" }},
	{"M7", "a reservation without a key", func(r *record.Record) { version(r, 1, "DONE").Key = "" }},
	{"M7", "a refund while the key lives", func(r *record.Record) { r.Provider.Calls[3].At = sec(39) }},
	{"M7", "a refund sent again with another key, while the key lives", func(r *record.Record) {
		again := r.Provider.Calls[3]
		again.At, again.IdempotencyKey = sec(39), "another"
		r.Provider.Calls = append(r.Provider.Calls, again)
	}},
	{"M8", "sold twice", func(r *record.Record) {
		r.History = append(r.History, life(10, "CUSTOMER", "", 0, "", slot("b", 1, 30, 60), "DONE", 50.0)...)
	}},
	{"M8", "an account that takes money for a slot that is free", func(r *record.Record) { r.Provider.Payments[1].Status = "WAITING_FOR_DEPOSIT" }},
	{"M9", "a guest who was never notified", func(r *record.Record) { r.Messages = r.Messages[1:] }},
	{"M9", "notified three times", func(r *record.Record) { r.Messages = append(r.Messages, r.Messages[0], r.Messages[0]) }},
	{"M9", "notified before the commit", func(r *record.Record) { r.Messages[0].At = sec(3) }},
	{"M10", "a callback with a wrong secret is accepted", func(r *record.Record) { r.Forged[0].Status = 200 }},
	{"M10", "a callback alone makes a reservation", func(r *record.Record) { r.Provider.Payments[1].Approved = time.Time{} }},
	{"M11", "the ledger lets itself be changed", func(r *record.Record) { r.AppendOnly = []string{"delete from ledger"} }},
	{"M11", "the ledger was changed", func(r *record.Record) { r.LedgerMark.After = "y" }},
	{"M11", "a balance that the ledger does not know", func(r *record.Record) { r.Ledger[1].Amount = 3 }},
	{"M11", "a refund without a request", func(r *record.Record) { r.Ledger[5].Kind = "cancel.done" }},
	{"M12", "a transaction that waits for the provider", func(r *record.Record) { r.Probes[0].OK = false }},
	{"M13", "a payment read with the key of another entity", func(r *record.Record) {
		r.Provider.Foreign = append(r.Provider.Foreign, r.Provider.Calls[0])
	}},

	{"D1", "two pulses", func(r *record.Record) { r.Pulses = append(r.Pulses, r.Pulses[0]) }},
	{"D1", "a pulse for no request", func(r *record.Record) { r.Pulses[2].At = sec(70) }},
	{"D2", "a late pulse", func(r *record.Record) { r.Pulses[0].At = sec(14.2) }},
	{"D3", "a pulse without a grant", func(r *record.Record) { r.DoorRequests[0].Granted = time.Time{} }},
	{"D3", "a pulse at another room's door", func(r *record.Record) { r.Pulses[0].Device = "room_2" }},
	{"D3", "a grant for a reservation that is over", func(r *record.Record) {
		r.DoorRequests[0].Reservation = 2
		r.DoorRequests[0].Granted, r.Pulses[0].At = sec(50), sec(50)
	}},
	{"D3", "a grant outside the window", func(r *record.Record) { r.DoorRequests[0].Reservation = 2 }},
	{"D3", "staff's request drives another door", func(r *record.Record) { r.Pulses[1].Device = "room_1" }},
	{"D4", "two subscribers with different results", func(r *record.Record) { r.Presses[0].Told[1].Status = "FAILED" }},
	{"D4", "a request without an end", func(r *record.Record) { r.DoorRequests[0].State = "GRANTED" }},
	{"D5", "FAILED without a grant, and driven", func(r *record.Record) { r.Pulses[0].Request = "r2" }},
	{"D5", "driven after it had failed", func(r *record.Record) {
		r.DoorRequests[0].State = "FAILED"
		r.Pulses[0].At = sec(10.3)
	}},
	{"D5", "driven after a subscriber received FAILED", func(r *record.Record) {
		r.Presses[0].Told[0].Status = "FAILED"
		r.Pulses[0].At = sec(10.3)
	}},
	{"D6", "a lock open without power", func(r *record.Record) { r.PowerCut[0].Locked = false }},
	{"D6", "a lock open at the end", func(r *record.Record) { r.Locked["b/room_1"] = false }},
	{"D6", "a lock that stays driven", func(r *record.Record) { r.Pulses[0].Energized = time.Minute }},
	{"D7", "a pulse for an unknown request", func(r *record.Record) { r.Pulses[0].Request = "forged" }},
	{"D8", "a slow answer at an offline branch", func(r *record.Record) { r.Probes[1].Took = time.Second }},
	{"D8", "an offline branch without a PIN", func(r *record.Record) { r.Probes[1].OK = false }},
	{"D9", "a press without a row", func(r *record.Record) { r.DoorRequests = r.DoorRequests[1:] }},
	{"D9", "an administrator's press not in the audit log", func(r *record.Record) { r.StaffUnlocks = nil }},
	{"D10", "a press that acts when the branch is back", func(r *record.Record) {
		r.Pulses = append(r.Pulses, record.Pulse{Branch: "b", Device: "room_1", Request: "r2", At: sec(25.5)})
	}},
	{"D11", "a SUCCESS that was not driven", func(r *record.Record) { r.Pulses = r.Pulses[1:] }},
	{"D11", "a FAILED that was driven", func(r *record.Record) { r.DoorRequests[0].State = "FAILED" }},
	{"D12", "a guest whose key is unknown after FAILED", func(r *record.Record) { r.Presses[1].Why = "unknown" }},

	{"B1", "an overlap of margins", func(r *record.Record) {
		r.History = append(r.History, life(10, "CUSTOMER", "", 0, "", slot("b", 1, 60, 60), "HOLD", 50.0)...)
	}},
	{"B2", "refused because of an expired hold", func(r *record.Record) {
		r.Ops = append(r.Ops, record.Op{Kind: record.Take, Slot: slot("b", 2, day+300, 30), Call: sec(26), Return: sec(26.1), Status: 409, Type: "ResourceAlreadyExistException"})
		version(r, 4, "HOLD").At = sec(50)
		version(r, 4, "RELEASED").At = sec(55)
	}},
	{"B3", "a hold ends while it is being confirmed", func(r *record.Record) {
		v := version(r, 9, "CONFIRMING")
		v.Until = sec(3.5)
		for i := range r.History {
			if r.History[i].ID == 9 && r.History[i].At.Equal(sec(4)) {
				r.History[i].State = "EXPIRED"
			}
		}
	}},
	{"B4", "off the grid and taken", func(r *record.Record) { r.Wrong[0].Status = 200 }},
	{"B4", "longer than five hours", func(r *record.Record) { r.History[0].Slot.End = r.History[0].Slot.Start.Add(6 * time.Hour) }},
	{"B4", "in the past", func(r *record.Record) {
		r.History[0].Slot.Start = began.Add(-time.Hour)
	}},
	{"B5", "not shown on the second day", func(r *record.Record) { r.Lookups[2].Busy = nil }},
	{"B6", "replicas that do not agree", func(r *record.Record) { r.Twins[0].Same = false }},
	{"B7", "off with a reservation", func(r *record.Record) { r.Switches[0].Room, r.Switches[1].Room = 1, 1 }},
	{"B7", "reserved while off", func(r *record.Record) {
		r.History = append(r.History, life(10, "CUSTOMER", "", 0, "", slot("b", 4, 60, 60), "HOLD", 61.0)...)
	}},
	{"B8", "a move that only half took place", func(r *record.Record) { r.Moves[0].To.Room = 1 }},
	{"B8", "a move that is confirmed and lost", func(r *record.Record) { r.Ops[1].To.Room = 1 }},
	{"B8", "a move without an audit entry", func(r *record.Record) { r.Moves = nil }},
	{"B9", "a deadlock", func(r *record.Record) { r.Deadlocks = 1 }},
	{"B9", "a move that fails in quiet", func(r *record.Record) { r.Quiet = began; r.Ops[1].Status = 500 }},
	{"B9", "a deleted row", func(r *record.Record) { r.History[len(r.History)-1].Deleted = true }},
	{"B10", "free before the money was let go", func(r *record.Record) { r.Provider.Payments[1].Cancels[0] = sec(44) }},
	{"B11", "paid in, and cancelled", func(r *record.Record) { r.Provider.Payments[1].Balance = 15000 }},
	{"B12", "shown free and taken", func(r *record.Record) { r.Lookups[0].Busy = nil }},
	{"B12", "shown taken and free", func(r *record.Record) { r.Lookups[0].Busy[2] = []time.Time{began} }},
	{"B12", "no margin shown", func(r *record.Record) { r.Lookups[0].Margins = nil }},
	{"B13", "refused in the window", func(r *record.Record) { r.Presses[0].Status = 410 }},
	{"B13", "let in outside the window", func(r *record.Record) { r.Presses[3].Status = 200 }},
	{"B13", "a wrong key", func(r *record.Record) { r.Presses[4].Status = 200 }},
	{"B13", "a dead key", func(r *record.Record) {
		r.Presses[3].Call, r.Presses[3].Return, r.Presses[3].Status = sec(50), sec(50.1), 200
	}},
	{"B14", "refused a day before", func(r *record.Record) { r.Ops[2].Status, r.Ops[2].Call, r.Ops[2].Return = 400, sec(20), sec(21) }},
	{"B14", "cancelled too late", func(r *record.Record) { r.Ops[3].Status = 200 }},
	{"B15", "a conflict without a notification", func(r *record.Record) { r.Bookings[1].Status = "ACCEPTED" }},
	{"B15", "a booking that is lost", func(r *record.Record) { r.Partner = r.Partner[1:] }},
	{"B15", "a booking that counts and is not there", func(r *record.Record) { version(r, 6, "DONE").State = "CANCELED" }},
}

func TestACleanRunIsClean(t *testing.T) {
	t.Parallel()
	for _, c := range check.All(clean()) {
		if c.Violations > 0 || c.Observations == 0 {
			t.Errorf("%s: %d observed, %d violations: %v", c.ID, c.Observations, c.Violations, c.Examples)
		}
	}
}

func TestEveryRuleCanBeBroken(t *testing.T) {
	t.Parallel()
	planted := map[string]bool{}
	for _, p := range plants {
		planted[p.id] = true
		r := clean()
		p.plant(r)
		for _, c := range check.All(r) {
			if c.ID == p.id && (c.Violations == 0 || len(c.Examples) == 0) {
				t.Errorf("%s misses: %s", p.id, p.what)
			}
		}
	}
	for _, c := range check.All(clean()) {
		if !planted[c.ID] {
			t.Errorf("no violation is planted for %s", c.ID)
		}
	}
}
