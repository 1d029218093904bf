package climate_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

var stays = flag.Int("stays", 500, "simulated stays of TestAirFollowsStays")

// 500 stays with back-to-back stays, moves, extensions, early ends and cancellations, two replicas, windows that open, and
// units that ignore every fifth command.
func TestAirFollowsStays(t *testing.T) {
	t.Parallel()
	const rooms = 100
	each := max(1, *stays/rooms)
	s := simulate(t, rooms, 2, 1)
	s.ignores = 5
	var last time.Time
	for _, r := range s.rooms {
		start := simBegin.Add(time.Duration(60+10*s.random.IntN(12)) * time.Minute)
		for range each {
			end := start.Add(time.Duration(60+10*s.random.IntN(7)) * time.Minute)
			s.stay(r, start, end)
			gap := 10 // the shortest that is sold
			if s.random.IntN(4) > 0 {
				gap = 60 + 10*s.random.IntN(10)
			}
			if start = end.Add(time.Duration(gap) * time.Minute); end.After(last) {
				last = end
			}
		}
	}
	starts, inBand, gaps, canceled, overclaimed := 0, 0, 0, 0, 0
	var offAfter []int
	worst := 0
	for s.now.Before(last.Add(30 * time.Minute)) {
		s.minute()
		overclaimed += s.overclaimed()
		for _, r := range s.rooms {
			for i, stay := range r.stays {
				s.disturb(r, i, stay, &canceled)
				if stay.canceled || !s.now.Equal(stay.start) {
					continue
				}
				if starts++; r.celsius >= simLow && r.celsius <= simHigh {
					inBand++
				}
				if i > 0 && !r.stays[i-1].canceled && stay.start.Sub(r.stays[i-1].end) == 10*time.Minute && !r.on {
					gaps++
				}
			}
			if r.on && !r.needed(s.now, 0) {
				r.onWithout++
			} else {
				r.onWithout = 0
			}
			switch needed := r.needed(s.now, simLead*time.Minute); {
			case r.on && !needed:
				r.onIdle++
			case !r.on && !needed && (r.wasOn || r.onIdle > 0):
				offAfter = append(offAfter, r.onIdle)
				r.onIdle = 0
			}
			worst, r.wasOn = max(worst, r.onWithout), r.on
		}
	}
	late := 0
	for _, minutes := range offAfter {
		if minutes > 5 {
			late++
		}
	}
	t.Logf("%d stays, %d in band at the start (%.1f %%), switched off %d times, %d of them later than 5 minutes, at most %d minutes on without a stay, %d cancelled during pre-cooling, %d shown as working but not; %v",
		starts, inBand, 100*float64(inBand)/float64(starts), len(offAfter), late, worst, canceled, overclaimed, s.states())
	if overclaimed > 0 || starts < rooms*each*9/10 || float64(inBand) < 0.95*float64(starts) || late > 0 || worst > 20 || gaps > 0 || canceled == 0 {
		t.Errorf("starts %d, in band %d, late %d, worst %d, back-to-back stays with a gap %d, cancelled %d", starts, inBand, late, worst, gaps, canceled)
	}
	for _, r := range s.rooms {
		if r.on {
			t.Errorf("room %d is on after its last stay", r.id)
		}
	}
}

// A unit of two rooms is on while one of them has a stay, also after outages, and off after the last stay.
func TestSharedUnitFollowsBothRooms(t *testing.T) {
	t.Parallel()
	const outage, settle = 5, 5 // minutes
	s := simulate(t, 40, 1, 7)
	s.share()
	var last time.Time
	for _, r := range s.rooms {
		start := simBegin.Add(time.Duration(60+10*s.random.IntN(12)) * time.Minute)
		for range 4 {
			end := start.Add(time.Duration(20+10*s.random.IntN(7)) * time.Minute)
			s.stay(r, start, end)
			if end.After(last) {
				last = end
			}
			start = end.Add(time.Duration(10+10*s.random.IntN(10)) * time.Minute)
		}
	}
	away, connected := 0, 0 // minutes
	for s.now.Before(last.Add(20 * time.Minute)) {
		if away--; s.random.IntN(30) == 0 {
			away = outage
		}
		if connected++; away > 0 {
			connected = 0
		}
		s.offline = away > 0
		s.minute()
		for _, r := range s.rooms {
			if connected > settle && !r.on && r.needed(s.now, 0) {
				t.Fatalf("room %d, %v: the unit is off during a stay, %d minutes after the last outage", r.id, s.now.Sub(simBegin), connected)
			}
		}
	}
	for _, r := range s.rooms {
		if r.on {
			t.Errorf("room %d is on after its last stay", r.id)
		}
	}
}

