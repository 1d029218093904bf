package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

// fullHouse is how many rooms are occupied while the service and its database are stopped.
const fullHouse = 100

// houseFiles writes the files of a branch with agent keypads at every door, for the service and for the simulator.
func houseFiles(t *testing.T, dir string) (branches, simulation string) {
	t.Helper()
	var doors, rooms, devices strings.Builder
	devices.WriteString("front_1")
	doors.WriteString("      - {device: front_1, keypad: agent}\n")
	for no := 1; no <= fullHouse; no++ {
		fmt.Fprintf(&doors, "      - {device: room_%d, keypad: agent}\n", no)
		fmt.Fprintf(&rooms, "      - {no: %d, machine: 기기 %d, grade: Standard, price: {min10: 3000, min30: 8000, min60: 15000}, pin: \"91%04d\"}\n", no, no, no)
		fmt.Fprintf(&devices, ", room_%d", no)
	}
	files := map[string]string{
		"house.yaml": "demo: true\nbranches:\n  - code: house\n    name: {ko: 만실점, en: Full House}\n    address: 서울특별시 가상구 만실로 1\n    phone: \"02-0000-0000\"\n" +
			"    frontDoors: [front_1]\n    frontPin: \"902468\"\n    doors:\n" + doors.String() + "    rooms:\n" + rooms.String() +
			"    agents: [{username: agent-house, secret: agent-house-demo}]\nadministrators:\n  - {id: hq, password: hq-demo, role: hq}\n",
		"house-sim.yaml": "branches:\n  - branch: house\n    keypads: agent\n    doors: [" + devices.String() + "]\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "house.yaml"), filepath.Join(dir, "house-sim.yaml")
}

// outageLength returns how long the service and its database are stopped: YEOLDA_OUTAGE, by default as long as the guests need to enter.
func outageLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("YEOLDA_OUTAGE")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// housed is a guest of the full house.
type housed struct {
	key, pin    string
	front, room typing // of the entries
}

// typing is when a PIN was typed, and when the verdict was known.
type typing struct{ from, to time.Time }

// contains reports whether an entry has the time of this typing. The agent has known the time within a second since its last beacon.
func (p typing) contains(entry time.Time) bool {
	return entry.After(p.from.Add(-time.Second)) && entry.Before(p.to.Add(time.Second))
}

// enter types the PIN at a door. If the lock does not confirm in time, or the keypad is busy, the guest types again.
func (g *housed) enter(t *testing.T, s *world.Stack, device string, at *typing) (opened bool, reason string) {
	t.Helper()
	for range 3 {
		at.from = time.Now()
		opened, reason = typeAt(t, s, "house", device, g.pin)
		at.to = time.Now()
		if opened || reason != string(protocol.EntryFailed) && reason != protocol.ReasonBusy {
			break
		}
		t.Logf("typed again at %s, because the door was %s", device, reason)
	}
	return opened, reason
}

// TestFullHouseWithoutCloud stops the service and its database while every room is occupied: each guest enters by PIN at the
// front and at the room. Afterwards each entry is in the history of its reservation with its own time, and the chain of the
// journal verifies. YEOLDA_OUTAGE=1h makes the outage an hour: the guests enter in the course of it, and two thirds of the stays
// begin in it.
func TestFullHouseWithoutCloud(t *testing.T) {
	t.Parallel()
	dir, long := dataDir(t), outageLength(t)
	branches, simulation := houseFiles(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+long)
	defer cancel()
	s, err := world.StartStack(ctx, world.StackOptions{Root: root(), Bin: bin, Dir: dir, Template: template, Log: programLog(t), Branches: []string{branches},
		Env: map[string]string{"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn"}, SimArgs: []string{"run", "--file", simulation}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	awaitAgents(t, s, "house")
	hq, begin := staff(t, s), currentSlot()
	guests := make([]housed, fullHouse+1)
	for no := 1; no <= fullHouse; no++ {
		start := currentSlot()
		end := start.Add(time.Hour + long).Truncate(10 * time.Minute)
		if long > 0 { // the stay has begun when the guest enters
			start = start.Add(time.Duration(3*(no-1)/fullHouse) * long / 6).Truncate(10 * time.Minute)
		}
		guests[no].key = keyOfAdminStay(t, s, hq, "house", no, fmt.Sprintf("010%08d", 22220000+no), start, end)
	}
	for no := 1; no <= fullHouse; no++ {
		guests[no].pin = pinOf(t, s, guests[no].key)
	}
	eventuallyTrue(t, "the agent knows the time", func() bool {
		opened, reason := typeAt(t, s, "house", "room_1", guests[1].pin)
		if !opened && reason != "clock-untrusted" {
			t.Fatalf("PIN of room 1: %s", reason)
		}
		return opened
	})

	if err := s.Signal(world.Service, syscall.SIGKILL); err != nil { // its database ends with it
		t.Fatal(err)
	}
	stopped := time.Now()
	if long > 0 {
		if opened, reason := typeAt(t, s, "house", fmt.Sprintf("room_%d", fullHouse), guests[fullHouse].pin); opened || reason != "too-early" {
			t.Errorf("PIN before its stay: opened %t, %s", opened, reason)
		}
	}
	entered := 0
	for no := 1; no <= fullHouse; no++ {
		time.Sleep(time.Until(stopped.Add(long * time.Duration(no) / fullHouse)))
		g := &guests[no]
		front, why := g.enter(t, s, "front_1", &g.front)
		room, whyRoom := g.enter(t, s, fmt.Sprintf("room_%d", no), &g.room)
		if front && room {
			entered++
		} else {
			t.Errorf("guest of room %d: front %s, room %s", no, why, whyRoom)
		}
	}
	if opened, reason := typeAt(t, s, "house", "room_1", guests[2].pin); opened || reason != "other-door" {
		t.Errorf("PIN of room 2 at room 1: opened %t, %s", opened, reason)
	}
	t.Logf("%d of %d guests entered in %s", entered, fullHouse, time.Since(stopped).Round(time.Millisecond))

	if err := s.Run(ctx, world.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	awaitAgents(t, s, "house")
	var day struct {
		Reservations []struct{ ID, RoomNo string }
	}
	hq.must("GET", "/v2/admin/branches/house/timeline?date="+begin.In(time.FixedZone("KST", 9*60*60)).Format(time.DateOnly), nil, &day)
	if len(day.Reservations) != fullHouse {
		t.Fatalf("%d reservations in the timeline, want %d", len(day.Reservations), fullHouse)
	}
	times := map[time.Time]bool{}
	for _, r := range day.Reservations {
		no, err := strconv.Atoi(r.RoomNo)
		if err != nil {
			t.Fatal(err)
		}
		eventuallyTrue(t, "both entries of room "+r.RoomNo+" are in the history", func() bool {
			var record struct {
				History []struct {
					At     time.Time
					Kind   string
					Detail struct{ Device, State, Source string }
				}
			}
			hq.must("GET", "/v2/admin/reservations/"+r.ID, nil, &record)
			devices := map[string]int{}
			for _, e := range record.History {
				typed := guests[no].room
				if e.Detail.Device == "front_1" {
					typed = guests[no].front
				}
				if e.Kind == "door" && e.Detail.Source == "pin" && e.Detail.State == "opened" && typed.contains(e.At) {
					devices[e.Detail.Device]++
					times[e.At] = true
				}
			}
			return devices["front_1"] == 1 && devices["room_"+r.RoomNo] >= 1
		})
	}
	if len(times) < 2*fullHouse {
		t.Errorf("%d different times of entries, want %d", len(times), 2*fullHouse)
	}
	var open struct {
		Alerts []struct{ Kind, Subject string }
	}
	hq.must("GET", "/v2/admin/alerts?branch=house&state=all", nil, &open)
	for _, a := range open.Alerts {
		if a.Kind == "discrepancy" {
			t.Errorf("the chain of the journal is broken: %+v", a)
		}
	}
}
