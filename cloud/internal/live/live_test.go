package live_test

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/live"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	type versions = map[booking.ReservationID]postgres.LiveVersion
	state := func(v versions) postgres.LiveState {
		return postgres.LiveState{Revision: 1, Reservations: v, Doors: at, Door: "front", Agent: "true 1", Sensors: at, Ledger: 7, Refunds: "0 "}
	}
	for name, c := range map[string]struct {
		before, after postgres.LiveState
		want          []live.Event
	}{
		"nothing":           {state(versions{1: {State: booking.Done, Version: 2}}), state(versions{1: {State: booking.Done, Version: 2}}), nil},
		"a new hold":        {state(nil), state(versions{1: {State: booking.Hold, Version: 1}}), []live.Event{{Kind: "slot", Target: "1"}}},
		"a hold that ended": {state(versions{1: {State: booking.Hold, Version: 1}}), state(nil), []live.Event{{Kind: "slot", Target: "1"}}},
		"moved":             {state(versions{1: {State: booking.Done, Version: 2}}), state(versions{1: {State: booking.Done, Version: 3}}), []live.Event{{Kind: "slot", Target: "1"}}},
		"a deposit": {state(versions{1: {State: booking.WaitingForDeposit, Version: 2}}), state(versions{1: {State: booking.Done, Version: 3}}),
			[]live.Event{{Kind: "slot", Target: "1"}, {Kind: "payment", Target: "1"}}},
		"a cancellation":          {state(versions{1: {State: booking.Done, Version: 2}}), state(nil), []live.Event{{Kind: "slot", Target: "1"}, {Kind: "payment", Target: "1"}}},
		"money of another day":    {state(nil), postgres.LiveState{Revision: 1, Doors: at, Door: "front", Agent: "true 1", Sensors: at, Ledger: 8, Refunds: "0 "}, []live.Event{{Kind: "payment"}}},
		"a refund of another day": {state(nil), postgres.LiveState{Revision: 1, Doors: at, Door: "front", Agent: "true 1", Sensors: at, Ledger: 7, Refunds: "1 now"}, []live.Event{{Kind: "payment"}}},
		"money long ago":          {state(nil), postgres.LiveState{Revision: 1, Doors: at, Door: "front", Agent: "true 1", Sensors: at, Refunds: "0 "}, nil},
		"settings of an agent":    {state(nil), func() postgres.LiveState { s := state(nil); s.Settings = "agent-gangnam t 2 asked"; return s }(), []live.Event{{Kind: "agent"}}},
		"everything else": {state(nil), postgres.LiveState{Revision: 2, Doors: at.Add(1), Door: "room_2", Agent: "false 1", Sensors: at.Add(1), Refunds: "0 "},
			[]live.Event{{Kind: "slot"}, {Kind: "door", Target: "room_2"}, {Kind: "agent"}, {Kind: "sensor"}}},
	} {
		if got := live.Difference(c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
