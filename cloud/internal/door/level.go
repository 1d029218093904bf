package door

import (
	"math"
	"time"
)

// Day is the service of a door on one day.
type Day struct {
	Date             time.Time // midnight UTC of the date
	Presses, Success int
	P50, P95         int // ms from the press to its success; 0: none succeeded
	Retries          int
	PINs             int // disclosures
}

// Level is the service of a door over some days.
type Level struct {
	Branch string
	Device string
	Days   []Day // in order
}

// Verdict states whether a door needs attention.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "good"
	Watch   Verdict = "watch"   // it is slower every day, or needs retries
	Failing Verdict = "failing" // presses fail
	TooFew  Verdict = "too-few" // presses for a verdict
)

const (
	minPresses  = 10
	recentDays  = 7
	failingRate = 0.95 // of presses that succeed
	watchRate   = 0.99

	// A trend counts if it is steep and well above the noise of the days. TestSlowingLockIsFlagged shows how early a slowing
	// lock is found, and how rarely another one is.
	minTrendDays  = 5
	minTrend      = 8.0 // ms per day
	minConfidence = 6.0 // standard errors
	trendDays     = 14
)

// Total returns the sums over all days; latencies are means, weighted by successes.
func (l Level) Total() Day { return total(l.Days) }

func total(days []Day) (sum Day) {
	var p50, p95, weight int
	for _, d := range days {
		sum.Presses += d.Presses
		sum.Success += d.Success
		sum.Retries += d.Retries
		sum.PINs += d.PINs
		p50 += d.P50 * d.Success
		p95 += d.P95 * d.Success
		weight += d.Success
	}
	if weight > 0 {
		sum.P50, sum.P95 = p50/weight, p95/weight
	}
	return sum
}

// Trend returns by how many milliseconds the median grows per day, and how many standard errors that is. Both are 0 with too
// few days.
func (l Level) Trend() (perDay, confidence float64) {
	var x, y []float64
	for _, d := range l.Days[max(0, len(l.Days)-trendDays):] {
		if d.Success > 0 {
			x, y = append(x, float64(d.Date.Unix())/86400), append(y, float64(d.P50))
		}
	}
	n := float64(len(x))
	if len(x) < minTrendDays {
		return 0, 0
	}
	var meanX, meanY float64 // sums of whole numbers first, so that a constant y has the trend 0 exactly
	for i := range x {
		meanX, meanY = meanX+x[i], meanY+y[i]
	}
	meanX, meanY = meanX/n, meanY/n
	var xx, xy float64
	for i := range x {
		xx, xy = xx+(x[i]-meanX)*(x[i]-meanX), xy+(x[i]-meanX)*(y[i]-meanY)
	}
	perDay = xy / xx
	var rest float64
	for i := range x {
		e := y[i] - meanY - perDay*(x[i]-meanX)
		rest += e * e
	}
	if deviation := math.Sqrt(rest / (n - 2) / xx); deviation > 0 {
		return perDay, perDay / deviation
	}
	return perDay, math.Copysign(math.MaxFloat64, perDay)
}

// Verdict judges the latest week, and the trend of two.
func (l Level) Verdict() Verdict {
	recent := total(l.Days[max(0, len(l.Days)-recentDays):])
	rate := float64(recent.Success) / float64(max(recent.Presses, 1))
	perDay, confidence := l.Trend()
	switch {
	case recent.Presses < minPresses:
		return TooFew
	case rate < failingRate:
		return Failing
	case rate < watchRate && recent.Presses-recent.Success > 1, perDay >= minTrend && confidence >= minConfidence:
		return Watch
	}
	return Good
}