// A stay that is moved to later while its unit is on, in a room whose temperature shows nothing, has a command to repeat and one that is
// planned. The other rooms continue.
func TestStayMovedWhileItsUnitIsOn(t *testing.T) {
	t.Parallel()
	s := simulate(t, 2, 1, 9)
	s.rooms[0].ambient, s.rooms[0].celsius = simTarget, simTarget
	start := simBegin.Add(time.Hour)
	moved := s.stay(s.rooms[0], start, start.Add(time.Hour))
	until := func(at time.Time) {
		for s.now.Before(at) {
			s.minute()
		}
	}
	until(start.Add(-10 * time.Minute))
	s.move(moved, start.Add(4*time.Hour), start.Add(5*time.Hour))
	s.stay(s.rooms[1], start.Add(time.Hour), start.Add(2*time.Hour))
	until(start.Add(70 * time.Minute))
	if s.rooms[0].on || s.rooms[0].frames != 1+3 || !s.rooms[1].on {
		t.Errorf("after the move: on %v after %d frames, the other room %v", s.rooms[0].on, s.rooms[0].frames, s.rooms[1].on)
	}
	until(start.Add(4*time.Hour + time.Minute))
	if !s.rooms[0].on {
		t.Error("the unit is off at the new time")
	}
	until(start.Add(5*time.Hour + 5*time.Minute))
	if s.rooms[0].on {
		t.Error("the unit is on after the stay")
	}
}

// While the active agent is away, no attempt is made, although a standby agent is connected: an outage uses up no attempts.
func TestOutageOfTheActiveAgentUsesUpNoAttempts(t *testing.T) {
	t.Parallel()
	for name, edge := range map[string]time.Duration{"start": -simLead * time.Minute, "end": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulate(t, 1, 1, 15)
			start := simBegin.Add(time.Hour)
			stay := s.stay(s.rooms[0], start, start.Add(time.Hour))
			from := start.Add(edge - 5*time.Minute)
			for s.now.Before(from.Add(26 * time.Minute)) {
				s.offline = !s.now.Before(from) && s.now.Before(from.Add(20*time.Minute))
				s.minute()
			}
			if want := s.now.Before(stay.end); s.rooms[0].on != want {
				t.Errorf("six minutes after the outage: on %v, want %v; %v", s.rooms[0].on, want, s.states())
			}
		})
	}
}

// A command of staff after a stay stays in force: the command to switch off is not repeated, even if nothing shows its effect.
func TestStaffAfterTheStayWins(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]bool{"sent": false, "not sent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulate(t, 2, 2, 13)
			start := simBegin.Add(time.Hour)
			end := start.Add(time.Hour)
			for _, r := range s.rooms {
				s.stay(r, start, end)
			}
			until := func(at time.Time) {
				for s.now.Before(at) {
					s.minute()
				}
			}
			until(end.Add(-time.Minute))
			s.dead = failing // the transmitter
			until(end.Add(time.Minute))
			s.dead = false
			if s.rooms[0].on != failing {
				t.Fatalf("a minute after the stay: on %v, want %v; %v", s.rooms[0].on, failing, s.states())
			}
			s.now = s.now.Add(time.Second)
			if err := s.services[0].Command(t.Context(), "admin:hq", protocol.LeafID("gangnam", "unit 1", "25")); err != nil {
				t.Fatal(err)
			}
			frames := s.rooms[0].frames
			until(end.Add(30 * time.Minute))
			if !s.rooms[0].on || s.rooms[0].frames != frames || s.rooms[1].on {
				t.Errorf("half an hour after the stay: on %v after %d more frames, want true after none; the other room %v, want false; %v",
					s.rooms[0].on, s.rooms[0].frames-frames, s.rooms[1].on, s.states())
			}
		})
	}
}

