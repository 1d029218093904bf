package proof

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/contend"
	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/soak"
)

// settleBar is the limit of the time until money settles without faults (M2).
const settleBar = 3 * time.Minute

// figures returns how much happened, and how long recovery took.
func figures(r *record.Record, options soak.Options) []part.Figure {
	var unknown, presses, opened, failed int
	for _, o := range r.Ops {
		if !o.Known() {
			unknown++
		}
	}
	for _, p := range r.Presses {
		if p.RequestID != "" {
			presses++
		}
		for _, told := range p.Told {
			switch told.Status {
			case "SUCCESS":
				opened++
			case "FAILED":
				failed++
			}
		}
	}
	settled := settledAfter(r)
	list := []part.Figure{
		{Name: "length of the disturbed part", Value: options.For.Seconds(), Unit: "s"},
		{Name: "requests about reservations", Value: float64(len(r.Ops))},
		{Name: "of these, answers that left the outcome unknown", Value: float64(unknown)},
		{Name: "look-ups", Value: float64(len(r.Lookups))},
		{Name: "unlock requests accepted", Value: float64(presses)},
		{Name: "subscribers that received SUCCESS", Value: float64(opened)},
		{Name: "subscribers that received FAILED", Value: float64(failed)},
		{Name: "pulses of locks", Value: float64(len(r.Pulses))},
		{Name: "calls to the payment provider", Value: float64(len(r.Provider.Calls))},
		{Name: "won charged", Value: float64(r.Provider.Charged), Unit: "won"},
		{Name: "won refunded", Value: float64(r.Provider.Refunded), Unit: "won"},
		{Name: "messages and callbacks forged", Value: float64(len(r.Forged))},
		{Name: "longest transaction idle in the disturbed part (partitions included)", Value: longest(r).Seconds() * 1000, Unit: "ms"},
		{Name: "time until money settled after the faults", Value: settled.Seconds(), Unit: "s", Bar: "at most 180", Met: settled <= settleBar},
	}
	kinds := map[string]int{}
	for _, f := range r.Faults {
		kind := f.Kind
		if kind == "kill" {
			kind += " -9 " + strings.TrimRight(f.Target, "-12")
		}
		kinds[kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		list = append(list, part.Figure{Name: "faults: " + kind, Value: float64(kinds[kind])})
	}
	return list
}

// settledAfter returns when the last order of the disturbed part reached a final state after all faults were cleared.
// Accounts may wait for their deposit until it is due.
func settledAfter(r *record.Record) (latest time.Duration) {
	for _, v := range r.History {
		if v.State != "CONFIRMING" && v.State != "CANCELING" || v.At.After(r.Quiet) {
			continue
		}
		latest = max(latest, v.Until.Sub(r.Quiet))
	}
	return latest
}

func longest(r *record.Record) (d time.Duration) {
	for _, i := range r.Idle {
		d = max(d, i.Took)
	}
	return d
}

// plotted are the requests whose times are plotted.
var plotted = map[string]string{
	"POST /reservation":     "hold",
	"POST /payment/confirm": "confirmation",
	"POST /door/v2/unlock":  "press",
	"GET /reservations":     "look-up",
}

// speeds returns the medians and tails of the plotted times.
func speeds(times map[string][]time.Duration) (list []part.Figure) {
	for _, name := range slices.Sorted(maps.Keys(times)) {
		sorted := times[name]
		at := func(q float64) float64 {
			return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]) / float64(time.Millisecond)
		}
		list = append(list,
			part.Figure{Name: name + " during faults, median", Value: at(.5), Unit: "ms"},
			part.Figure{Name: name + " during faults, 99 of 100", Value: at(.99), Unit: "ms"})
	}
	return list
}

// timed returns the latencies of answers before the quiet part, by request.
func timed(r *record.Record, latencies []soak.Latency) map[string][]time.Duration {
	times := map[string][]time.Duration{}
	for _, l := range latencies {
		if name := plotted[l.What]; name != "" && l.Status > 0 && l.Status < 500 && l.At.Before(r.Quiet) {
			times[name] = append(times[name], l.Took)
		}
	}
	for _, p := range r.Presses {
		for _, told := range p.Told {
			if told.Status == "SUCCESS" {
				times["press to SUCCESS"] = append(times["press to SUCCESS"], told.At.Sub(p.Call))
				break
			}
		}
	}
	for _, list := range times {
		slices.Sort(list)
	}
	return times
}

// series returns the latencies and rates that clients saw, and the number of faults over time.
func series(r *record.Record, latencies []soak.Latency) []part.Series {
	const bucket = 5 * time.Second
	buckets := int(r.Quiet.Sub(r.Began)/bucket) + 1
	answered, lost := make([]float64, buckets), make([]float64, buckets)
	for _, l := range latencies {
		if n := int(l.At.Sub(r.Began) / bucket); n >= 0 && n < buckets {
			if l.Status == 0 || l.Status >= 500 {
				lost[n] += 1 / bucket.Seconds()
			} else {
				answered[n] += 1 / bucket.Seconds()
			}
		}
	}
	x, broken := make([]float64, buckets), make([]float64, buckets)
	for n := range buckets {
		x[n] = float64(n) * bucket.Seconds()
		at := r.Began.Add(time.Duration(n)*bucket + bucket/2)
		for _, f := range r.Faults {
			if f.At.Before(at) && f.Until.After(at) {
				broken[n]++
			}
		}
	}
	list := []part.Series{
		{Name: "answered", Plot: "Requests per second, as seen by clients", XName: "seconds", YName: "per second", X: x, Y: answered},
		{Name: "no answer, or 5xx", Plot: "Requests per second, as seen by clients", X: x, Y: lost},
		{Name: "faulty programs, links and branches", Plot: "Faults", XName: "seconds", YName: "concurrent", X: x, Y: broken},
	}
	times := timed(r, latencies)
	for _, name := range slices.Sorted(maps.Keys(times)) {
		list = append(list, contend.Curve(name, "Response times during faults", times[name]))
	}
	return list
}
