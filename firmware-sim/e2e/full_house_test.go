package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
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

// TestFullHouseWithoutCloud stops the service and its database while every room is occupied: each guest enters by PIN at the
// front and at the room. Afterwards each entry is in the history of its reservation with its own time, and the chain of the
// journal verifies.
func TestFullHouseWithoutCloud(t *testing.T) {
	dir := dataDir(t)
	branches, simulation := houseFiles(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := world.StartStack(ctx, world.StackOptions{Root: root(), Bin: bin, Dir: dir, Log: t.Output(), Branches: []string{branches},
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
	pins := make([]string, fullHouse+1)
	keys := make([]string, fullHouse+1)
	for no := 1; no <= fullHouse; no++ {
		keys[no] = keyOfAdminReservation(t, s, "house", no, fmt.Sprintf("010%08d", 22220000+no))
	}
	for no := 1; no <= fullHouse; no++ {
		pins[no] = pinOf(t, s, keys[no])
	}
	eventuallyTrue(t, "the agent knows the time", func() bool {
		opened, reason := typeAt(t, s, "house", "room_1", pins[1])
		if !opened && reason != "clock-untrusted" {
			t.Fatalf("PIN of room 1: %s", reason)
		}
		return opened
	})

	if err := s.Signal(world.Service, syscall.SIGKILL); err != nil { // its database ends with it
		t.Fatal(err)
	}
	stopped := time.Now()
	entered := 0
	for no := 1; no <= fullHouse; no++ {
		front, why := typeAt(t, s, "house", "front_1", pins[no])
		room, whyRoom := typeAt(t, s, "house", fmt.Sprintf("room_%d", no), pins[no])
		if front && room {
			entered++
		} else {
			t.Errorf("guest of room %d: front %s, room %s", no, why, whyRoom)
		}
	}
	if opened, reason := typeAt(t, s, "house", "room_1", pins[2]); opened || reason != "other-door" {
		t.Errorf("PIN of room 2 at room 1: opened %t, %s", opened, reason)
	}
	ended := time.Now()
	t.Logf("%d of %d guests entered in %s", entered, fullHouse, ended.Sub(stopped).Round(time.Millisecond))

	if err := s.Run(ctx, world.Service, "serve"); err != nil {
		t.Fatal(err)
	}
	awaitAgents(t, s, "house")
	hq := staff(t, s)
	var day struct {
		Reservations []struct{ ID, RoomNo string }
	}
	hq.must("GET", "/v2/admin/branches/house/timeline?date="+currentSlot().In(time.FixedZone("KST", 9*60*60)).Format(time.DateOnly), nil, &day)
	if len(day.Reservations) != fullHouse {
		t.Fatalf("%d reservations in the timeline, want %d", len(day.Reservations), fullHouse)
	}
	times := map[time.Time]bool{}
	for _, r := range day.Reservations {
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
				if e.Kind == "door" && e.Detail.Source == "pin" && e.Detail.State == "opened" && e.At.After(stopped.Add(-2*time.Second)) && e.At.Before(ended.Add(2*time.Second)) {
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