// A stay that is extended after its end, while its command to switch off waits for the branch, keeps its unit on.
func TestStayExtendedDuringAnOutageKeepsItsUnitOn(t *testing.T) {
	t.Parallel()
	s := simulate(t, 10, 1, 12)
	start := simBegin.Add(30 * time.Minute)
	end := start.Add(time.Hour)
	for _, r := range s.rooms {
		s.stay(r, start, end)
	}
	for s.now.Before(end.Add(32 * time.Minute)) {
		s.offline = s.now.After(end.Add(-5*time.Minute)) && s.now.Before(end.Add(5*time.Minute))
		s.minute()
		for _, r := range s.rooms {
			if s.now.Equal(end.Add(2 * time.Minute)) {
				s.move(r.stays[0], start, end.Add(30*time.Minute))
			}
			if on := s.now.Before(end.Add(30 * time.Minute)); s.now.After(start) && r.on != on {
				t.Fatalf("room %d, %v after the first end: on %v, want %v", r.id, s.now.Sub(end), r.on, on)
			}
		}
	}
}

// A unit that is on for a stay is switched off when the policy of its room is removed or gets another unit, which is switched on.
func TestUnitIsSwitchedOffWithoutItsPolicy(t *testing.T) {
	t.Parallel()
	const connected, outage, long = 0, 10, 45 // minutes offline from the change on; the stay ends after 40
	remove := func(s *simulation) { s.policies = s.policies[1:] }
	for _, tc := range []struct {
		name   string
		both   bool // room 2 has a stay, too
		away   time.Duration
		change func(*simulation)
		want   [3]bool // units that are on soon after the change or the outage
	}{
		{"removed", false, connected, remove, [3]bool{}},
		{"removed while offline", false, outage, remove, [3]bool{}},
		{"removed while offline, needed by room 2 later", false, outage, func(s *simulation) {
			s.use(2, 1)
			remove(s)
			s.stay(s.rooms[1], s.now.Add(20*time.Minute), s.now.Add(30*time.Minute))
		}, [3]bool{true}},
		{"removed and added again while offline", false, outage, func(s *simulation) {
			all := s.policies
			remove(s)
			s.putPolicies()
			s.policies = all
		}, [3]bool{true}},
		{"another unit", false, connected, func(s *simulation) { s.use(1, 3) }, [3]bool{2: true}},
		{"another unit while offline", false, outage, func(s *simulation) { s.use(1, 3) }, [3]bool{2: true}},
		{"another unit while offline until the end", false, long, func(s *simulation) { s.use(1, 3) }, [3]bool{}},
		{"the unit of room 2", true, connected, func(s *simulation) { s.use(1, 2) }, [3]bool{1: true}},
		{"exchanged units", true, connected, func(s *simulation) { s.use(1, 2); s.use(2, 1) }, [3]bool{true, true}},
		{"shared with room 2, removed", true, connected, func(s *simulation) {
			s.use(2, 1)
			s.putPolicies()
			s.minute()
			s.minute()
			remove(s)
		}, [3]bool{true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := simulate(t, 3, 1, 11)
			start := simBegin.Add(time.Hour)
			end := start.Add(time.Hour)
			s.stay(s.rooms[0], start, end)
			if tc.both {
				s.stay(s.rooms[1], start, end)
			}
			until := func(at time.Time) {
				for s.now.Before(at) {
					s.minute()
				}
			}
			on := func() [3]bool { return [3]bool{s.rooms[0].on, s.rooms[1].on, s.rooms[2].on} }
			until(start.Add(20 * time.Minute))
			if got, want := on(), [3]bool{true, tc.both}; got != want {
				t.Fatalf("units on before the change: %v, want %v", got, want)
			}
			s.offline = tc.away > 0
			tc.change(s)
			s.putPolicies()
			until(s.now.Add(tc.away * time.Minute))
			s.offline = false
			until(s.now.Add(2 * time.Minute))
			if got := on(); got != tc.want {
				t.Errorf("units on after the change: %v, want %v; %v", got, tc.want, s.states())
			}
			until(end.Add(30 * time.Minute))
			if got := on(); got != [3]bool{} {
				t.Errorf("units on after the stays: %v; %v", got, s.states())
			}
		})
	}
}

