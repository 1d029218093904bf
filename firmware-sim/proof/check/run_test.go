package check_test

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// began is noon in Korea.
var began = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// sec returns a time in seconds after the start of the run.
func sec(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }

// slot starts the given number of minutes after noon.
func slot(branch string, room, start, length int) record.Slot {
	from := began.Add(time.Duration(start) * time.Minute)
	return record.Slot{Branch: branch, Room: room, Start: from, End: from.Add(time.Duration(length) * time.Minute)}
}

const day = 24 * 60 // minutes

// life returns the versions of a reservation: each state starts at its second.
func life(id int64, source, order string, amount int, method string, s record.Slot, states ...any) (versions []record.Version) {
	for i := 0; i < len(states); i += 2 {
		v := record.Version{ID: id, Slot: s, Source: source, State: states[i].(string), At: sec(states[i+1].(float64)), Order: order, Amount: amount, Method: method}
		if v.State == "HOLD" {
			v.Expires = v.At.Add(20 * time.Second)
			if i == 0 {
				v.Order, v.Amount, v.Method = "", 0, ""
			}
		}
		if v.State == "DONE" {
			v.Key = "key-" + string(rune('0'+id))
		}
		versions = append(versions, v)
	}
	return versions
}

const (
	card, account = "카드", "가상계좌"
)

