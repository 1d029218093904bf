package passsim

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/agent/internal/pass"
	"github.com/yeolda/yeolda/firmware-sim/testkit/seeds"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// calm is the seed of a run without faults: every guest gets in.
const calm = 0

const length = 2 * time.Hour

type event struct {
	at time.Duration
	do func()
}

func newWorld(seed uint64, planted plant) *world {
	w := &world{plant: planted, rand: rand.New(rand.NewPCG(seed, 0x9A55)), start: time.Now(), counts: map[string]int{}}
	w.cloud = &cloud{w: w, epoch: 1, keys: map[string][]byte{}, lists: map[string][]issued{}, applied: map[string]protocol.PassApplied{},
		codes: map[string]*madeCode{}, entries: map[string]map[uint64]protocol.PassEntry{}, last: map[string]uint64{}}
	for i, username := range []string{"agent-gangnam", "agent-gangnam-2"} {
		m := &machine{w: w, username: username, latest: map[string]string{}, keypads: map[string]chan struct{}{}, hardware: seed == calm || w.rand.IntN(2) == 0}
		for _, device := range devices {
			m.keypads[device] = make(chan struct{}, 1)
		}
		m.disk = &disk{m: m, files: map[string][]byte{}, durable: map[string][]byte{}}
		w.cloud.keys[username] = bytes.Repeat([]byte{byte(i + 1)}, protocol.CodeKeySize)
		w.agents = append(w.agents, m)
	}
	w.cloud.active = w.agents[0]
	return w
}

// simulate runs one schedule.
func simulate(planted plant) func(seed uint64) seeds.Result {
	return func(seed uint64) seeds.Result {
		w := newWorld(seed, planted)
		r := rand.New(rand.NewPCG(seed, 0x5C53))
		plan := guests(r, w)
		if seed != calm {
			plan = append(plan, staff(r, w)...)
			plan = append(plan, thieves(r, w)...)
			plan = append(plan, power(r, w)...)
		}
		slices.SortStableFunc(plan, func(a, b event) int { return int(a.at - b.at) })
		for _, m := range w.agents {
			m.boot()
		}
		time.Sleep(time.Second)
		w.cloud.publish()
		for _, e := range plan {
			time.Sleep(time.Until(w.start.Add(e.at)))
			e.do()
		}
		w.finish()
		return seeds.Result{Violations: w.violations, Trace: func() string { return strings.Join(w.trace, "\n") }, Counts: w.counts}
	}
}

// finish lets the agents deliver their journals, and checks that they are complete.
func (w *world) finish() {
	for _, m := range w.agents {
		m.mu.Lock()
		m.cut = false
		off := m.run == nil || m.run.dead()
		m.mu.Unlock()
		if off {
			m.stopAgent()
			m.boot()
		}
	}
	w.cloud.publish()
	time.Sleep(2 * time.Minute)
	for _, m := range w.agents {
		m.stopAgent()
	}
	time.Sleep(time.Minute) // messages on their way
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	opened := 0
	for journal, entries := range w.cloud.entries {
		previous := ""
		for n := uint64(1); n <= uint64(len(entries)); n++ {
			e, ok := entries[n]
			if !ok || e.Previous != previous {
				w.violations = append(w.violations, "the chain of journal "+journal+" is broken")
				break
			}
			if previous = e.Hash; e.Outcome == protocol.EntryOpened || e.Outcome == protocol.EntryUnknown || e.Outcome == protocol.EntryFailed {
				opened++
			}
		}
	}
	if driven := w.counts["opened by pin"] + w.counts["opened by code"]; opened < driven && w.plant != lossyJournal {
		w.violations = append(w.violations, "an opening is missing in the journal")
	}
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(max(to-from, 1))))
}

// guests come before, in and after their time, with PINs and codes.
func guests(r *rand.Rand, w *world) (plan []event) {
	for _, room := range []string{"room_1", "room_2", "room_3"} {
		for at := between(r, 2*time.Minute, 30*time.Minute); at < length-40*time.Minute; at += between(r, 10*time.Minute, 40*time.Minute) {
			end := at + between(r, 15*time.Minute, 40*time.Minute)
			g := &guest{room: room, notBefore: w.start.Add(at).UTC().Truncate(time.Second), notAfter: w.start.Add(end).UTC().Truncate(time.Second)}
			w.cloud.guests = append(w.cloud.guests, g)
			w.cloud.renew(g)
			for range 3 + r.IntN(3) {
				when, device := between(r, at-3*time.Minute, end+3*time.Minute), []string{"front_1", "front_2", room, room, "room_1"}[r.IntN(5)]
				switch r.IntN(8) {
				case 0:
					when = at + time.Duration(r.IntN(21)-10)*100*time.Millisecond
				case 1:
					when = end + time.Duration(r.IntN(41)-20)*100*time.Millisecond
				case 2: // when a clock that is wrong by an hour shows the time of the stay
					when = between(r, at, end) + time.Duration(2*r.IntN(2)-1)*time.Hour
				}
				old := r.IntN(5) == 0
				plan = append(plan, event{max(when, 10*time.Second), func() {
					pin := g.pin
					if old && len(g.earlierPINs) > 0 {
						pin = g.earlierPINs[0]
					}
					go w.cloud.active.enter(device, pin)
				}})
			}
			if w.intN(2) == 0 {
				plan = append(plan, codes(r, w, between(r, at, end), room)...)
			}
			at = end
		}
	}
	return plan
}