// A room whose changes cannot be stored does not stop the others.
func TestOneRoomDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	s := simulate(t, 3, 1, 10)
	s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'room 2'; end $$`)
	s.exec(`create trigger refuse before insert on climate_intent for each row when (new.room_id = 2) execute function refuse()`)
	for _, r := range s.rooms {
		s.stay(r, simBegin.Add(simLead*time.Minute), simBegin.Add(time.Hour))
	}
	s.now = s.now.Add(time.Minute)
	if err := s.services[0].Follow(t.Context()); err == nil || !strings.Contains(err.Error(), "room 2") {
		t.Errorf("the error of room 2 is %v", err)
	}
	if !s.rooms[0].on || s.rooms[1].on || !s.rooms[2].on {
		t.Errorf("on: %v, %v, %v; want all but room 2", s.rooms[0].on, s.rooms[1].on, s.rooms[2].on)
	}
}

// With a fifth of the frames lost, the set point is reached in 99 of 100 stays.
func TestLostFramesAreRepeated(t *testing.T) {
	t.Parallel()
	s := simulate(t, 100, 1, 2)
	s.lost = 0.2
	start := simBegin.Add(time.Hour)
	for _, r := range s.rooms {
		s.stay(r, start, start.Add(2*time.Hour))
	}
	for s.now.Before(start.Add(30 * time.Minute)) {
		s.minute()
	}
	reached, frames := 0, 0
	for _, r := range s.rooms {
		if math.Abs(r.celsius-simTarget) <= 1 || r.window && r.on {
			reached++
		}
		frames = max(frames, r.frames)
	}
	states := s.states()
	t.Logf("%d of 100 rooms at the set point, at most %d frames, %v", reached, frames, states)
	if reached < 99 || frames > 3 || states["arrive working"] > reached {
		t.Errorf("%d rooms at the set point, %d frames, %v", reached, frames, states)
	}
}

// A transmitter that fails, and one that no unit hears: no-effect within 12 minutes and after at most three frames.
func TestNoEffectIsReported(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*simulation){
		"ir-dead": func(s *simulation) { s.dead = true },
		"unheard": func(s *simulation) { s.lost = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulate(t, 5, 1, 3)
			broken(s)
			start := simBegin.Add(time.Hour)
			for _, r := range s.rooms {
				s.stay(r, start, start.Add(time.Hour))
			}
			begun := start.Add(-simLead * time.Minute)
			for s.now.Before(begun.Add(12 * time.Minute)) {
				s.minute()
				if states := s.states(); states["arrive working"] > 0 {
					t.Fatalf("%s: %v", s.now, states)
				}
			}
			if states := s.states(); states["arrive no-effect"] != 5 {
				t.Errorf("after 12 minutes: %v", states)
			}
			for s.now.Before(start.Add(50 * time.Minute)) {
				s.minute()
			}
			for _, r := range s.rooms {
				if r.frames > 3 {
					t.Errorf("room %d: %d frames", r.id, r.frames)
				}
			}
		})
	}
}

// An intent is cancelled with its stay, follows it to another room, yields to staff, and waits for a branch that is offline.
func TestIntentsFollowTheStay(t *testing.T) {
	t.Parallel()
	s := simulate(t, 4, 2, 4)
	start := simBegin.Add(time.Hour)
	moved, staffed, waiting, gone := s.stay(s.rooms[0], start, start.Add(time.Hour)), s.stay(s.rooms[1], start, start.Add(time.Hour)),
		s.stay(s.rooms[2], start.Add(time.Hour), start.Add(2*time.Hour)), s.stay(s.rooms[3], start.Add(3*time.Hour), start.Add(4*time.Hour))
	s.minute()
	s.cancel(gone)
	s.minute()
	if states := s.states(); states["arrive canceled"] != 1 || states["leave canceled"] != 1 || states["arrive planned"] != 3 {
		t.Errorf("after the cancellation: %v", states)
	}
	until := func(at time.Time) {
		for s.now.Before(at) {
			s.minute()
		}
	}
	until(start.Add(-2 * time.Minute))
	if !s.rooms[0].on || !s.rooms[1].on || s.rooms[3].on {
		t.Error("the units do not follow their stays")
	}
	// Room 1 to room 4: the one is switched off, the other on.
	s.exec(`update reservation set room_id = 4 where id = $1`, moved.id)
	// Staff switches room 2 off: nothing switches it on again during the stay.
	staff := protocol.LeafID("gangnam", "unit 2", "off")
	if err := s.services[0].Command(t.Context(), "admin:hq", staff); err != nil {
		t.Fatal(err)
	}
	s.minute()
	s.minute()
	if s.rooms[0].on || !s.rooms[3].on || s.rooms[1].on {
		t.Errorf("after the move: %v %v, after the staff's command: %v", s.rooms[0].on, s.rooms[3].on, s.rooms[1].on)
	}
	until(start.Add(30 * time.Minute))
	if s.rooms[1].on {
		t.Error("the staff's command did not win")
	}
	_ = staffed
	// Offline during pre-cooling: sent once the branch is back.
	s.offline = true
	until(waiting.start.Add(2 * time.Minute))
	if s.rooms[2].frames != 0 {
		t.Error("a command to a branch that is offline")
	}
	s.offline = false
	s.minute()
	if !s.rooms[2].on || s.rooms[2].frames != 1 {
		t.Errorf("after the outage: on %v, %d frames", s.rooms[2].on, s.rooms[2].frames)
	}
	// The guest's choice is sent once; a stay of another room has no choice here.
	err := s.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		ok, err := postgres.PutChoice(ctx, tx, waiting.id, protocol.LeafID("gangnam", "unit 3", "23"), now)
		if !ok {
			t.Error("the choice was refused")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.minute()
	if s.rooms[2].target != 23 || s.rooms[2].frames != 2 {
		t.Errorf("target %v, %d frames", s.rooms[2].target, s.rooms[2].frames)
	}
}

// Two replicas that compare and send at the same moment send each intent once.
func TestReplicasSendEachIntentOnce(t *testing.T) {
	t.Parallel()
	s := simulate(t, 30, 2, 5)
	start := simBegin.Add(simLead * time.Minute)
	for _, r := range s.rooms {
		s.stay(r, start, start.Add(time.Hour))
	}
	for _, at := range []time.Time{simBegin.Add(time.Minute), start.Add(time.Hour + time.Minute)} {
		s.now = at
		s.sent = nil
		var group errgroup.Group
		for _, service := range s.services {
			group.Go(func() error {
				return errors.Join(service.Follow(t.Context()), service.Follow(t.Context()))
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.sent)
		if unique := len(slices.Compact(slices.Clone(s.sent))); len(s.sent) != len(s.rooms) || unique != len(s.rooms) {
			t.Errorf("%s: %d commands, %d different ones, want %d", at, len(s.sent), unique, len(s.rooms))
		}
	}
}

// An extension belongs to its stay: nothing is sent when it begins, a command of staff stays in force, and the unit is switched off after it.
func TestExtensionBelongsToItsStay(t *testing.T) {
	t.Parallel()
	s := simulate(t, 2, 2, 6)
	start := simBegin.Add(time.Hour)
	end := start.Add(time.Hour)
	plain, staffed := s.stay(s.rooms[0], start, end), s.stay(s.rooms[1], start, end)
	until := func(at time.Time) {
		for s.now.Before(at) {
			s.minute()
		}
	}
	until(start.Add(40 * time.Minute))
	for _, stay := range []*simStay{plain, staffed} {
		s.exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
			select branch_id, room_id, 'DONE', 'ADMIN', end_at, end_at + interval '30 minutes', tstzrange(end_at + interval '10 minutes', end_at + interval '40 minutes'), id
			from reservation where id = $1`, stay.id)
	}
	if err := s.services[0].Command(t.Context(), "admin:hq", protocol.LeafID("gangnam", "unit 2", "off")); err != nil {
		t.Fatal(err)
	}
	frames := [2]int{s.rooms[0].frames, s.rooms[1].frames}
	until(end.Add(25 * time.Minute))
	if s.rooms[0].frames != frames[0] || !s.rooms[0].on || s.rooms[1].frames != frames[1] || s.rooms[1].on {
		t.Errorf("during the extension: %d and %d frames, want %v; on %v and %v, want true and false", s.rooms[0].frames, s.rooms[1].frames, frames, s.rooms[0].on, s.rooms[1].on)
	}
	until(end.Add(35 * time.Minute))
	if s.rooms[0].on {
		t.Error("the unit is on five minutes after the extension")
	}
}

