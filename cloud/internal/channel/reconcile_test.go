package channel

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }

func known(id string, hours, missed int) Known {
	return Known{ExternalID: id, Start: at(hours), End: at(hours + 1), Missed: missed}
}

func sold(id string, hours int) Booking {
	return Booking{ExternalID: id, Start: at(hours), End: at(hours + 1)}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	c := Cursor{ETag: `"a"`}
	cancelled := sold("a", 5)
	cancelled.Cancelled = true
	four := []Known{known("a", 1, 0), known("b", 2, 0), known("c", 3, 0), known("d", 4, 0)}
	for name, tc := range map[string]struct {
		known  []Known
		pulled Pulled
		want   Plan
	}{
		"nothing":                             {nil, Pulled{Cursor: c}, Plan{Cursor: c}},
		"new":                                 {nil, Pulled{Cursor: c, Bookings: []Booking{sold("b", 6), sold("a", 5)}}, Plan{Cursor: c, Add: []Booking{sold("a", 5), sold("b", 6)}}},
		"unchanged":                           {[]Known{known("a", 5, 0)}, Pulled{Cursor: c, Bookings: []Booking{sold("a", 5)}}, Plan{Cursor: c, Seen: []string{"a"}}},
		"moved":                               {[]Known{known("a", 5, 0)}, Pulled{Cursor: c, Bookings: []Booking{sold("a", 6)}}, Plan{Cursor: c, Change: []Booking{sold("a", 6)}}},
		"back again":                          {[]Known{known("a", 5, 1)}, Pulled{Cursor: c, Bookings: []Booking{sold("a", 5)}}, Plan{Cursor: c, Seen: []string{"a"}}},
		"cancelled":                           {[]Known{known("a", 5, 0)}, Pulled{Cursor: c, Bookings: []Booking{cancelled}}, Plan{Cursor: c, Cancel: []string{"a"}}},
		"cancelled before we knew":            {nil, Pulled{Cursor: c, Bookings: []Booking{cancelled}}, Plan{Cursor: c}},
		"ended, and stays in the calendar":    {nil, Pulled{Cursor: c, Bookings: []Booking{sold("a", -1), sold("b", -5)}}, Plan{Cursor: c}},
		"ends in an hour":                     {nil, Pulled{Cursor: c, Bookings: []Booking{sold("a", 0)}}, Plan{Cursor: c, Add: []Booking{sold("a", 0)}}},
		"moved into the past":                 {[]Known{known("a", 5, 0)}, Pulled{Cursor: c, Bookings: []Booking{sold("a", -2)}}, Plan{Cursor: c, Cancel: []string{"a"}}},
		"shortened to the past, in progress":  {[]Known{known("a", 0, 1)}, Pulled{Cursor: c, Bookings: []Booking{sold("a", -1)}}, Plan{Cursor: c, Seen: []string{"a"}}},
		"missing once":                        {[]Known{known("a", 5, 0)}, Pulled{Cursor: c}, Plan{Cursor: c, Miss: []string{"a"}}},
		"missing twice":                       {[]Known{known("a", 5, 1)}, Pulled{Cursor: c}, Plan{Cursor: c, Cancel: []string{"a"}}},
		"missing again, not modified":         {[]Known{known("a", 5, 1), known("b", 6, 0)}, Pulled{Unchanged: true, Cursor: c}, Plan{Cursor: c, Cancel: []string{"a"}, Seen: []string{"b"}}},
		"begun":                               {[]Known{known("a", 0, 1), known("b", -5, 1)}, Pulled{Cursor: c}, Plan{Cursor: c}},
		"begun, not modified":                 {[]Known{known("a", 0, 1)}, Pulled{Unchanged: true, Cursor: c}, Plan{Cursor: c}},
		"missing from a broken feed":          {[]Known{known("a", 5, 1)}, Pulled{Cursor: c, Problems: []string{"x"}, Bookings: []Booking{sold("b", 6)}}, Plan{Add: []Booking{sold("b", 6)}}},
		"half vanish":                         {four, Pulled{Cursor: c, Bookings: []Booking{sold("a", 1), sold("b", 2)}}, Plan{Cursor: c, Seen: []string{"a", "b"}, Miss: []string{"c", "d"}}},
		"more than half vanish":               {four, Pulled{Cursor: c, Bookings: []Booking{sold("a", 1)}}, Plan{Seen: []string{"a"}, Suspicious: true}},
		"all vanish, one for the second time": {append(four[:3:3], known("d", 4, 1)), Pulled{Cursor: c}, Plan{Suspicious: true}},
		"two of two are no sample":            {four[:2], Pulled{Cursor: c}, Plan{Cursor: c, Miss: []string{"a", "b"}}},
		"twice in a feed":                     {nil, Pulled{Cursor: c, Bookings: []Booking{sold("a", 5), sold("a", 6)}}, Plan{Cursor: c, Add: []Booking{sold("a", 5)}}},
	} {
		if got := Reconcile(tc.known, tc.pulled, now); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tc.want)
		}
	}
}

