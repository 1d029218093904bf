//go:build hw

package hwtest

import (
	"strings"
	"testing"
	"time"

	"github.com/warthog618/go-gpiosim"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

const expanderDoor = `
[[door]]
device = "room_3"
relay = { chip = "expander", line = "E0" }
`

// expander connects a chip with one line. Closing it removes the chip, as unplugging a USB expander does.
func expander(t *testing.T) *gpiosim.Sim {
	t.Helper()
	sim, err := gpiosim.NewSim(gpiosim.WithName("expander"), gpiosim.WithBank(gpiosim.NewBank("expander", 1, gpiosim.WithNamedLine(0, "E0"))))
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

// TestLostChip removes the chip of a relay while the agent runs. The door works again when the chip is back; if it stays away,
// the agent ends after ten seconds, and the next one serves the other doors.
func TestLostChip(t *testing.T) {
	sim := expander(t)
	b := brokertest.Start(t, "127.0.0.1:0")
	p := startWith(t, b, expanderDoor)
	if r, _ := unlock(t, b, 80, time.Second, "room_3"); r.Outcome != protocol.Opened {
		t.Fatalf("got %+v", r)
	}
	time.Sleep(1500 * time.Millisecond) // the pulse
	sim.Close()
	awaitRelay(t, b, "room_3", false)
	sim = expander(t)
	awaitRelay(t, b, "room_3", true)
	if r, _ := unlock(t, b, 81, time.Second, "room_3"); r.Outcome != protocol.Opened {
		t.Errorf("after the chip returned: got %+v", r)
	}
	if value, err := sim.Chips[0].Level(0); err != nil || value != 1 {
		t.Errorf("got level %d, %v, want 1", value, err)
	}
	time.Sleep(1500 * time.Millisecond)
	sim.Close()
	removed := time.Now()
	if err := p.Wait(); err == nil {
		t.Error("the agent ended without an error")
	}
	t.Logf("ended %v after the chip was removed", time.Since(removed).Round(time.Second))
	for next := startWith(t, b, expanderDoor); next.status.State != protocol.Online || next.status.BootID == p.status.BootID; {
		next.status = brokertest.Await[protocol.Status](b)
	}
	if r, _ := unlock(t, b, 82, time.Second, "front_1"); r.Outcome != protocol.Opened {
		t.Errorf("another door: got %+v", r)
	}
}

// awaitRelay waits for a status in which the self-test of a relay has passed or failed.
func awaitRelay(t *testing.T, b *brokertest.Broker, device string, ok bool) {
	t.Helper()
	for {
		for _, test := range brokertest.Await[protocol.Status](b).SelfTest {
			if strings.HasPrefix(test.Name, "relay "+device) && test.OK == ok {
				return
			}
		}
	}
}
