package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// rounds is the number of repetitions of each collision.
const rounds = 40

// probeSwitch switches spare rooms off while a client requests them at the other replica.
func (s *Soak) probeSwitch(ctx context.Context) error {
	staff, err := s.staff(ctx)
	if err != nil {
		return err
	}
	for n := range rounds {
		b := s.world.Branches[n%len(s.world.Branches)]
		guest := s.newPurchase(s.dice("switch", n))
		guest.slot = record.Slot{Branch: b.Code, Room: world.Spare, Start: s.day(b.Code, days+20).Add(time.Duration(n) * time.Hour)}
		guest.slot.End = guest.slot.Start.Add(30 * time.Minute)
		path := fmt.Sprintf("/admin/machines/%s/%d", b.Code, world.Spare)
		set := func(at int, on bool) {
			r := staff.ask(ctx, at, http.MethodPatch, path, map[string]bool{"enabled": on})
			staff.op(record.Op{Kind: record.SwitchRoom, Slot: guest.slot, At: at}, r)
		}
		var both sync.WaitGroup
		both.Go(func() { set(n%2, false) })
		both.Go(func() {
			pause(ctx, time.Duration(guest.dice.IntN(8))*time.Millisecond)
			guest.takeAt(ctx, 1+n)
		})
		both.Wait()
		r := guest.ask(ctx, n%2, http.MethodDelete, "/reservation", nil)
		guest.op(record.Op{Kind: record.Release, Owner: guest.owner, Slot: guest.slot}, r)
		set(n%2, true)
	}
	return ctx.Err()
}

// probeSwap has two administrators, each at another replica, move two reservations into each other's rooms at once, and
// then into a third one.
func (s *Soak) probeSwap(ctx context.Context) error {
	one, err := s.staff(ctx)
	if err != nil {
		return err
	}
	two, err := s.staff(ctx)
	if err != nil {
		return err
	}
	for n := range rounds {
		b := s.world.Branches[n%len(s.world.Branches)]
		start := s.day(b.Code, days+30).Add(time.Duration(n) * time.Hour)
		var pair [2]listed
		for i, p := range []*purchase{one, two} {
			slot := record.Slot{Branch: b.Code, Room: 1 + i, Start: start, End: start.Add(30 * time.Minute)}
			var ok bool
			if pair[i], ok = p.registered(ctx, slot); !ok {
				return fmt.Errorf("probe: no reservation to move at %s", b.Code)
			}
		}
		for _, rooms := range [][2]int{{2, 1}, {3, 3}} {
			var both sync.WaitGroup
			for i, p := range []*purchase{one, two} {
				to := pair[i].slot
				to.Room = rooms[i]
				both.Go(func() { p.relocateAt(ctx, i, pair[i], to) })
			}
			both.Wait()
			for i, p := range []*purchase{one, two} {
				pair[i], _ = p.detail(ctx, b.Code, pair[i].id) // its current room
			}
		}
	}
	return ctx.Err()
}

// staff returns a client with an administrator's session.
func (s *Soak) staff(ctx context.Context) (*purchase, error) {
	p := &purchase{client: s.newClient(), dice: rand.New(rand.NewPCG(s.options.Seed, 99))}
	if !p.loginAdmin(ctx) {
		return nil, fmt.Errorf("probe: no administrator could log in")
	}
	return p, nil
}

// registered creates a reservation without payment and finds it in the list.
func (p *purchase) registered(ctx context.Context, slot record.Slot) (listed, bool) {
	owner := p.owners.Add(1)
	r := p.ask(ctx, 0, http.MethodPost, "/admin/reservation", map[string]any{
		"branch": slot.Branch, "room": slot.Room, "startDateTime": wire(slot.Start), "endDateTime": wire(slot.End)})
	if !p.op(record.Op{Kind: record.AdminTake, Owner: owner, Slot: slot}, r).OK() {
		return listed{}, false
	}
	r = p.ask(ctx, 1, http.MethodPost, "/admin/payment", map[string]any{"name": "손님", "notify": false})
	p.op(record.Op{Kind: record.Keep, Owner: owner, Slot: slot}, r)
	from := slot.Start
	r = p.ask(ctx, 0, http.MethodGet, fmt.Sprintf("/admin/reservations?branch=%s&base_date=%s&base_hour=%d", slot.Branch, from.Format("20060102"), from.Hour()), nil)
	var list struct {
		Paid []struct{ ID, Time string }
	}
	r.into(&list)
	for _, entry := range list.Paid {
		if entry.Time == fmt.Sprintf("%d-%s", slot.Room, wire(slot.Start)) {
			return listed{id: entry.ID, slot: slot, paid: true, status: "paid"}, true
		}
	}
	return listed{}, false
}