// For any content of a calendar, a booking is cancelled only if the calendar cancels it or omitted it twice in a row,
// complete, before it began. A booking that stays missing is cancelled eventually, and none is placed after its end.
func TestReconcileOverManyPulls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := map[string]Known{}
		lacked := map[string]int{} // number of successive complete pulls without it
		var last []Booking
		var cursor Cursor
		clock := now
		for step := range rapid.IntRange(1, 30).Draw(t, "pulls") {
			clock = clock.Add(time.Duration(rapid.SampledFrom([]int{5, 5, 5, 60}).Draw(t, "minutes")) * time.Minute)
			var pulled Pulled
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // a broken entry
				pulled.Problems = []string{"x"}
			case 1: // not modified, if a cursor was sent
				pulled.Unchanged = cursor != Cursor{}
			}
			if pulled.Unchanged {
				pulled.Cursor = cursor
			} else {
				last = nil
				for _, hours := range rapid.SliceOfDistinct(rapid.IntRange(-3, 12), rapid.ID).Draw(t, "sold") {
					b := sold(fmt.Sprint("b", hours), hours)
					b.Cancelled = rapid.IntRange(0, 9).Draw(t, "cancelled") == 0
					last = append(last, b)
				}
				pulled.Bookings, pulled.Cursor = last, Cursor{ETag: fmt.Sprint(step)}
			}
			list := make([]Known, 0, len(live))
			for id, k := range live {
				if !k.End.After(clock) {
					delete(live, id)
					delete(lacked, id)
					continue
				}
				list = append(list, k)
			}
			plan := Reconcile(list, pulled, clock)
			cursor = plan.Cursor

			there, ended := map[string]bool{}, map[string]bool{}
			for _, b := range last {
				there[b.ExternalID], ended[b.ExternalID] = !b.Cancelled, b.Cancelled
			}
			for id := range live {
				if there[id] {
					lacked[id] = 0
				} else if len(pulled.Problems) == 0 && !plan.Suspicious {
					lacked[id]++
				}
			}
			inOneList := map[string]int{}
			for _, b := range slices.Concat(plan.Add, plan.Change) {
				inOneList[b.ExternalID]++
				if !b.End.After(clock) {
					t.Fatalf("%s is placed at %v, %v after its end", b.ExternalID, b.Start, clock.Sub(b.End))
				}
				live[b.ExternalID] = Known{ExternalID: b.ExternalID, Start: b.Start, End: b.End}
				lacked[b.ExternalID] = 0
			}
			for _, id := range slices.Concat(plan.Cancel, plan.Seen, plan.Miss) {
				inOneList[id]++
				if _, ok := live[id]; !ok {
					t.Fatalf("%s is not known", id)
				}
			}
			for id, n := range inOneList {
				if n > 1 {
					t.Fatalf("%s is in %d lists of %+v", id, n, plan)
				}
			}
			for _, id := range plan.Cancel {
				if !ended[id] && (lacked[id] < missesToCancel || !live[id].Start.After(clock)) {
					t.Fatalf("%s cancelled after %d misses", id, lacked[id])
				}
				delete(live, id)
				delete(lacked, id)
			}
			for id, n := range lacked {
				if n > missesToCancel && live[id].Start.After(clock) && !plan.Suspicious {
					t.Fatalf("%s is kept after %d misses", id, n)
				}
			}
			for _, id := range plan.Seen {
				k := live[id]
				k.Missed = 0
				live[id] = k
			}
			for _, id := range plan.Miss {
				k := live[id]
				k.Missed++
				live[id] = k
			}
		}
	})
}
