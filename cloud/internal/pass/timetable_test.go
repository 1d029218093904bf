package pass

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

var keypadAgent = protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}

// connected returns the timetable of an agent that has connected, whose list is being sent.
func connected(t *testing.T) *timetable {
	t.Helper()
	table := new(timetable)
	table.connect(keypadAgent, protocol.Status{BootID: "boot", Connection: 1, Inventory: &protocol.Inventory{Keypads: []string{"front_1"}}})
	if due := table.take(time.Now()); len(due) != 1 {
		t.Fatalf("%d lists are due when the agent connects, want 1", len(due))
	}
	return table
}

// A standby agent has no list until it becomes the active one. Its empty list was prepared five times a second.
func TestStandbyAgentIsLookedAtRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := connected(t)
		for range 3 {
			table.done(keypadAgent, true)
			time.Sleep(renewInterval - time.Second)
			if due := table.take(time.Now()); len(due) != 0 {
				t.Fatal("a list is due before the interval")
			}
			time.Sleep(time.Second)
			if due := table.take(time.Now()); len(due) != 1 {
				t.Fatal("no list is due after the interval")
			}
		}
		table.done(keypadAgent, true)
		table.touch(keypadAgent.Branch) // it becomes the active agent
		if due := table.take(time.Now()); len(due) != 1 {
			t.Error("no list is due after a change")
		}
	})
}

// A list is lost on its way, and the acknowledgement of the previous one arrives after it was sent: the list is repeated.
func TestEarlierAcknowledgementEndsNoRepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := connected(t)
		table.noteSent(keypadAgent, 5)
		table.done(keypadAgent, false)
		table.touch(keypadAgent.Branch) // a guest cancels
		table.take(time.Now())
		table.noteSent(keypadAgent, 6)
		table.done(keypadAgent, false)
		table.acknowledged(keypadAgent, 5)
		time.Sleep(repeatFirst)
		if due := table.take(time.Now()); len(due) != 1 {
			t.Fatal("the list is not repeated")
		}
		table.noteSent(keypadAgent, 6)
		table.done(keypadAgent, false)
		table.acknowledged(keypadAgent, 6)
		time.Sleep(repeatLast)
		if due := table.take(time.Now()); len(due) != 0 {
			t.Error("the list is repeated although it was acknowledged")
		}
	})
}
