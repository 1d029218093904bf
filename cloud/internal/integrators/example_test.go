package integrators

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The example has fewer than 40 lines, needs nothing but Node, and opens the door of the room that it has booked.
func TestFirstBooking(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("../../../docs/examples/first-booking.ts")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(program), "\n"); n >= 40 {
		t.Errorf("the example has %d lines, want fewer than 40", n)
	}
	if strings.Contains(string(program), "import ") {
		t.Error("the example imports a package")
	}
	s := servicetest.Start(t)
	s.Clock.Advance(-time.Minute) // a program that has computed the current slot is not late if the slot ends meanwhile
	agent := connectAgent(t, s)
	out := runNode(t, string(program), addresses(s)...)
	if !strings.Contains(out, "event: door-result") || !strings.Contains(out, `"status":"SUCCESS"`) {
		t.Fatalf("the example did not open a door: %s", out)
	}
	if driven := agent.Driven(); len(driven) != 1 || !strings.HasPrefix(driven[0].Device, "room_") {
		t.Errorf("driven %+v, want one door of a room", driven)
	}
}
