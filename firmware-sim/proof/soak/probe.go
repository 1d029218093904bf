package soak

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// probe measures without faults.
func (s *Soak) probe(ctx context.Context) error {
	for _, measure := range []func(context.Context) error{s.probeZones, s.probeMidnight, s.probeSwitch, s.probeSwap, s.probeOffline, s.probeStall} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// probeZones requests the same pages from both replicas, which are in different time zones, without other clients.
func (s *Soak) probeZones(ctx context.Context) error {
	c := s.newClient()
	for _, b := range s.world.Branches {
		for day := range days + 1 {
			for _, path := range []string{
				fmt.Sprintf("/reservations?branch=%s&base_date=%s&base_hour=22", b.Code, s.day(b.Code, day).Format("20060102")),
				fmt.Sprintf("/v2/branches/%s/reservations?date=%s&baseHour=0&hours=24", b.Code, s.day(b.Code, day).Format(time.DateOnly)),
				fmt.Sprintf("/v2/branches/%s/calendar?yearMonth=%s", b.Code, s.day(b.Code, day).Format("2006-01")),
			} {
				one, two := c.ask(ctx, 0, http.MethodGet, path, nil), c.ask(ctx, 1, http.MethodGet, path, nil)
				twin := record.Twin{What: path, Same: one.status == http.StatusOK && one.text == two.text}
				if !twin.Same {
					twin.Text = fmt.Sprintf("%d %.300s / %d %.300s", one.status, one.text, two.status, two.text)
				}
				s.record.Twins = append(s.record.Twins, twin)
			}
		}
	}
	return ctx.Err()
}

// probeMidnight holds a room over midnight and reads both days from both pages.
func (s *Soak) probeMidnight(ctx context.Context) error {
	for _, b := range s.world.Branches {
		for day := 1; day <= 2; day++ {
			p := s.newPurchase(s.dice("midnight "+b.Code, day))
			midnight := s.day(b.Code, day+days)
			p.slot = record.Slot{Branch: b.Code, Room: day, Start: midnight.Add(-20 * time.Minute), End: midnight.Add(30 * time.Minute)}
			if !p.takeAt(ctx, day) {
				continue
			}
			for _, v1 := range []bool{true, false} {
				for _, from := range []time.Time{midnight.Add(-time.Hour), midnight} {
					p.lookAt(ctx, day%2, b.Code, from, 1, v1)
				}
			}
			r := p.ask(ctx, 0, http.MethodDelete, "/reservation", nil)
			p.op(record.Op{Kind: record.Release, Owner: p.owner, Slot: p.slot}, r)
		}
	}
	return ctx.Err()
}

// noticed is the time after which a silent branch must count as offline: 12 s, with a margin for the last heartbeat.
const noticed = 20 * time.Second

// probeOffline measures the time of answers at a branch known to be offline. Guests press there, too, and ask why.
func (s *Soak) probeOffline(ctx context.Context) error {
	staff, err := s.staff(ctx)
	if err != nil {
		return err
	}
	away := s.world.Branches[:min(3, len(s.world.Branches))]
	guests := s.openStays(ctx, away)
	for _, b := range away {
		if err := s.setBranch(b, map[string]any{"kind": "power-off"}); err != nil {
			return err
		}
	}
	pause(ctx, noticed)
	for n := range 20 {
		for _, b := range away {
			at := n % 2
			began := time.Now()
			r := staff.ask(ctx, at, http.MethodPost, "/admin/door/v2/unlock/"+b.Code+"/front", nil)
			var accepted struct {
				RequestID string `json:"requestId"`
			}
			r.into(&accepted)
			told := staff.subscribe(ctx, 1-at, "/admin/door/v2/unlock/subscribe", accepted.RequestID, "")
			s.note(func(rec *record.Record) {
				rec.Probes = append(rec.Probes, record.Probe{What: "offline", Took: time.Since(began), OK: told.Status == "FAILED" && told.PIN})
				rec.Presses = append(rec.Presses, record.Press{Branch: b.Code, Kind: "front", Staff: true, Call: r.call, Return: r.ret, Status: r.status, RequestID: accepted.RequestID, Told: []record.Told{told}})
			})
		}
	}
	for _, guest := range guests {
		for range 5 {
			guest.press(ctx)
		}
	}
	for _, b := range away {
		s.clearBranch(b)
	}
	return s.world.AwaitAgents(ctx, time.Minute)
}

// openStays buys a stay that has begun at each of the branches that has a free room, and returns those whose key has arrived. It
// tries the spare room first, because customers may have bought the others until much later.
func (s *Soak) openStays(ctx context.Context, branches []world.Branch) (guests []*purchase) {
	for at, b := range branches {
		for room := world.Spare; room > 0; room-- {
			p := s.newPurchase(s.dice("offline "+b.Code, room))
			start := s.world.Mark(b.Code, time.Now())
			p.slot = record.Slot{Branch: b.Code, Room: room, Start: start, End: start.Add(3 * record.Margin)}
			p.amount = world.Price(3 * record.Margin)
			if !p.takeAt(ctx, at) {
				continue
			}
			if p.register(ctx) {
				if p.buy(ctx); p.receiveKey(ctx, 20*time.Second) {
					guests = append(guests, p)
				}
			}
			break
		}
	}
	return guests
}

// stall is how long the provider hangs while the database is observed.
const stall = 6 * time.Second

// probeStall makes the provider hang during confirmations and looks for open transactions.
func (s *Soak) probeStall(ctx context.Context) error {
	const buyers = 12
	fault := map[string]any{"target": "confirm", "kind": "slow", "times": buyers, "delayMs": stall.Milliseconds()}
	if _, err := world.Ask(http.MethodPost, s.world.Sandbox+"/sandbox/faults", fault, nil); err != nil {
		return err
	}
	var buying sync.WaitGroup
	for n := range buyers {
		p := s.newPurchase(s.dice("stall", n))
		branch := s.world.Branches[n%len(s.world.Branches)].Code
		p.slot = record.Slot{Branch: branch, Room: 1 + n%(world.Spare-1), Start: s.day(branch, days+3+n).Add(9 * time.Hour)}
		p.slot.End = p.slot.Start.Add(time.Hour)
		p.amount = world.Price(time.Hour)
		buying.Go(func() {
			if p.takeAt(ctx, n) && p.register(ctx) {
				p.buy(ctx)
			}
		})
	}
	done := make(chan struct{})
	go func() { buying.Wait(); close(done) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			_, err := world.Ask(http.MethodDelete, s.world.Sandbox+"/sandbox/faults", nil, nil)
			return err
		case <-tick.C:
			i, err := s.eyes.idle(ctx)
			if err != nil {
				return err
			}
			s.record.Probes = append(s.record.Probes, record.Probe{What: "stall", Took: i.Took, OK: i.Took <= 100*time.Millisecond})
		}
	}
}
