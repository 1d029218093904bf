package doorsim

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/testkit/seeds"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// calm is a world in which nothing goes wrong: every press must open its doors.
const calm = 0

// newWorld makes the world of a seed and what will happen in it.
func newWorld(seed uint64) (w *world, plan []event) {
	r := rand.New(rand.NewPCG(seed, 0xD00A))
	start := time.Now()
	w = &world{seed: seed, start: start, end: start.Add(25 * time.Second), lines: map[string]*line{}, counts: map[string]int{},
		lastDrive: map[string]time.Time{}, net: &network{seed: seed, sent: map[string]int{}, slow: 60 * time.Millisecond}}
	w.cloud = newCloud(w)
	for _, device := range []string{"front_1", "front_2", "room_1"} {
		w.lines[device] = &line{w: w, device: device, since: start}
	}
	plan = presses(r, w)
	if seed != calm {
		plan = append(plan, faults(r, w)...)
	}
	return w, plan
}

// event is something that happens in the world at a time.
type event struct {
	at time.Time
	do func()
}

// moment is a time within the first seconds, to the nanosecond.
func moment(r *rand.Rand, w *world, within time.Duration) time.Time {
	return w.start.Add(time.Duration(r.Int64N(int64(within))))
}

func presses(r *rand.Rand, w *world) (plan []event) {
	for n := range 1 + r.IntN(3) {
		id, key := newID(w.seed<<8+uint64(n)), []string{"", "guest", "guest", "other"}[r.IntN(4)]
		device, doors := "room_1", []string{"room_1"}
		if r.IntN(3) == 0 {
			device, doors = "front", []string{"front_1", "front_2"}
		}
		plan = append(plan, event{moment(r, w, 6*time.Second), func() { w.cloud.press(id, device, doors, key) }})
	}
	return plan
}

// faults are what goes wrong: in each world some of it, in some worlds a lot.
func faults(r *rand.Rand, w *world) (plan []event) {
	n := w.net
	some := func(chance float64, most float64) float64 {
		if r.Float64() < chance {
			return r.Float64() * most
		}
		return 0
	}
	n.slow += time.Duration(some(0.4, float64(900*time.Millisecond)))
	n.loss, n.again, n.tail, n.forge = some(0.5, 0.6), some(0.5, 0.6), some(0.4, 0.4), some(0.2, 1)
	for range r.IntN(3) {
		from := moment(r, w, 9*time.Second)
		n.partitions = append(n.partitions, partition{from, from.Add(time.Duration(r.Int64N(int64(9 * time.Second)))), r.IntN(2) == 0})
	}
	if r.IntN(3) == 0 {
		for at := moment(r, w, 8*time.Second); at.Before(w.start.Add(16*time.Second)) && len(n.cloudDown) < 3; {
			down := partition{at, at.Add(10*time.Millisecond + time.Duration(r.Int64N(int64(3*time.Second)))), false}
			n.cloudDown = append(n.cloudDown, down)
			plan = append(plan, event{down.from, w.cloud.crash}, event{down.to, w.cloud.start})
			at = down.to.Add(time.Duration(1 + r.Int64N(int64(9*time.Second))))
		}
	}
	if r.IntN(3) == 0 {
		at := moment(r, w, 5*time.Second)
		for range 1 + r.IntN(3) {
			letsGo, orderly := r.IntN(2) == 0, r.IntN(4) == 0
			plan = append(plan, event{at, func() {
				if orderly {
					w.stop()
				} else {
					w.crash(letsGo)
				}
			}})
			at = at.Add(2*time.Second + time.Duration(1+r.Int64N(int64(3*time.Second)))) // longer than an orderly end takes
			plan = append(plan, event{at, w.boot})
			at = at.Add(time.Duration(1 + r.Int64N(int64(2*time.Second))))
		}
	}
	for _, device := range []string{"front_1", "front_2", "room_1"} {
		if r.IntN(3) == 0 {
			from := moment(r, w, 7*time.Second)
			w.lines[device].faults = []defect{{from, from.Add(time.Duration(r.Int64N(int64(8 * time.Second)))),
				defects[r.IntN(len(defects))], time.Duration(r.Int64N(int64(700 * time.Millisecond)))}}
		}
	}
	if r.IntN(3) == 0 {
		plan = append(plan, event{moment(r, w, 8*time.Second), func() { w.cloud.revoke("guest") }})
	}
	return plan
}

// run lives through the world of a seed. It is called in a bubble.
func run(seed uint64) *world { return runWith(seed, false) }

func runWith(seed uint64, whole bool) *world {
	w, plan := newWorld(seed)
	if whole {
		w.broker = &broker{w: w}
	}
	w.cloud.start()
	w.boot()
	for _, e := range plan {
		time.AfterFunc(time.Until(e.at), e.do)
	}
	time.Sleep(time.Minute + 30*time.Second) // until everything that is on its way has come, and results are forgotten
	synctest.Wait()
	w.close()
	w.process().close()
	synctest.Wait()
	return w
}

// simulation runs the fixture of a seed.
var simulation = seeds.Simulation{
	Run:     func(seed uint64) seeds.Result { return run(seed).result() },
	Covered: []string{"SUCCESS", "FAILED", "UNKNOWN", "denied", "forged", "drives", "reported failed", "reported dropped"},
	Rare:    100,
}

// regressions are seeds that once violated a rule. They stay.
var regressions []seeds.Regression

func (w *world) result() seeds.Result {
	w.counts["requests"] = len(w.cloud.table.Rows())
	return seeds.Result{Violations: w.violations, Trace: w.trace, Counts: w.counts}
}

func TestCalmDoorsOpen(t *testing.T) {
	t.Parallel()
	simulation.CheckOne(t, calm, func(counts map[string]int) bool {
		return counts["SUCCESS"] > 0 && counts["SUCCESS"] == counts["requests"]
	})
}

func TestRegressions(t *testing.T) {
	t.Parallel()
	simulation.CheckRegressions(t, regressions)
}

func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	simulation.CheckRepeats(t, 60)
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	simulation.Check(t)
}
