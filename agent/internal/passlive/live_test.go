package passlive

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// processVariable holds the settings of an agent's process.
const processVariable = "YEOLDA_PASSLIVE_AGENT"

func TestMain(m *testing.M) {
	if text := os.Getenv(processVariable); text != "" {
		if err := runAgent(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	// schedules is how many schedules a test runs; YEOLDA_PASS_SCHEDULES is another number, YEOLDA_PASS_SEED the first seed.
	schedules = 16
	// atOnce is how many run side by side. They wait for disks and sockets most of the time.
	atOnce = 24
	steps  = 40
)

// setting returns a number of the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSchedules runs random schedules against processes.
func TestSchedules(t *testing.T) {
	n, first := setting(t, "YEOLDA_PASS_SCHEDULES", schedules), setting(t, "YEOLDA_PASS_SEED", 1)
	var mu sync.Mutex
	total := map[string]int{}
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				w := newWorld(t, seed, brokertest.PublicKeys())
				w.schedule()
				w.finish()
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.violations) > 0 {
					t.Errorf("%s\n%s", strings.Join(w.violations, "\n"), strings.Join(w.trace, "\n"))
				}
				mu.Lock()
				defer mu.Unlock()
				for what, count := range w.counts {
					total[what] += count
				}
			})
		})
	}
	running.Wait()
	t.Logf("%d schedules from seed %d: %v", n, first, total)
	for _, what := range []string{"opened by pin", "opened by code", "reboot", "reason wrong", "reason used", "reason too-late"} {
		if total[what] == 0 {
			t.Errorf("no schedule has %q", what)
		}
	}
}

// TestPlantedFault checks that the rules notice an agent that trusts the key of a thief.
func TestPlantedFault(t *testing.T) {
	w := newWorld(t, 1, append(brokertest.PublicKeys(), thiefKey.Public().(ed25519.PublicKey)))
	w.mu.Lock()
	g := w.add("room_1", w.now().Add(2*time.Hour), w.now().Add(3*time.Hour))
	w.mu.Unlock()
	w.settle()
	w.mu.Lock()
	l := w.lists[w.active.username][len(w.lists[w.active.username])-1].list
	l.Version += 100
	l.Passes = slices.Clone(l.Passes)
	l.Passes[0].NotBefore = w.now().Add(-time.Hour).UTC().Truncate(time.Second)
	w.mu.Unlock()
	tries := 0
	w.until(func() bool {
		if tries++; tries%100 == 1 { // of two lists that arrive together, the agent uses the later one
			w.broker.SendTo(protocol.Agent{Branch: branch, Username: w.active.username}, l.Sign(thiefKey, w.active.username))
		}
		return w.applied[w.active.username].Version == l.Version
	})
	w.active.enter("room_1", g.pin)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) == 0 {
		t.Errorf("the forged list opened nothing, or was not noticed:\n%s", strings.Join(w.trace, "\n"))
	}
}

// patience is how many times the tests wait for what must happen at last: the processes of a loaded machine are slow.
const patience = 12

// until waits for a condition, at most ten seconds. It is called with w.mu free and calls is with w.mu held.
func (w *world) until(is func() bool) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		ok := is()
		w.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

// settle publishes the lists and waits until the active agent uses its list and knows the time.
func (w *world) settle() {
	w.mu.Lock()
	p := w.active
	w.mu.Unlock()
	w.until(func() bool { return p.sealKey != "" && p.knows })
	w.mu.Lock()
	w.publish()
	last := w.last(p)
	w.mu.Unlock()
	w.until(func() bool { return w.applied[p.username].Version >= last })
}

// between returns a random duration.
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rand.Int64N(int64(to-from)))
}

