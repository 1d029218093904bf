package access

import (
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestSentencesNameWaysThatExist: at a branch that is offline no sentence names the button, and at a door without a keypad none
// names the keypad.
func TestSentencesNameWaysThatExist(t *testing.T) {
	t.Parallel()
	now := time.Now()
	stay := postgres.KeyFacts{Reservation: 1, Opens: true, State: booking.Done, Interval: booking.Interval{Start: now.Add(-time.Hour), End: now.Add(time.Hour)}}
	for _, test := range []struct {
		name           string
		keypad         string
		online         bool
		locked, failed bool
		code           Reason
		button, number bool
	}{
		{"locked out", "agent", true, true, false, LockedOut, true, true},
		{"locked out, offline", "agent", false, true, false, LockedOut, false, true},
		{"offline", "standalone", false, false, false, BranchOffline, false, true},
		{"offline, no keypad", "none", false, false, false, BranchOffline, false, false},
		{"failed", "standalone", true, false, true, DoorFailed, true, true},
		{"failed, no keypad", "none", true, false, true, DoorFailed, true, false},
	} {
		facts := stay
		facts.Keypad = test.keypad
		if test.locked {
			facts.LockedAt, facts.LockedUntil = now, now.Add(time.Minute)
		}
		if test.failed {
			facts.Failed = now
		}
		d := judge(facts, "", test.online, 0, now)
		d.Kind, d.RoomNo = Room, 1
		ko, en := d.Message("ko"), d.Message("en")
		if d.Code != test.code {
			t.Errorf("%s: got %s, want %s", test.name, d.Code, test.code)
		}
		if ko := strings.Contains(ko, "버튼") || strings.Contains(ko, "다시 눌러 보고"); ko != test.button {
			t.Errorf("%s: the Korean sentence names the button: %t, want %t", test.name, ko, test.button)
		}
		if en := strings.Contains(en, "button") || strings.Contains(en, "Press again"); en != test.button {
			t.Errorf("%s: the English sentence names the button: %t, want %t", test.name, en, test.button)
		}
		if ko := strings.Contains(ko, "번호"); ko != test.number {
			t.Errorf("%s: the Korean sentence names the number: %t, want %t", test.name, ko, test.number)
		}
		if en := strings.Contains(en, "keypad") || strings.Contains(en, "number"); en != test.number {
			t.Errorf("%s: the English sentence names the number: %t, want %t", test.name, en, test.number)
		}
	}
}