// While a stay is being canceled, its extension is still confirmed. Nothing is switched on for it.
func TestExtensionOfACanceledStay(t *testing.T) {
	t.Parallel()
	s := simulate(t, 1, 2, 6)
	start := simBegin.Add(time.Hour)
	stay := s.stay(s.rooms[0], start, start.Add(time.Hour))
	s.exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
		select branch_id, room_id, 'DONE', 'ADMIN', end_at, end_at + interval '30 minutes', tstzrange(end_at + interval '10 minutes', end_at + interval '40 minutes'), id
		from reservation where id = $1`, stay.id)
	s.exec(`update reservation set state = 'CANCELING' where id = $1`, stay.id)
	for s.now.Before(start.Add(80 * time.Minute)) {
		s.minute()
		if s.rooms[0].on {
			t.Fatalf("the unit is on %v after the start of the stay", s.now.Sub(start))
		}
	}
}

// A partner's booking of three days is stored as a reservation of five hours and extensions of five hours. Its stay has the times of
// the whole, however long ago it began.
func TestLongStayKeepsItsTimes(t *testing.T) {
	t.Parallel()
	s := simulate(t, 1, 1, 7)
	start, end := simBegin, simBegin.Add(72*time.Hour)
	root := s.stay(s.rooms[0], start, start.Add(5*time.Hour))
	for from := start.Add(5 * time.Hour); from.Before(end); from = from.Add(5 * time.Hour) {
		to := from.Add(5 * time.Hour)
		if to.After(end) {
			to = end
		}
		s.exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, extends)
			select branch_id, room_id, 'DONE', 'PARTNER', $2::timestamptz, $3::timestamptz, tstzrange($2::timestamptz + interval '10 minutes', $3::timestamptz + interval '10 minutes'), id
			from reservation where id = $1`, root.id, from, to)
	}
	for _, now := range []time.Time{start, start.Add(4 * time.Hour), start.Add(8 * time.Hour), start.Add(30 * time.Hour), end.Add(-time.Minute), end.Add(time.Hour)} {
		err := s.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			world, ok, err := postgres.ReadClimate(ctx, tx, now)
			if !ok || err != nil || len(world.Stays) != 1 {
				t.Fatalf("%s: stays %+v (%v, %v), want one", now, world.Stays, ok, err)
			}
			if stay := world.Stays[0]; stay.ID != root.id || !stay.Start.Equal(start) || !stay.End.Equal(end) {
				t.Errorf("%s: stay %d from %s to %s, want %d from %s to %s", now, stay.ID, stay.Start, stay.End, root.id, start, end)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
