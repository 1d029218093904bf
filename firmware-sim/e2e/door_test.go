package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/light"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// actuation is one actuation of a lock's relay, as the simulator records it.
type actuation struct {
	At          time.Time `json:"at"`
	Device      string    `json:"device"`
	RequestID   string    `json:"requestId"`
	EnergizedMs int       `json:"energizedMs"`
}

func actuations(t *testing.T, s *world.Stack, branch string) []actuation {
	t.Helper()
	var list struct {
		Actuations []actuation `json:"actuations"`
	}
	getJSON(t, s.SimAt+"/sim/branches/"+branch+"/actuations", &list)
	return list.Actuations
}

func fault(t *testing.T, s *world.Stack, branch, device, kind string) {
	t.Helper()
	body := map[string]any{"kind": kind}
	if device != "" {
		body["device"] = device
	}
	requestJSON(t, http.MethodPut, s.SimAt+"/sim/branches/"+branch+"/faults", body, nil)
}

func TestFromFreeSlotToOpenDoor(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	guest := newBrowser(t, s)
	key := guest.buy(s, "gangnam", 2, 25000, "01011112222")

	t.Run("room", func(t *testing.T) {
		got, status := guest.open("gangnam", "room", key)
		if status != http.StatusOK || got.Status != "SUCCESS" || got.FailoverKey != nil || got.Device == nil || *got.Device != "room_2" {
			t.Fatalf("%d %+v", status, got)
		}
		if list := actuations(t, s, "gangnam"); len(list) != 1 || list[0].Device != "room_2" || list[0].RequestID == "" {
			t.Fatalf("actuations %+v", list)
		}
	})
	t.Run("front doors", func(t *testing.T) {
		got, _ := guest.open("gangnam", "front", key)
		if got.Status != "SUCCESS" || *got.Device != "front" {
			t.Fatalf("%+v", got)
		}
		if list := actuations(t, s, "gangnam"); len(list) != 3 {
			t.Fatalf("actuations %+v", list)
		}
	})
	t.Run("stuck lock", func(t *testing.T) {
		fault(t, s, "gangnam", "room_2", "stuck")
		got, _ := guest.open("gangnam", "room", key)
		if got.Status != "FAILED" || got.FailoverKey == nil || *got.FailoverKey == "" {
			t.Fatalf("%+v", got)
		}
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	})
	t.Run("branch without agent", func(t *testing.T) {
		other := newBrowser(t, s)
		key := keyOfAdminReservation(t, s, "jamsil", 1, "01033334444")
		began := time.Now()
		got, _ := other.open("jamsil", "room", key)
		if got.Status != "FAILED" || got.FailoverKey == nil {
			t.Fatalf("%+v", got)
		}
		t.Logf("answered after %s", time.Since(began))

		// The light agent of load tests opens the same door.
		fleet := runLightAgent(t, s, "jamsil")
		until(t, "light agent online", func() bool { return fleet.Stats().Online == 1 })
		if got, _ := other.open("jamsil", "room", key); got.Status != "SUCCESS" || *got.Device != "room_1" {
			t.Fatalf("with a light agent: %+v", got)
		}
		if opened := fleet.Stats().Opened; opened != 1 {
			t.Errorf("the light agent opened %d doors, want 1", opened)
		}
	})
	t.Run("network cut", func(t *testing.T) {
		before := len(actuations(t, s, "gangnam"))
		fault(t, s, "gangnam", "", "network-cut")
		// A request without a result after 7 s is answered 503, so 200 also proves that the answer was in time.
		got, status := guest.open("gangnam", "room", key)
		if status != http.StatusOK || got.Status != "FAILED" || got.FailoverKey == nil {
			t.Fatalf("%d %+v, want 200 with FAILED and a PIN", status, got)
		}
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		awaitAgents(t, s, "gangnam")
		// The next request uses the new connection, so all messages of the old one have arrived or are lost.
		if got, _ := guest.open("gangnam", "front", key); got.Status != "SUCCESS" {
			t.Fatalf("after the cut: %+v", got)
		}
		for _, a := range actuations(t, s, "gangnam")[before:] {
			if a.Device == "room_2" {
				t.Fatalf("the lock was driven after FAILED: %+v", a)
			}
		}
	})
}

// runLightAgent runs a light agent of a demo branch until the test ends.
func runLightAgent(t *testing.T, s *world.Stack, branch string) *light.Fleet {
	t.Helper()
	seed := sha256.Sum256([]byte("yeolda demo grant signing key"))
	fleet, err := light.New(light.Config{
		Brokers: []netip.AddrPort{netip.MustParseAddrPort(s.MQTTAt)}, Version: "1",
		GrantKeys: []ed25519.PublicKey{ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)},
		Agents:    []light.Identity{{Branch: branch, Password: fleetconfig.DemoPassword(branch)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fleet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return fleet
}

// keyOfAdminReservation registers a reservation without payment and returns its key.
func keyOfAdminReservation(t *testing.T, s *world.Stack, branch string, room int, mobile string) string {
	t.Helper()
	hq := staff(t, s)
	start := currentSlot()
	return keyOfAdminStay(t, s, hq, branch, room, mobile, start, start.Add(time.Hour))
}

// keyOfAdminStay reserves a room as an administrator who has logged in, and returns the key of the message.
func keyOfAdminStay(t *testing.T, s *world.Stack, hq *browser, branch string, room int, mobile string, start, end time.Time) string {
	t.Helper()
	hq.hold("/admin/reservation", branch, room, start, end)
	before := len(sent(t, s, mobile, keyVariable))
	hq.must("POST", "/admin/payment", map[string]any{"name": fmt.Sprintf("손님 %s", mobile), "mobileNum": mobile, "notify": true}, nil)
	return sentAfter(t, s, mobile, keyVariable, before)
}
