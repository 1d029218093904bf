package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// doorOverview is the part of GET /v2/admin/branches/{branch}/doors that these tests read.
type doorOverview struct {
	Events []struct {
		At           time.Time
		Device, Kind string
		Source       *string
	}
	Passes []struct {
		Username  string
		AppliedAt time.Time
		Codes     bool
	}
}

func staff(t *testing.T, s *world.Stack) *browser {
	t.Helper()
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	return hq
}

// eventuallyTrue waits until a condition about the running programs is true.
func eventuallyTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens: %s", what)
		}
	}
}

// awaitCodes waits until the agent of gangnam has acknowledged the key of the one-time codes, after a time.
func awaitCodes(t *testing.T, s *world.Stack, since time.Time) {
	t.Helper()
	hq := staff(t, s)
	eventuallyTrue(t, "the agent has the code key", func() bool {
		var doors doorOverview
		hq.must("GET", "/v2/admin/branches/gangnam/doors", nil, &doors)
		return len(doors.Passes) == 1 && doors.Passes[0].Codes && doors.Passes[0].AppliedAt.After(since)
	})
}

// typeDigits types at a simulated keypad of gangnam, and reports whether the door opened.
func typeDigits(t *testing.T, s *world.Stack, device, digits string) (accepted bool, reason string) {
	t.Helper()
	return typeAt(t, s, "gangnam", device, digits)
}

// typeAt types at a simulated keypad, and reports whether the door opened.
func typeAt(t *testing.T, s *world.Stack, branch, device, digits string) (accepted bool, reason string) {
	t.Helper()
	var answer struct {
		Accepted bool
		Reason   string
	}
	requestJSON(t, http.MethodPost, s.SimAt+"/sim/branches/"+branch+"/keypads/"+device, map[string]string{"digits": digits + "#"}, &answer)
	return answer.Accepted, answer.Reason
}

type guestPIN struct {
	PIN *struct {
		Code  string
		Ready bool
	}
}

// pinOf waits until the agent has the PIN of a key, and returns it.
func pinOf(t *testing.T, s *world.Stack, key string) (pin string) {
	t.Helper()
	guest := newBrowser(t, s)
	eventuallyTrue(t, "the agent has the PIN", func() bool {
		var answer guestPIN
		guest.must("GET", "/v2/keys/"+key, nil, &answer)
		if answer.PIN == nil || !answer.PIN.Ready {
			return false
		}
		pin = answer.PIN.Code
		return true
	})
	return pin
}

// TestKeypadsWithoutUplink opens doors of gangnam at their keypads while its network is cut: by PIN and by one-time code. A PIN
// of another room opens nothing, and each entry is in the door history afterwards.
func TestKeypadsWithoutUplink(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitCodes(t, s, time.Time{})
	hq := staff(t, s)
	second := keyOfAdminReservation(t, s, "gangnam", 2, "01022220002")
	third := keyOfAdminReservation(t, s, "gangnam", 3, "01022220003")
	pin, other := pinOf(t, s, second), pinOf(t, s, third)
	eventuallyTrue(t, "the agent knows the time", func() bool {
		opened, _ := typeDigits(t, s, "room_3", other)
		return opened
	})
	fault(t, s, "gangnam", "", "network-cut")
	for _, c := range []struct {
		device, digits string
		opens          bool
	}{{"front_1", pin, true}, {"room_2", pin, true}, {"room_3", pin, false}, {"room_3", other, true}} {
		if got, reason := typeDigits(t, s, c.device, c.digits); got != c.opens {
			t.Errorf("PIN at %s without uplink: opened %t (%s), want %t", c.device, got, reason, c.opens)
		}
	}
	guest := newBrowser(t, s)
	got, status := guest.open("gangnam", "room", second)
	if status != http.StatusOK || got.Status != "FAILED" || got.FailoverKey == nil || len(*got.FailoverKey) != 8 {
		t.Fatalf("press without uplink: %d %+v, want a one-time code", status, got)
	}
	if opened, reason := typeDigits(t, s, "room_2", *got.FailoverKey); !opened {
		t.Errorf("the one-time code does not open: %s", reason)
	}
	if opened, _ := typeDigits(t, s, "room_2", *got.FailoverKey); opened {
		t.Error("the one-time code opens twice")
	}
	requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	awaitAgents(t, s, "gangnam")
	eventuallyTrue(t, "all entries are in the door history", func() bool {
		var doors doorOverview
		hq.must("GET", "/v2/admin/branches/gangnam/doors", nil, &doors)
		opened := map[string]int{}
		for _, e := range doors.Events {
			if e.Kind == "pass-opened" && e.Source != nil && e.Device != "room_3" {
				opened[e.Device+" "+*e.Source]++
			}
		}
		return fmt.Sprint(opened) == fmt.Sprint(map[string]int{"front_1 pin": 1, "room_2 code": 1, "room_2 pin": 1})
	})

	for range 5 {
		typeDigits(t, s, "room_2", "000000")
	}
	if opened, reason := typeDigits(t, s, "room_2", pin); opened || reason != "locked-out" {
		t.Errorf("PIN at a locked keypad: opened %t (%s), want locked-out", opened, reason)
	}
	eventuallyTrue(t, "the key says that the keypad is locked", func() bool {
		var why struct {
			Code  string
			Until *time.Time
		}
		guest.must("GET", "/v2/keys/"+second+"/why?branch=gangnam&door=room", nil, &why)
		return why.Code == "locked-out" && why.Until != nil && time.Until(*why.Until) < 2*time.Minute
	})
	if got, _ := guest.open("gangnam", "room", second); got.Status != "SUCCESS" {
		t.Errorf("press while the keypad is locked: %+v", got)
	}
}
