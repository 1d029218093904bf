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

// calm is the seed of a run without faults: every press must open its doors.
const calm = 0

// plant is a fault in the protocol that a run must find. The names are those of protocol/model/door.pml.
type plant string

// The planted faults.
const (
	none                plant = ""
	resultsOfStandby    plant = "RESULT_OF_STANDBY"
	claimsOfStandby     plant = "CLAIM_OF_STANDBY"                   // and the results of the agent that claimed
	sharedTopics        plant = "SHARED_TOPIC, RESULT_WITHOUT_NONCE" // the protocol before results had nonces
	droppedAfterRestart plant = "DROPPED_AFTER_RESTART"
	replicaClock        plant = "REPLICA_CLOCK"
)

// newFixture returns the fixture of a seed and the events of its run.
func newFixture(seed uint64, whole bool, planted plant) (w *fixture, plan []event) {
	r := rand.New(rand.NewPCG(seed, 0xD00A))
	start := time.Now()
	w = &fixture{seed: seed, plant: planted, start: start, end: start.Add(25 * time.Second), counts: map[string]int{},
		refuted: map[[2]string]bool{}, net: &network{seed: seed, sent: map[string]int{}, slow: 60 * time.Millisecond}}
	w.pi = newPi(w, "", devices)
	if seed != calm && !whole {
		addOthers(rand.New(rand.NewPCG(seed, 0x0B)), w)
	}
	w.cloud = newCloud(w)
	plan = presses(r, rand.New(rand.NewPCG(seed, 0xA4)), w)
	if seed != calm {
		plan = append(plan, faults(r, w)...)
		plan = append(plan, takeover(rand.New(rand.NewPCG(seed, 0x7A)), w)...)
	}
	return w, plan
}

// addOthers gives two of three branches a second Pi, and half of them a thief.
func addOthers(r *rand.Rand, w *fixture) {
	switch r.IntN(3) {
	case 0:
		w.others = append(w.others, newPi(w, "spare", devices)) // the same doors, with relays of its own
	case 1:
		w.others = append(w.others, newPi(w, "bench", nil))
	}
	w.crash = r.IntN(4) == 0
	if r.IntN(2) == 0 {
		w.thief = thieves[r.IntN(len(thieves))]
	}
}

// takeover activates the other Pi in some runs, and restarts it in some.
func takeover(r *rand.Rand, w *fixture) (plan []event) {
	for _, p := range w.others {
		if r.IntN(2) == 0 {
			plan = append(plan, event{moment(r, w, 7*time.Second), func() { w.cloud.activate(p) }})
		}
		if r.IntN(3) == 0 {
			at := moment(r, w, 6*time.Second)
			plan = append(plan, event{at, func() { p.crash(true) }}, event{at.Add(time.Second), p.boot})
		}
	}
	return plan
}

// event is one event of a run.
type event struct {
	at time.Time
	do func()
}

// moment returns a random time within the first seconds, to the nanosecond.
func moment(r *rand.Rand, w *fixture, within time.Duration) time.Time {
	return w.start.Add(time.Duration(r.Int64N(int64(within))))
}

func presses(r, announced *rand.Rand, w *fixture) (plan []event) {
	for n := range 1 + r.IntN(3) {
		id, key := newID(w.seed<<8+uint64(n)), []string{"", "guest", "guest", "other"}[r.IntN(4)]
		device, doors := "room_1", []string{"room_1"}
		if r.IntN(3) == 0 {
			device, doors = "front", []string{"front_1", "front_2"}
		}
		at := moment(r, w, 6*time.Second)
		plan = append(plan, event{at, func() { w.cloud.press(id, device, doors, key) }})
		if key != "" { // staff do not announce
			plan = append(plan, announcements(announced, w, n, at, device, doors, key)...)
		}
	}
	return plan
}

