// Package linear checks whether the history of bookings that clients saw is linearizable (with Porcupine): every answer
// must be explained by an order of the requests in which each takes effect at one moment between its call and its
// return. A request without an answer may take effect at any later moment, or never.
//
// The calendar's state of a purchase:
//
//	(nothing) ── take ──► firm ── expiry, release, cancel ──► (nothing)
//	                       │  ▲
//	    the outcome is     │  │ confirmed, moved
//	    unknown            ▼  │
//	                      ghost: may or may not exist, until the end of the history
//
// A firm entry excludes every other firm entry. A ghost excludes nothing and explains why a client was refused. So an
// unknown outcome alone never makes a history wrong, and two customers with the same confirmed slot are always found.
package linear

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// Result is the result of the check of a history.
type Result struct {
	Histories int // one per branch
	Requests  int // with answers
	Open      int // without
	Illegal   []string
	Undecided []string // not decided in the time given
	Took      time.Duration
}

// The kinds of steps.
const (
	take    = "take"    // got the slot
	refused = "refused" // received "taken"
	expire  = "expire"  // a hold expires
	sell    = "sell"    // confirmed
	drop    = "drop"    // released, cancelled
	move    = "move"    // to another slot
	stay    = "stay"    // the move was refused
	blur    = "blur"    // the outcome became unknown
	maybe   = "maybe"   // may have been taken
)

// step is one change of a calendar; steps of answered requests have returned OK.
type step struct {
	kind  string
	owner int64
	slot  record.Slot
	to    record.Slot
}

// entry is one entry of a calendar.
type entry struct {
	owner int64
	slot  record.Slot
	ghost bool
	sold  bool
}

// calendar is sorted, so that equal calendars compare equal.
type calendar []entry

func (c calendar) without(match func(entry) bool) calendar {
	return slices.DeleteFunc(slices.Clone(c), match)
}

func (c calendar) with(e entry) calendar {
	next := append(slices.Clone(c), e)
	slices.SortFunc(next, func(a, b entry) int { return strings.Compare(a.key(), b.key()) })
	return next
}

func (e entry) key() string {
	return fmt.Sprintf("%d %d %d %d %t %t", e.slot.Room, e.slot.Start.Unix(), e.slot.End.Unix(), e.owner, e.ghost, e.sold)
}

// firm reports whether another purchase certainly has a part of a slot; any, whether one may have it.
func (c calendar) firm(slot record.Slot, except func(entry) bool) (firm, any bool) {
	for _, e := range c {
		if e.slot.Overlaps(slot) && !except(e) {
			any, firm = true, firm || !e.ghost
		}
	}
	return firm, any
}

func (s step) mine(e entry) bool { return e.owner == s.owner }

func nobody(entry) bool { return false }

// apply applies a step if it is possible.
func (c calendar) apply(s step) (bool, calendar) {
	switch s.kind {
	case take:
		firm, _ := c.firm(s.slot, nobody)
		return !firm, c.with(entry{owner: s.owner, slot: s.slot})
	case refused:
		_, any := c.firm(s.slot, s.mine)
		return any, c
	case maybe:
		return true, c.with(entry{owner: s.owner, slot: s.slot, ghost: true})
	case expire:
		return true, c.without(func(e entry) bool { return s.mine(e) && !e.sold && !e.ghost })
	case drop:
		return true, c.without(s.mine)
	case sell:
		firm, _ := c.firm(s.slot, s.mine)
		return !firm, c.without(s.mine).with(entry{owner: s.owner, slot: s.slot, sold: true})
	case move:
		firm, _ := c.firm(s.to, s.mine)
		i := slices.IndexFunc(c, s.mine)
		if firm || i < 0 {
			return false, c
		}
		return true, c.without(s.mine).with(entry{owner: c[i].owner, slot: s.to, sold: true})
	case stay:
		_, any := c.firm(s.to, s.mine)
		return any, c
	case blur:
		next := c
		for _, e := range c {
			if s.mine(e) {
				next = next.without(func(o entry) bool { return o == e })
				e.ghost, e.sold = true, false
				next = next.with(e)
			}
		}
		if !slices.ContainsFunc(next, s.mine) {
			next = next.with(entry{owner: s.owner, slot: s.slot, ghost: true})
		}
		if !s.to.Start.IsZero() {
			next = next.with(entry{owner: s.owner, slot: s.to, ghost: true})
		}
		return true, next
	}
	return false, c
}

var model = porcupine.Model{
	Init: func() any { return calendar(nil) },
	Step: func(state, input, _ any) (bool, any) {
		ok, next := state.(calendar).apply(input.(step))
		return ok, next
	},
	Equal: func(a, b any) bool { return slices.EqualFunc(a.(calendar), b.(calendar), entry.equal) },
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		return fmt.Sprintf("%s %d room %d %s", s.kind, s.owner, s.slot.Room, s.slot.Start.Format("15:04"))
	},
}

func (e entry) equal(o entry) bool {
	return e.owner == o.owner && e.ghost == o.ghost && e.sold == o.sold && e.slot.Room == o.slot.Room && e.slot.Start.Equal(o.slot.Start) && e.slot.End.Equal(o.slot.End)
}