// codes makes a code and uses it, once or several times, in time or late, at its door or another.
func codes(r *rand.Rand, w *world, at time.Duration, room string) (plan []event) {
	device := []string{"front_1", room}[r.IntN(2)]
	var digits string
	plan = append(plan, event{at, func() { digits = w.cloud.code(device) }})
	use := func(after time.Duration, where string) {
		plan = append(plan, event{at + after, func() {
			if digits != "" {
				go w.cloud.active.enter(where, digits)
			}
		}})
	}
	for range 1 + r.IntN(3) {
		where := device
		if r.IntN(3) == 0 {
			where = devices[r.IntN(len(devices))]
		}
		after := between(r, time.Second, 50*time.Second)
		if r.IntN(3) == 0 {
			after = between(r, 55*time.Second, 130*time.Second)
		}
		use(after, where)
	}
	if r.IntN(4) == 0 { // at two front doors in the same moment
		use(20*time.Second, "front_1")
		use(20*time.Second, "front_2")
	}
	return plan
}

// staff cancel, move and rotate, and activate the other machine.
func staff(r *rand.Rand, w *world) (plan []event) {
	for range 6 {
		g := w.cloud.guests[r.IntN(len(w.cloud.guests))]
		what := r.IntN(4)
		shift := between(r, -20*time.Minute, 20*time.Minute).Truncate(time.Second)
		plan = append(plan, event{between(r, time.Minute, length), func() {
			switch what {
			case 0:
				if !g.cancelled {
					g.cancelled = true
					w.log("cancelled %s", g.pin)
					w.cloud.free(g)
				}
			case 1:
				if shift.Abs() > g.notAfter.Sub(g.notBefore) && !g.cancelled {
					w.cloud.free(g)
				}
				g.notBefore, g.notAfter = g.notBefore.Add(shift), g.notAfter.Add(shift)
				w.cloud.renew(g)
			default:
				w.cloud.renew(g)
			}
			w.cloud.publish()
		}})
		for range 2 { // the guest comes nevertheless, right after the change
			plan = append(plan, event{plan[len(plan)-1].at + between(r, 0, 5*time.Second), func() { go w.cloud.active.enter(g.room, g.pin) }})
		}
	}
	for at := 15 * time.Minute; at < length; at += 15 * time.Minute {
		plan = append(plan, event{at, w.cloud.publish})
	}
	for at := time.Minute; at < length; at += 10 * time.Second {
		plan = append(plan, event{at, w.cloud.sell})
	}
	if r.IntN(3) == 0 {
		plan = append(plan, event{between(r, 10*time.Minute, length), func() {
			w.cloud.active = w.agents[1]
			w.cloud.epoch++
			for _, g := range w.cloud.guests {
				w.cloud.renew(g)
			}
			w.log("activated %s", w.agents[1].username)
			w.cloud.publish()
		}})
	}
	return plan
}

// thieves replay and forge lists, guess, and use the other machine.
func thieves(r *rand.Rand, w *world) (plan []event) {
	for range 6 {
		what, which := r.IntN(6), r.IntN(1<<20)
		m := w.agents[r.IntN(2)]
		plan = append(plan, event{between(r, time.Minute, length), func() {
			w.cloud.mu.Lock()
			lists, others := slices.Clone(w.cloud.lists[m.username]), slices.Clone(w.cloud.lists[w.agents[0].username])
			w.cloud.mu.Unlock()
			l := lists[which%len(lists)].list
			switch what {
			case 0: // an earlier list
			case 1: // of the other machine
				l = others[which%len(others)].list
			case 2: // with a longer window
				l.Version += 1000
				l.Passes = slices.Clone(l.Passes)
				for i := range l.Passes {
					l.Passes[i].NotAfter = l.Passes[i].NotAfter.Add(time.Hour)
					l.Passes[i].NotBefore = l.Passes[i].NotBefore.Add(-time.Hour)
				}
			case 3: // an earlier list as a later one, signed with the thief's own key
				l.Epoch++
				l = l.Sign(thiefKey, m.username)
			case 4: // an old list as a later one
				l.Version, l.IssuedAt = l.Version+1, time.Now().UTC().Truncate(time.Millisecond)
			case 5: // the cloud's own, for another branch
				l.Branch, l.Epoch = "hongdae", l.Epoch+1
				l = l.Sign(cloudKey, m.username)
			}
			m.toAgent(func(d *pass.Controller) { d.List(l) })
		}})
	}
	for range 3 { // guesses, and codes of the past
		m, device, n := w.agents[r.IntN(2)], devices[r.IntN(len(devices))], r.IntN(1_000_000)
		plan = append(plan, event{between(r, time.Minute, length), func() {
			go func() {
				for i := range 12 {
					digits := strings.Repeat("0", 6) + "00"
					if i%2 == 0 {
						digits = "0" + strings.Repeat(string(rune('0'+(n+i)%10)), 5)
					}
					m.enter(device, digits)
				}
			}()
		}})
	}
	for range 3 { // codes for another branch, or for another door
		m, device, branch, made := w.agents[r.IntN(2)], devices[r.IntN(len(devices))], "hongdae", ""
		if r.IntN(2) == 0 {
			made = devices[r.IntN(len(devices))]
		}
		plan = append(plan, event{between(r, time.Minute, length), func() {
			if made != "" {
				if digits := w.cloud.code(made); digits != "" {
					go m.enter(device, digits)
				}
				return
			}
			w.count("code of another branch")
			go m.enter(device, protocol.Code(w.cloud.keys[m.username], branch, protocol.CodeDevice(device), protocol.Step(time.Now()), 0))
		}})
	}
	// A guest of the active machine types at the other one, too.
	for range 4 {
		g := w.cloud.guests[r.IntN(len(w.cloud.guests))]
		plan = append(plan, event{g.notBefore.Sub(w.start) + time.Minute, func() { go w.agents[1].enter(g.room, g.pin) }})
	}
	return plan
}