// announcements returns those of one press: mostly one a moment earlier, but also none, several, a late one, and those of another
// key or for another door, which no press follows.
func announcements(r *rand.Rand, w *fixture, press int, pressed time.Time, device string, doors []string, key string) (plan []event) {
	for i := range r.IntN(4) {
		id := newID(w.seed<<8 + 0x40 + uint64(press)<<3 + uint64(i))
		device, doors, key := device, doors, key
		at := pressed.Add(-time.Duration(r.Int64N(int64(300 * time.Millisecond))))
		switch r.IntN(8) {
		case 0:
			at = pressed.Add(time.Duration(r.Int64N(int64(time.Second)))) // late
		case 1:
			at = pressed.Add(-time.Duration(r.Int64N(int64(3 * time.Second)))) // long before
		case 2:
			key = "stranger"
		case 3:
			device, doors = "room_1", []string{"room_1"}
		}
		plan = append(plan, event{at, func() { w.cloud.announce(id, device, doors, key) }})
	}
	return plan
}

// faults returns the faults of a run: some in each, many in a few.
func faults(r *rand.Rand, w *fixture) (plan []event) {
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
			released, orderly := r.IntN(2) == 0, r.IntN(4) == 0
			plan = append(plan, event{at, func() {
				if orderly {
					w.pi.stop()
				} else {
					w.pi.crash(released)
				}
			}})
			at = at.Add(2*time.Second + time.Duration(1+r.Int64N(int64(3*time.Second)))) // longer than an orderly end takes
			plan = append(plan, event{at, w.pi.boot})
			at = at.Add(time.Duration(1 + r.Int64N(int64(2*time.Second))))
		}
	}
	for _, device := range devices {
		if r.IntN(3) == 0 {
			from := moment(r, w, 7*time.Second)
			w.pi.lines[device].faults = []defect{{from, from.Add(time.Duration(r.Int64N(int64(8 * time.Second)))),
				defects[r.IntN(len(defects))], time.Duration(r.Int64N(int64(700 * time.Millisecond)))}}
		}
	}
	if r.IntN(3) == 0 {
		plan = append(plan, event{moment(r, w, 8*time.Second), func() { w.cloud.revoke("guest") }})
	}
	return plan
}

// run runs a seed in a synctest bubble.
func run(seed uint64) *fixture { return runWith(seed, false, none) }

func runWith(seed uint64, whole bool, planted plant) *fixture {
	w, plan := newFixture(seed, whole, planted)
	if whole {
		w.broker = &broker{w: w}
	}
	w.cloud.start()
	for _, p := range w.pis() {
		p.boot()
	}
	for _, e := range plan {
		time.AfterFunc(time.Until(e.at), e.do)
	}
	time.Sleep(time.Minute + 30*time.Second) // until every message has arrived, and results are forgotten
	synctest.Wait()
	w.close()
	for _, p := range w.pis() {
		p.process().close()
	}
	synctest.Wait()
	return w
}

// simulation runs the seeds of the protocol as it is.
var simulation = seeds.Simulation{
	Run:     func(seed uint64) seeds.Result { return run(seed).result() },
	Covered: []string{"SUCCESS", "FAILED", "UNKNOWN", "denied", "forged", "drives", "reported failed", "reported dropped", "reported unknown", "results ignored", "lies", "activations", "announced", "granted at once", "claims discarded"},
	Rare:    100,
}

// regressions are seeds that once violated a rule. They stay.
var regressions []seeds.Regression

func (w *fixture) result() seeds.Result {
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

// TestPlantedFaultsAreFound plants faults of the protocol and expects a violation within a thousand seeds.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for _, planted := range []plant{resultsOfStandby, claimsOfStandby, sharedTopics, droppedAfterRestart, replicaClock} {
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			s := seeds.Simulation{Run: func(seed uint64) seeds.Result { return runWith(seed, false, planted).result() }}
			seed, violations := s.Find(t, 1000)
			if seed == 0 {
				t.Fatal("no seed of 1,000 violates a rule")
			}
			t.Logf("seed %d: %s", seed, violations[0])
		})
	}
}