// schedule runs one schedule.
func (w *world) schedule() {
	w.mu.Lock()
	for _, room := range []string{"room_1", "room_2", "room_3"} {
		at := w.now().Add(w.between(-10*time.Minute, 10*time.Minute))
		for range 3 {
			end := at.Add(w.between(20*time.Minute, time.Hour))
			w.add(room, at, end)
			at = end
		}
	}
	w.mu.Unlock()
	w.settle()
	var typing sync.WaitGroup
	defer typing.Wait()
	for range steps {
		w.mu.Lock()
		step := w.rand.IntN(26)
		g := w.guests[w.rand.IntN(len(w.guests))]
		p := w.agents[w.rand.IntN(2)]
		active := w.active
		device := devices[w.rand.IntN(len(devices))]
		which, half := w.rand.IntN(1<<20), w.rand.IntN(2) == 0
		short, long := w.between(time.Second, 10*time.Minute), w.between(30*time.Minute, time.Hour)
		w.mu.Unlock()
		switch {
		case step < 8: // guests of the moment, mostly at their doors
			w.mu.Lock()
			now := w.now()
			if i := slices.IndexFunc(w.guests, func(g *guest) bool { return !g.cancelled && !now.Before(g.notBefore) && now.Before(g.notAfter) }); which%4 != 0 && i >= 0 {
				g = w.guests[i]
			}
			pin, door := g.pin, []string{"front_1", g.room, g.room, device}[which%4]
			if len(g.earlier) > 0 && which%5 == 0 {
				pin = g.earlier[0]
			}
			w.mu.Unlock()
			active.enter(door, pin)
		case step < 12:
			w.useCode(device, which, &typing)
		case step < 14: // to the edge of a stay, where its PIN is typed on both sides
			w.mu.Lock()
			edge := g.notBefore
			if half {
				edge = g.notAfter
			}
			left, pin, room := edge.Sub(w.now()), g.pin, g.room
			w.mu.Unlock()
			if left > 5*time.Second {
				w.jump(left - 2*time.Second)
				active.enter(room, pin)
				w.jump(3 * time.Second)
				active.enter(room, pin)
			}
		case step < 16:
			w.jump(short)
		case step < 17:
			w.jump(long)
		case step < 19:
			w.change(g, which, &typing)
		case step < 20:
			w.forge(p, which)
		case step < 21:
			if half {
				p.send(command{Do: "cut"})
			} else {
				p.send(command{Do: "restore"})
			}
		case step < 23: // while a code is judged, half of the time
			if half {
				w.useCode(device, which, &typing)
			}
			w.restart(p, which)
		case step < 24:
			w.setClock(p, which)
		case step < 25:
			for i := range 3 {
				p.enter(device, fmt.Sprintf("0%05d", (which+i)%100_000))
			}
		default:
			w.activate(which)
		}
	}
}

// useCode makes a code and types it: at its door or another, once or twice, at once or late, and after a restart.
func (w *world) useCode(device string, which int, typing *sync.WaitGroup) {
	w.mu.Lock()
	digits, active := w.code(device), w.active
	w.mu.Unlock()
	if digits == "" {
		return
	}
	where := device
	if which%4 == 0 {
		where = devices[which/4%len(devices)]
	}
	if which%5 == 0 {
		w.jump([]time.Duration{20 * time.Second, 59 * time.Second, 100 * time.Second, 119 * time.Second, 122 * time.Second}[which/5%5])
	}
	if which%3 == 0 { // at two doors in the same moment
		for _, door := range []string{"front_1", "front_2"} {
			typing.Go(func() { active.enter(door, digits) })
		}
		return
	}
	active.enter(where, digits)
	if which%2 == 0 {
		if which%7 == 0 {
			w.restart(active, 1)
			w.until(func() bool { return active.knows })
		}
		active.enter(where, digits)
	}
}

// change cancels, moves or rotates a stay. Its guest comes nevertheless.
func (w *world) change(g *guest, which int, typing *sync.WaitGroup) {
	w.mu.Lock()
	left := &freed{room: g.room, notBefore: g.notBefore, notAfter: g.notAfter, pins: append(slices.Clone(g.earlier), g.pin)}
	switch {
	case g.cancelled:
	case which%3 == 0:
		g.cancelled = true
		w.freed = append(w.freed, left)
		w.counts["cancelled"]++
	case which%3 == 1:
		g.notBefore, g.notAfter = g.notBefore.Add(2*time.Hour), g.notAfter.Add(2*time.Hour)
		w.renew(g)
		w.freed = append(w.freed, left)
		w.counts["moved"]++
	default:
		w.renew(g)
		w.counts["rotated"]++
	}
	w.sell()
	w.publish()
	active, last := w.active, w.last(w.active)
	w.mu.Unlock()
	for _, pin := range left.pins {
		typing.Go(func() { active.enter(left.room, pin) })
	}
	if which%2 == 0 {
		deadline := time.Now().Add(300 * time.Millisecond) // the agent may be off, or cut
		w.until(func() bool { return w.applied[active.username].Version >= last || time.Now().After(deadline) })
		w.mu.Lock()
		w.sell()
		w.publish()
		w.mu.Unlock()
		active.enter(left.room, left.pins[len(left.pins)-1])
	}
}