// clean is a short run that exercises every rule and violates none.
func clean() *record.Record {
	now, tomorrow, other := slot("b", 1, 0, 60), slot("b", 1, day, 60), slot("b", 2, day, 60)
	freed, midnight, partner := slot("b", 2, day+300, 30), slot("b", 3, 11*60+40, 50), slot("p", 1, day, 60)
	moved := other
	moved.Room = 3
	refused := slot("b", 2, 2*day, 60)
	r := &record.Record{
		Zones: map[string]string{"b": "Asia/Seoul"}, Began: began, Quiet: sec(100), Ended: sec(120), Shared: []string{"p"}, Tables: 6,
		LedgerMark: record.Mark{Rows: 3, Before: "x", After: "x"},
		Locked:     map[string]bool{"b/room_1": true},
		Proof:      []record.ProofRule{{ID: "M2", Checked: 9}},
		Audit:      record.Audit{Entries: 3, Rows: 9},
		PowerCut:   []record.PowerCut{{Branch: "b", At: sec(50), Locked: true}},
		Twins:      []record.Twin{{What: "a page", Same: true}},
		Wrong:      []record.Wrong{{What: "off the grid", Want: []int{400}, Status: 400}},
		Probes:     []record.Probe{{What: "stall", OK: true}, {What: "offline", OK: true, Took: 20 * time.Millisecond}},
		Forged: []record.Forgery{{Kind: "callback-wrong-secret", Order: "o2", At: sec(5), Status: 403}, {Kind: "callback-right-secret", Order: "o2", At: sec(6), Status: 200},
			{Kind: "grant", At: sec(7)}, {Kind: "ask", At: sec(8)}},
		Faults: []record.Fault{{Kind: "network-cut", Target: "b", At: sec(19), Until: sec(25)}, {Kind: "kill", Target: "postgres", At: sec(80), Until: sec(83)},
			{Kind: "power-off", Target: "b", At: sec(50), Until: sec(52)}},
	}
	r.History = slices.Concat(
		life(1, "CUSTOMER", "o1", 15000, card, now, "HOLD", 1.0, "HOLD", 2.0, "CONFIRMING", 3.0, "DONE", 4.0),
		life(2, "CUSTOMER", "o2", 15000, account, tomorrow, "HOLD", 1.0, "HOLD", 2.0, "CONFIRMING", 3.0, "WAITING_FOR_DEPOSIT", 4.0, "DONE", 9.0, "CANCELING", 40.0, "CANCELED", 42.0),
		life(3, "CUSTOMER", "", 0, "", freed, "HOLD", 1.0, "EXPIRED", 30.0),
		life(4, "CUSTOMER", "", 0, "", freed, "HOLD", 30.0, "RELEASED", 35.0),
		life(5, "ADMIN", "", 0, "관리자", other, "HOLD", 1.0, "DONE", 3.0),
		life(5, "ADMIN", "", 0, "관리자", moved, "DONE", 60.0),
		life(6, "PARTNER", "", 0, "", partner, "DONE", 10.0),
		life(7, "PARTNER", "", 0, "", partner, "CONFLICT", 12.0),
		life(8, "CUSTOMER", "", 0, "", midnight, "HOLD", 90.0, "RELEASED", 99.0),
		life(9, "CUSTOMER", "o9", 15000, "", refused, "HOLD", 1.0, "HOLD", 2.0, "CONFIRMING", 3.0, "HOLD", 4.0, "EXPIRED", 60.0),
	)
	// The latest version of a hold with an order has the order too.
	for i := range r.History {
		v := &r.History[i]
		v.Seq = int64(i)
		for _, w := range r.History[i+1:] {
			if w.ID == v.ID {
				v.Until = w.At
				break
			}
		}
	}
	r.Payments = []record.Payment{{Reservation: 1, Key: "p1", Total: 15000}, {Reservation: 2, Key: "p2", Total: 15000}}
	r.Refunds = []record.Refund{{Reservation: 2, State: "COMPLETED", Amount: 15000, Created: sec(40)}}
	entry := func(at float64, id int64, order, kind, code string) record.Entry {
		return record.Entry{At: sec(at), Reservation: id, Order: order, Kind: kind, Amount: 15000, Code: code}
	}
	r.Ledger = []record.Entry{
		entry(3, 1, "o1", "confirm.sent", ""), entry(4, 1, "o1", "confirm.done", "DONE"),
		entry(3, 2, "o2", "confirm.sent", ""), entry(4, 2, "o2", "account.issued", ""), entry(9, 2, "o2", "deposit.done", "DONE"),
		entry(40, 2, "o2", "cancel.requested", ""), entry(42, 2, "o2", "cancel.done", "CANCELED"),
		entry(3, 9, "o9", "confirm.sent", ""), entry(4, 9, "o9", "confirm.refused", "REJECT_CARD_PAYMENT"),
	}
	r.Provider = record.Provider{Charged: 30000, Refunded: 15000,
		Calls: []record.Call{
			{At: sec(3.2), Method: "POST", Path: "/v1/payments/confirm", Order: "o1", Status: 0},
			{At: sec(3.2), Method: "POST", Path: "/v1/payments/confirm", Order: "o2", Keys: "widget-2", Status: 200},
			{At: sec(3.2), Method: "POST", Path: "/v1/payments/confirm", Order: "o9", Status: 403},
			{At: sec(41), Method: "POST", Path: "/v1/payments/p2/cancel", IdempotencyKey: "cancel", Order: "o2", Status: 200},
		},
		Payments: []record.ProviderPayment{
			{Key: "p1", Order: "o1", Status: "DONE", Total: 15000, Balance: 15000, Approved: sec(3.5)},
			{Key: "p2", Order: "o2", Status: "CANCELED", Total: 15000, Approved: sec(8), Account: true, Cancels: []time.Time{sec(41)}, Canceled: 15000},
			{Key: "p9", Order: "o9", Status: "ABORTED", Total: 15000},
		}}
	r.Messages = []record.Message{
		{At: sec(5), Template: "reservation-confirmed", Key: "key-1"}, {At: sec(10), Template: "deposit-confirmed", Key: "key-2"},
		{At: sec(61), Template: "reservation-moved", Key: "key-5"},
	}
	r.Moves = []record.Move{{Reservation: 5, At: sec(60), From: other, To: moved}}
	r.Switches = []record.Switch{{Branch: "b", Room: 4, At: sec(60)}, {Branch: "b", Room: 4, At: sec(62), Enabled: true}}
	r.Partner = []record.PartnerBooking{{External: "x6", Status: "CONFIRMED", Reservation: 6}, {External: "x7", Status: "CONFLICT", Reservation: 7}}
	r.Bookings = []record.ChannelBooking{{ID: "x6", Slot: partner, Status: "ACCEPTED"}, {ID: "x7", Slot: partner, Status: "CONFLICT"}}
	r.Ops = []record.Op{
		{Kind: record.Take, Owner: 4, Slot: freed, Call: sec(29.9), Return: sec(30.1), Status: 200},
		{Kind: record.Relocate, ID: 5, Slot: other, To: moved, Call: sec(59.9), Return: sec(60.1), Status: 200},
		{Kind: record.Cancel, ID: 2, Owner: 2, Slot: tomorrow, Call: sec(39.9), Return: sec(42.1), Status: 200},
		{Kind: record.Cancel, ID: 1, Owner: 1, Slot: now, Call: sec(20), Return: sec(20.1), Status: 400},
	}
	told := func(status string, at float64) []record.Told {
		return []record.Told{{At: sec(at), HTTP: 200, Status: status}, {At: sec(at), Replica: 1, HTTP: 200, Status: status}}
	}
	r.Presses = []record.Press{
		{Branch: "b", Kind: "room", Order: "o1", Call: sec(10), Return: sec(10.01), Status: 200, RequestID: "r1", Told: told("SUCCESS", 10.2)},
		{Branch: "b", Kind: "room", Order: "o1", Call: sec(20), Return: sec(20.01), Status: 200, RequestID: "r2", Told: told("FAILED", 22.6), Why: "branch-offline"},
		{Branch: "b", Kind: "front", Staff: true, Call: sec(30), Return: sec(30.01), Status: 200, RequestID: "r3", Told: told("SUCCESS", 30.2)},
		{Branch: "b", Kind: "room", Order: "o2", Call: sec(20), Return: sec(20.01), Status: 410},
		{Branch: "b", Kind: "room", WrongKey: true, Call: sec(20), Return: sec(20.01), Status: 400},
	}
	r.StaffUnlocks = []string{"r3"}
	r.DoorRequests = []record.DoorRequest{
		{ID: "r1", Branch: "b", Reservation: 1, Devices: []string{"room_1"}, State: "SUCCESS", Created: sec(10), Granted: sec(10.05), Finished: sec(10.15)},
		{ID: "r2", Branch: "b", Reservation: 1, Devices: []string{"room_1"}, State: "FAILED", Created: sec(20), Finished: sec(22.5)},
		{ID: "r3", Branch: "b", Devices: []string{"front_1"}, State: "SUCCESS", Created: sec(30), Granted: sec(30.05), Finished: sec(30.15)},
	}
	r.Pulses = []record.Pulse{
		{Branch: "b", Device: "room_1", Request: "r1", At: sec(10.1), Energized: 3 * time.Second},
		{Branch: "b", Device: "front_1", Request: "r3", At: sec(30.1), Energized: 3 * time.Second},
		{Branch: "b", Device: "front_1", At: sec(49.9), Energized: 50 * time.Millisecond}, // the power failed before the agent could report the request
	}
	r.Lookups = []record.Lookup{
		page("b", began, 4, 12, now), page("b", midnight.Start.Truncate(time.Hour), 1, 94, midnight), page("b", midnight.Start.Truncate(time.Hour).Add(time.Hour), 1, 94, midnight),
	}
	return r
}

// page is a look-up that shows one taken slot.
func page(branch string, from time.Time, hours int, at float64, taken record.Slot) record.Lookup {
	l := record.Lookup{Branch: branch, From: from, Until: from.Add(time.Duration(hours) * time.Hour), Call: sec(at), Return: sec(at + 0.01),
		Busy: map[int][]time.Time{}, Margins: map[int][]time.Time{}}
	show := func(list map[int][]time.Time, t time.Time) {
		if !t.Before(l.From) && t.Before(l.Until) {
			list[taken.Room] = append(list[taken.Room], t)
		}
	}
	show(l.Margins, taken.Start.Add(-record.Margin))
	for t := taken.Start; t.Before(taken.End); t = t.Add(record.Margin) {
		show(l.Busy, t)
	}
	show(l.Margins, taken.End)
	return l
}