// power cuts the power and the network, and sets clocks.
func power(r *rand.Rand, w *world) (plan []event) {
	for _, m := range w.agents {
		for range r.IntN(4) {
			from := between(r, 0, length)
			plan = append(plan, event{from, func() { m.setCut(true) }},
				event{from + between(r, time.Minute, time.Hour), func() { m.setCut(false); w.cloud.publish() }})
		}
		for range r.IntN(4) {
			at := between(r, 0, length)
			if r.IntN(3) == 0 { // the agent alone
				plan = append(plan, event{at, m.stopAgent}, event{at + 2*time.Second, func() {
					if m.stopped() {
						m.disk.reboot()
						m.startAgent()
					}
				}})
				continue
			}
			plan = append(plan, event{at, m.stopAgent}, event{at + between(r, 5*time.Second, 5*time.Minute), func() {
				if m.stopped() {
					w.count("reboot")
					m.boot()
				}
			}})
		}
		for range r.IntN(3) { // in the middle of writing the journal
			torn := r.IntN(2) == 0
			n := 1 + r.IntN(4)
			at := between(r, 0, length)
			plan = append(plan, event{at, func() { m.disk.cut(n, torn) }})
			for after := time.Minute; after < 20*time.Minute; after += time.Minute {
				plan = append(plan, event{at + after, func() {
					m.mu.Lock()
					dead := m.run != nil && m.run.dead()
					m.mu.Unlock()
					if dead {
						m.stopAgent()
						m.boot()
					}
				}})
			}
		}
		for range r.IntN(3) {
			step := time.Duration(2*r.IntN(2)-1) * time.Hour
			rtc := r.IntN(2) == 0
			plan = append(plan, event{between(r, 0, length), func() { m.step(step, rtc) }})
		}
	}
	return plan
}

func (m *machine) setCut(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
}

func (m *machine) stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run == nil
}

// step sets the system clock, and the hardware clock with it if the machine runs.
func (m *machine) step(by time.Duration, rtc bool) {
	m.mu.Lock()
	m.wall += by
	m.w.log("%s: the system clock is set by %v, the hardware clock too: %v", m.username, by, rtc)
	running := m.run != nil && !m.run.dead()
	if rtc && running && by != 0 {
		m.rtcOffset += by
		m.rtcGood = false
	}
	m.mu.Unlock()
	if rtc && running { // a restart in the same moment is not part of the promise
		time.Sleep(10 * time.Second)
	}
}

func (d *disk) cut(after int, torn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAfter, d.torn = after, torn
}

func simulation(planted plant) seeds.Simulation {
	return seeds.Simulation{Run: simulate(planted), Rare: 10, Cost: 10, Covered: []string{
		"opened by pin", "opened by code", "reboot", "power cut at the journal", "reason wrong", "reason used", "reason too-late",
		"reason too-early", "reason other-door", "reason locked-out", "reason clock-untrusted", "sold again", "code of another branch",
	}}
}

func TestRandomSchedules(t *testing.T) { simulation(none).Check(t) }

// TestCalmBranch checks that without faults every right PIN and code opens its door.
func TestCalmBranch(t *testing.T) {
	simulation(none).CheckOne(t, calm, func(counts map[string]int) bool {
		return counts["opened by pin"] > 5 && counts["opened by code"] > 0 && counts["reason clock-untrusted"]+counts["reason no-list"]+counts["reason busy"] == 0
	})
}

// TestPlantedFaults checks that the simulation finds each fault.
func TestPlantedFaults(t *testing.T) {
	for _, planted := range []plant{wallClock, anySignature, lossyJournal, lossyList, earlyApplied, rebootTrust, hastySale} {
		t.Run(string(planted), func(t *testing.T) {
			seed, violations := simulation(planted).Find(t, 3000)
			if seed == 0 {
				t.Fatal("not found")
			}
			t.Logf("seed %d: %s", seed, violations[0])
		})
	}
}
