//go:build hw

package hwtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// TestClock sets the machine's clock an hour back, an hour ahead, to 1970 and to random times, while a grant is in
// transit and while a lock is open. A Pi has no clock of its own and sets its time when the network is up, so doors
// must not depend on the time of day.
func TestClock(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	year := 365 * 24 * time.Hour
	for n, jump := range []time.Duration{
		-time.Hour, time.Hour, -time.Since(time.Unix(3600, 0)), 10 * year, rand.N(5 * year), -rand.N(5 * year),
	} {
		record(t)
		const pulse = 500 * time.Millisecond
		id := request(200 + n)
		b.Send(branch, protocol.Ask{RequestID: id, Doors: []string{"front_1"}})
		claim := brokertest.Await[protocol.Claim](b)
		setClock(t, jump)
		b.Send(branch, grant(t, claim, pulse, "front_1"))
		if r := brokertest.Await[protocol.Result](b); r.Outcome != protocol.Opened || r.RequestID != id {
			t.Errorf("%v: %+v", jump, r)
		}
		setClock(t, -jump)
		await(t, "the pulse ends", 2*time.Second, func() bool { return len(pulseChanges(t, gpioHigh, "set 1")) >= 2 })
		list := pulseChanges(t, gpioHigh, "set 1")
		if took := list[1].at - list[0].at; list[1].what != "set 0" || !lasted(took, pulse) {
			t.Errorf("%v: energised for %v, want %v: %s", jump, took, pulse, words(list))
		}

		if n >= 2 {
			continue
		}
		// Setting the clock makes a grant neither younger nor older.
		b.Send(branch, protocol.Ask{RequestID: request(300 + n), Doors: []string{"front_1"}})
		claim = brokertest.Await[protocol.Claim](b)
		setClock(t, jump)
		time.Sleep(protocol.GrantAge + 50*time.Millisecond)
		setClock(t, -jump)
		b.Send(branch, grant(t, claim, pulse, "front_1"))
		if r := brokertest.Await[protocol.Result](b); r.Outcome != protocol.Dropped {
			t.Errorf("%v: an old grant: %+v", jump, r)
		}
	}
}

// setClock sets the machine's time of day.
func setClock(t *testing.T, jump time.Duration) {
	t.Helper()
	to := unix.NsecToTimeval(time.Now().Add(jump).UnixNano())
	if err := unix.Settimeofday(&to); err != nil {
		t.Fatal(err)
	}
}
