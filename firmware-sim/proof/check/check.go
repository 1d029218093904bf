// Package check checks a finished run against the rules of the design: money M1 to M13, doors D1 to D12, bookings B1 to B15, and the proofs
// that the service keeps of its own rows (S1, S2). It sees the service only from outside: by what the actors received and by the records of
// the database, the payment provider and the locks. For rules that cannot be seen this way it names the test that shows them.
package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// maxExamples is the number of violations of a rule in the report.
const maxExamples = 5

// finding collects the observations for one rule.
type finding struct{ part.Check }

func (f *finding) saw() { f.Observations++ }

func (f *finding) violated(format string, args ...any) {
	f.Violations++
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

// expect counts an observation, and a violation unless it holds.
func (f *finding) expect(holds bool, format string, args ...any) {
	f.saw()
	if !holds {
		f.violated(format, args...)
	}
}

// rule is one rule that is checked.
type rule struct {
	id, text  string
	elsewhere string
	check     func(*books, *finding)
}

// All checks a run against every rule.
func All(r *record.Record) []part.Check {
	b := newBooks(r)
	var checks []part.Check
	for _, rules := range [][]rule{money, doors, bookings, own} {
		for _, rule := range rules {
			f := &finding{part.Check{ID: rule.id, Rule: rule.text, Elsewhere: rule.elsewhere}}
			if rule.check != nil {
				rule.check(b, f)
			}
			checks = append(checks, f.Check)
		}
	}
	return checks
}

// books is a record with indexes.
type books struct {
	*record.Record
	versions map[int64][]record.Version          // by reservation
	latest   map[int64]record.Version            //
	byOrder  map[string]int64                    // reservation to which an order belongs or belonged
	provider map[string][]record.ProviderPayment // by order
	ledger   map[int64][]record.Entry            // by reservation
	calls    map[string][]record.Call            // by order
	refunds  map[int64][]record.Refund           //
	requests map[string]record.DoorRequest       //
	pulses   map[string][]record.Pulse           // by request
	rooms    map[record.Slot][]record.Version    // by branch and room: versions that occupied it
	told     map[string][]record.Message         // by key
	outages  map[string][]record.Fault           // kills of the database, power cuts by branch
}

func newBooks(r *record.Record) *books {
	b := &books{
		Record: r, versions: map[int64][]record.Version{}, latest: map[int64]record.Version{}, byOrder: map[string]int64{},
		provider: map[string][]record.ProviderPayment{}, ledger: map[int64][]record.Entry{}, calls: map[string][]record.Call{},
		refunds: map[int64][]record.Refund{}, requests: map[string]record.DoorRequest{}, pulses: map[string][]record.Pulse{},
		rooms: map[record.Slot][]record.Version{}, told: map[string][]record.Message{}, outages: map[string][]record.Fault{},
	}
	for _, v := range r.History {
		b.versions[v.ID] = append(b.versions[v.ID], v)
		b.latest[v.ID] = v
		if v.Order != "" {
			b.byOrder[v.Order] = v.ID
		}
		if occupies(v) {
			room := record.Slot{Branch: v.Slot.Branch, Room: v.Slot.Room}
			b.rooms[room] = append(b.rooms[room], v)
		}
	}
	for _, p := range r.Provider.Payments {
		b.provider[p.Order] = append(b.provider[p.Order], p)
	}
	for _, c := range r.Provider.Calls {
		b.calls[c.Order] = append(b.calls[c.Order], c)
	}
	for _, e := range r.Ledger {
		b.ledger[e.Reservation] = append(b.ledger[e.Reservation], e)
	}
	for _, f := range r.Refunds {
		b.refunds[f.Reservation] = append(b.refunds[f.Reservation], f)
	}
	for _, d := range r.DoorRequests {
		b.requests[d.ID] = d
	}
	for _, p := range r.Pulses {
		b.pulses[p.Request] = append(b.pulses[p.Request], p)
	}
	for _, m := range r.Messages {
		if m.Key != "" {
			b.told[m.Key] = append(b.told[m.Key], m)
		}
	}
	for _, f := range r.Faults {
		b.outages[f.Kind+" "+f.Target] = append(b.outages[f.Kind+" "+f.Target], f)
	}
	return b
}

// The states of a reservation, as in the database.
const (
	hold, confirming, waiting, done, canceling = "HOLD", "CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING"
	canceled, expired, released, conflict      = "CANCELED", "EXPIRED", "RELEASED", "CONFLICT"
)

// occupies reports whether a version blocks its room.
func occupies(v record.Version) bool {
	return !v.Deleted && slices.Contains([]string{hold, confirming, waiting, done, canceling}, v.State)
}

// end returns when a version ceased to occupy its room; zero: it still does.
func end(v record.Version) time.Time {
	if v.State == hold && !v.Expires.IsZero() && (v.Until.IsZero() || v.Expires.Before(v.Until)) {
		return v.Expires
	}
	return v.Until
}

// at returns the version of a reservation at a moment.
func (b *books) at(id int64, t time.Time) (found record.Version, ok bool) {
	for _, v := range b.versions[id] {
		if v.At.After(t) {
			break
		}
		found, ok = v, true
	}
	return found, ok
}

// throughout calls f for every version of a reservation that was in force at some moment from a to z, with a tolerance
// of slack.
func (b *books) throughout(id int64, a, z time.Time, f func(record.Version)) (any bool) {
	for _, v := range b.versions[id] {
		if v.At.Before(z.Add(commit)) && (v.Until.IsZero() || v.Until.Add(commit).After(a)) {
			f(v)
			any = true
		}
	}
	return any
}

// commit is the maximum time between the database's commit time and visibility to other sessions, with the offsets of
// clocks and processors: disks and processors are shared with everything else on the machine.
const commit = 2 * time.Second

// near reports whether a time is within a fault, or within a distance of it.
func near(faults []record.Fault, t time.Time, before, after time.Duration) bool {
	for _, f := range faults {
		if t.After(f.At.Add(-before)) && t.Before(f.Until.Add(after)) {
			return true
		}
	}
	return false
}

// ordered returns the values of a map in the order of its keys.
func ordered[K cmp.Ordered, V any](m map[K]V) (keys []K) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