// forge sends an agent a list that it must not use.
func (w *world) forge(p *process, which int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lists := w.lists[w.agents[which%2].username]
	l := lists[which/2%len(lists)].list
	switch which % 5 {
	case 0: // an earlier list, perhaps of the other machine
	case 1: // changed
		l.Version += 1000
		l.Passes = slices.Clone(l.Passes)
		for i := range l.Passes {
			l.Passes[i].NotBefore, l.Passes[i].NotAfter = l.Passes[i].NotBefore.Add(-time.Hour), l.Passes[i].NotAfter.Add(time.Hour)
		}
	case 2:
		l.Epoch++
		l = l.Sign(thiefKey, p.username)
	case 3:
		l.Version, l.IssuedAt = l.Version+1, w.now().UTC().Truncate(time.Millisecond)
	case 4:
		l.Branch, l.Epoch = "hongdae", l.Epoch+1
		l = l.Sign(brokertest.Key, p.username)
	}
	w.counts["forged list"]++
	w.broker.SendTo(protocol.Agent{Branch: branch, Username: p.username}, l)
}

// restart kills the agent, and restarts the machine or the agent alone.
func (w *world) restart(p *process, which int) {
	time.Sleep(time.Duration(which%7) * time.Millisecond)
	p.kill()
	if which%3 == 0 {
		w.mu.Lock()
		w.counts["agent restarted"]++
		w.mu.Unlock()
		p.start()
		return
	}
	w.jump(time.Duration(5+which%300) * time.Second)
	w.mu.Lock()
	w.counts["reboot"]++
	w.mu.Unlock()
	p.boot()
}

// setClock sets the system clock by an hour, and sometimes the hardware clock, which a running agent notices.
func (w *world) setClock(p *process, which int) {
	step := time.Hour
	if which%2 == 0 {
		step = -step
	}
	w.mu.Lock()
	w.counts["clock set"]++
	p.settings.Wall += step
	w.mu.Unlock()
	p.send(command{Do: "wall", By: step})
	p.mu.Lock()
	running := p.running != nil
	p.mu.Unlock()
	if !p.hardware || !running || which%3 != 0 {
		return
	}
	p.send(command{Do: "hardware", By: step})
	w.mu.Lock()
	p.settings.Hardware += step
	p.rtcGood = false
	w.counts["hardware clock set"]++
	w.mu.Unlock()
	for range patience {
		if w.until(p.hardwareNoticed) { // a restart in the same moment is not part of the promise
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate("%s does not notice that its hardware clock was set", p.username)
}

// activate makes the other agent the active one.
func (w *world) activate(which int) {
	if which%3 != 0 {
		return
	}
	w.mu.Lock()
	w.active = w.agents[0]
	if which%2 == 0 {
		w.active = w.agents[1]
	}
	w.epoch++
	for _, g := range w.guests {
		w.renew(g)
	}
	w.counts["activated"]++
	w.publish()
	w.mu.Unlock()
}

// finish lets the agents deliver their journals, and checks that they are complete.
func (w *world) finish() {
	for _, p := range w.agents {
		p.mu.Lock()
		off := p.running == nil
		p.mu.Unlock()
		if off {
			p.boot()
		}
		p.send(command{Do: "restore"})
	}
	complete := func() bool {
		opened, driven := 0, 0
		for _, entries := range w.entries {
			previous := ""
			for n := uint64(1); n <= uint64(len(entries)); n++ {
				e, ok := entries[n]
				if !ok || e.Previous != previous {
					return false
				}
				if previous = e.Hash; e.Outcome != protocol.EntryRefused {
					opened++
				}
			}
		}
		for _, p := range w.agents {
			driven += p.driven
		}
		return opened >= driven
	}
	for range patience {
		if w.until(complete) {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate("an opening is missing in the journals, or a chain is broken")
}
