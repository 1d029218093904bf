package e2e

import (
	"net/http"
	"slices"
	"testing"
)

// TestForcedAndHeldDoors moves the leaves of simulated doors. Openings that a press, a PIN at the keypad or the exit button explain
// raise no alert; one that nothing explains raises door-forced, and a door that stays open door-held, until it is shut. The console
// shows both.
func TestForcedAndHeldDoors(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam", "hongdae")
	hq := staff(t, s)
	leaf := func(branch, device string, open bool) {
		t.Helper()
		requestJSON(t, http.MethodPost, s.SimAt+"/sim/branches/"+branch+"/doors/"+device+"/contact", map[string]bool{"open": open}, nil)
	}
	alerts := func() (open []string) {
		var list struct {
			Alerts []struct{ Kind, Branch, Subject string }
		}
		hq.must("GET", "/v2/admin/alerts?state=open", nil, &list)
		for _, a := range list.Alerts {
			open = append(open, a.Kind+" "+a.Branch+" "+a.Subject)
		}
		return open
	}
	events := func(branch, device string) (kinds []string) {
		var doors struct {
			Events []struct{ Kind, Device string }
		}
		hq.must("GET", "/v2/admin/branches/"+branch+"/doors", nil, &doors)
		for _, e := range doors.Events {
			if e.Device == device {
				kinds = append(kinds, e.Kind)
			}
		}
		return kinds
	}

	// A press, then the exit button.
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01055550009")
	if result, _ := newBrowser(t, s).open("gangnam", "room", key); result.Status != "SUCCESS" {
		t.Fatalf("the door: %+v", result)
	}
	// passes opens and shuts a door, and waits for each event: contacts have to be steady.
	passes := func(device string) {
		t.Helper()
		for _, move := range []struct {
			open  bool
			event string
		}{{true, "door-opened"}, {false, "door-closed"}} {
			leaf("gangnam", device, move.open)
			eventuallyTrue(t, device+" "+move.event, func() bool { return slices.Contains(events("gangnam", device), move.event) })
		}
		if got := events("gangnam", device); slices.Contains(got, "forced") {
			t.Errorf("%s: got %q, want no forced opening", device, got)
		}
	}
	passes("room_2")
	requestJSON(t, http.MethodPost, s.SimAt+"/sim/branches/gangnam/doors/front_1/exit", nil, nil)
	eventuallyTrue(t, "the exit button was pressed", func() bool { return slices.Contains(events("gangnam", "front_1"), "exit-pressed") })
	passes("front_1")

	// Nothing explains this one.
	leaf("hongdae", "front_1", true)
	eventuallyTrue(t, "an alert that the door was forced", func() bool { return slices.Contains(alerts(), "door-forced hongdae front_1") })
	if got := alerts(); len(got) != 1 {
		t.Errorf("open alerts %q, want one", got)
	}
	// The time passes that a door may stay open.
	db := database(t, s)
	if _, err := db.Exec(t.Context(), `update door_event set at = at - interval '125 seconds' where kind = 'door-opened' and device = 'front_1'`); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "an alert that the door is held open", func() bool { return slices.Contains(alerts(), "door-held hongdae front_1") })
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/alerts")
	p.see("강제로 열렸어요", "오래 열려 있어요")
	leaf("hongdae", "front_1", false)
	eventuallyTrue(t, "the end of the alert", func() bool { return !slices.Contains(alerts(), "door-held hongdae front_1") })
}