// Check checks the history of every branch within the given time each. hold is the TTL of a hold.
func Check(r *record.Record, hold, within time.Duration) Result {
	began := time.Now()
	histories, requests, open := split(r, hold)
	result := Result{Histories: len(histories), Requests: requests, Open: open}
	var mu sync.Mutex
	var checking sync.WaitGroup
	names := slices.Sorted(maps.Keys(histories))
	next := make(chan string)
	for range 2 {
		checking.Go(func() {
			for name := range next {
				verdict := porcupine.CheckOperationsTimeout(model, histories[name], within)
				mu.Lock()
				switch verdict {
				case porcupine.Illegal:
					result.Illegal = append(result.Illegal, name)
				case porcupine.Unknown:
					result.Undecided = append(result.Undecided, name)
				}
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	checking.Wait()
	slices.Sort(result.Illegal)
	slices.Sort(result.Undecided)
	result.Took = time.Since(began)
	return result
}

// endOfTime is later than every step.
const endOfTime = math.MaxInt64

// slack is the delay of a hold's end that clocks and processors of one machine can cause.
const slack = 2 * time.Second

// split returns one history per branch, without branches that a partner sells: their bookings do not all come from
// clients.
func split(r *record.Record, hold time.Duration) (histories map[string][]porcupine.Operation, requests, open int) {
	histories = map[string][]porcupine.Operation{}
	names := identify(r)
	attempts := map[int64]time.Time{} // time of a purchase's first confirmation request
	confirmed := map[int64]bool{}
	for _, o := range r.Ops {
		if o.Kind == record.Confirm || o.Kind == record.Keep {
			if first, ok := attempts[o.Owner]; !ok || o.Call.Before(first) {
				attempts[o.Owner] = o.Call
			}
			confirmed[o.Owner] = confirmed[o.Owner] || o.OK() && o.State != byDebit
		}
	}
	add := func(branch string, s step, call, ret time.Time) {
		until := int64(endOfTime)
		if !ret.IsZero() {
			until = ret.Sub(r.Began).Nanoseconds()
		}
		histories[branch] = append(histories[branch], porcupine.Operation{ClientId: len(histories[branch]), Input: s, Call: call.Sub(r.Began).Nanoseconds(), Return: until})
	}
	sold := map[int64]bool{}
	ops := slices.Clone(r.Ops)
	slices.SortStableFunc(ops, func(a, b record.Op) int { return a.Return.Compare(b.Return) })
	for _, o := range ops {
		if slices.Contains(r.Shared, o.Slot.Branch) {
			continue
		}
		s, call, ret := translate(o), o.Call, o.Return
		if s.kind == "" {
			continue
		}
		if o.Known() {
			requests++
		} else {
			open++
		}
		if s.owner == 0 {
			s.owner = names[o.ID]
		}
		switch {
		case s.kind == sell && sold[s.owner]:
			continue // a repeated answer, perhaps after the cancellation
		case s.kind == sell:
			// An earlier attempt without an answer may have taken effect.
			sold[s.owner], call = true, attempts[s.owner]
		case s.kind == blur && o.Kind == record.Confirm && confirmed[s.owner] && !o.Known():
			continue // its outcome
		case s.kind == maybe:
			ret = time.Time{}
		}
		add(o.Slot.Branch, s, call, ret)
		if s.kind == take {
			add(o.Slot.Branch, step{kind: expire, owner: s.owner, slot: s.slot}, o.Call.Add(hold), o.Return.Add(hold+slack))
		}
	}
	return histories, requests, open
}

// identify finds the purchase of a reservation: administrators use its id, which customers never see.
func identify(r *record.Record) map[int64]int64 {
	first := map[int64]record.Version{}
	for _, v := range r.History {
		if _, seen := first[v.ID]; !seen {
			first[v.ID] = v
		}
	}
	names := map[int64]int64{}
	for _, answered := range []bool{true, false} { // first purchases with a confirmed reservation
		for _, o := range r.Ops {
			if o.Kind != record.Take && o.Kind != record.AdminTake || o.OK() != answered || !answered && o.Known() {
				continue
			}
			for id, v := range first {
				if _, taken := names[id]; !taken && v.Slot.Branch == o.Slot.Branch && same(v.Slot, o.Slot) && v.At.After(o.Call) && (v.At.Before(o.Return) || !answered) {
					names[id] = o.Owner
					break
				}
			}
		}
	}
	for id := range first {
		if names[id] == 0 {
			names[id] = -id // of no known purchase
		}
	}
	return names
}

const (
	taken   = "ResourceAlreadyExistException"
	byDebit = "가상계좌"
)

// translate returns the step of a request and its answer; without a kind there is none.
func translate(o record.Op) step {
	s := step{owner: o.Owner, slot: o.Slot, to: o.To}
	switch o.Kind {
	case record.Take, record.AdminTake:
		switch {
		case o.OK():
			s.kind = take
		case o.Status == 409 && o.Type == taken:
			s.kind = refused
		case !o.Known():
			s.kind = maybe
		}
	case record.Confirm:
		switch {
		case o.OK() && o.State != byDebit:
			s.kind = sell
		case o.Status == 401 || o.Status == 404: // the hold had expired
		default:
			s.kind = blur // an account waits for its deposit, the hold's TTL restarts, or the outcome is unknown
		}
	case record.Keep:
		s.kind = blur
		if o.OK() {
			s.kind = sell
		}
	case record.Account:
		s.kind = blur
	case record.Release, record.Cancel, record.AdminEnd:
		if o.OK() {
			s.kind = drop
		} else if !o.Known() {
			s.kind = blur
		}
	case record.Relocate:
		switch {
		case same(o.Slot, o.To) && o.Known(): // the slot does not change
		case o.OK():
			s.kind = move
		case o.Status == 409 && o.Type == taken:
			s.kind = stay
		case !o.Known():
			s.kind = blur
		}
	}
	return s
}

func same(a, b record.Slot) bool {
	return a.Room == b.Room && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}
